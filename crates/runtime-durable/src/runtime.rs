//! The durable runtime.

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

/// The timeout for connecting to the database and migrating DBOS's tables.
const LAUNCH: Duration = Duration::from_secs(60);

/// A runtime that executes runs as DBOS workflows in this process. Cheap to clone.
///
/// # Durability
/// Recorded events are as durable as the store. The runs of a killed process can be continued by any process
/// once their leases have expired, or, if the process has an
/// [`executor_id`](DurableRuntimeBuilder::executor_id), by its successor. DBOS's tables contain nothing that
/// is not in the log: sessions can be resumed without them, with this or another runtime.
///
/// # Examples
/// ```no_run
/// use helix_agents_core::executor::AgentExecutorExt as _;
/// use helix_agents_runtime_durable::DurableRuntime;
/// use helix_agents_store_postgres::PostgresStore;
///
/// # use helix_agents_core::{agent::Agent, error::Result, llm::LlmAdapter};
/// # async fn example(agent: &Agent, model: impl LlmAdapter) -> Result<()> {
/// let url = "postgres://localhost/agents";
/// let runtime = DurableRuntime::builder()
///     .store(PostgresStore::open(url).await?)
///     .database(url)
///     .llm(model)
///     .connect()
///     .await?;
/// println!("{}", runtime.run(agent, "Summarise the ticket.").await?);
/// runtime.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct DurableRuntime {
    runtime: Runtime,
    engine: Arc<Workflows>,
}

impl DurableRuntime {
    /// Returns a builder for a durable runtime.
    pub fn builder() -> DurableRuntimeBuilder {
        DurableRuntimeBuilder::default()
    }

    /// Shuts the runtime down and returns when all of its runs have stopped and DBOS is shut down. A run stops before
    /// its next effect; an effect that is still running after the grace period is cancelled. Later starts fail with
    /// [`ErrorCode::Closed`].
    ///
    /// The log records no end of the stopped runs. Their leases are released, so that another process can continue them
    /// immediately.
    ///
    /// # Cancel safety
    /// If the future is dropped, runs still stop before their next effect, but running effects are not cancelled,
    /// and DBOS is shut down only when the runtime is dropped.
    pub async fn shutdown(&self) {
        let context = self.runtime.context();
        context.tasks.end(context.grace).await;
        self.engine.dbos().shutdown().await;
    }

    /// Launches DBOS on the tokio runtime that executes runs.
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
    launched.map_err(|error| failure::from_dbos("launch", &error))?;
    history::spawn_cleanup(&engine, database.keep_history);
    Ok(engine)
}
