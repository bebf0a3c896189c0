//! The runtime.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_runtime::{Runtime, RuntimeContext, forward_executor};

use crate::builder::DurableRuntimeBuilder;
use crate::config::Database;
use crate::engine::Workflows;
use crate::failure;
use crate::history;
use crate::server;

/// How long the database may take to answer, and to have its tables brought up to date.
const LAUNCH: Duration = Duration::from_secs(60);

/// Carries out runs as workflows of DBOS, in this process. Cheap to clone.
///
/// # Durability
/// What is recorded in the log survives what the store survives. A process that is killed leaves its runs
/// to whoever resumes them once their leases have run out, or, if it has an
/// [`executor_id`](DurableRuntimeBuilder::executor_id), to its successor. DBOS's tables hold nothing that
/// is not in the log: without them, and with this or another runtime, a session can be gone on with.
#[derive(Debug, Clone)]
pub struct DurableRuntime {
    runtime: Runtime,
    engine: Arc<Workflows>,
}

impl DurableRuntime {
    /// Begins to put a runtime together.
    pub fn builder() -> DurableRuntimeBuilder {
        DurableRuntimeBuilder::default()
    }

    /// Stops taking runs and ends those under way: they stop before their next effect, and after the
    /// grace period in the middle of it. They do not end in the log: another process goes on with them at
    /// once, for their leases are given up. Then DBOS is shut down.
    pub async fn shutdown(&self) {
        let context = self.runtime.context();
        context.tasks.end(context.grace).await;
        self.engine.dbos().shutdown().await;
    }

    /// Launches DBOS on the tokio runtime that carries runs out.
    pub(crate) async fn launch(context: Arc<RuntimeContext>, database: Database) -> Result<Self> {
        let tasks = Arc::clone(&context);
        let launch = tasks.tasks.spawn(tokio::time::timeout(LAUNCH, launched(context, database)));
        let engine = match launch.await {
            Ok(Ok(engine)) => engine?,
            Ok(Err(_)) => {
                return Err(Error::new(
                    ErrorCode::StoreUnavailable,
                    "DBOS could not launch: its database did not answer in time",
                ));
            }
            Err(_) => {
                let message = "DBOS could not launch: its tokio runtime was shut down";
                return Err(Error::new(ErrorCode::Closed, message));
            }
        };
        let runtime = Runtime::new(Arc::clone(engine.context()), Arc::clone(&engine) as _);
        Ok(Self { runtime, engine })
    }
}

forward_executor!(DurableRuntime);

async fn launched(context: Arc<RuntimeContext>, database: Database) -> Result<Arc<Workflows>> {
    server::check(&database.url).await?;
    let engine = Workflows::new(context, &database)?;
    let launched = engine.dbos().launch().await;
    launched.map_err(|error| failure::of_dbos("launch", &error))?;
    history::keep_short(&engine, database.keep_history);
    Ok(engine)
}
