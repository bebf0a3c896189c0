//! The runtime on DBOS.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_runtime::{Runtime, RuntimeContext};

use crate::config::Database;
use crate::database_check;
use crate::engine::DurableEngine;
use crate::failure;
use crate::history;

/// The timeout for connecting to the database and migrating DBOS's tables.
const LAUNCH: Duration = Duration::from_secs(60);

/// The DBOS runtime, which executes runs as DBOS workflows in this process. Cheap to clone.
///
/// It is named after the durable workflows of DBOS. Sessions are equally durable on every runtime.
///
/// # Durability
/// Recorded events are as durable as the store. The runs of a killed process can be continued by any process
/// once their leases have expired, or, if the process has an
/// [`executor_id`](crate::DurableRuntimeBuilder::executor_id), by its successor. DBOS's tables contain nothing that
/// is not in the log: sessions can be resumed without them, with this or another runtime.
///
/// [`shutdown`](helix_agents_core::executor::AgentExecutor::shutdown) also shuts DBOS down. If its future is dropped
/// early, DBOS is shut down when the runtime is dropped.
///
/// # Examples
/// ```no_run
/// use helix_agents_core::executor::{AgentExecutor as _, AgentExecutorExt as _};
/// use helix_agents_runtime_durable::{DurableRuntime, RuntimeBuilder as _};
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
pub type DurableRuntime = Runtime<DurableEngine>;

/// Launches DBOS on the tokio runtime that executes runs.
pub(crate) async fn launch(
    context: Arc<RuntimeContext>,
    database: Database,
) -> Result<DurableRuntime> {
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
    Ok(Runtime::new(Arc::clone(engine.context()), engine))
}

async fn launched(context: Arc<RuntimeContext>, database: Database) -> Result<Arc<DurableEngine>> {
    database_check::check(&database.url).await?;
    let engine = DurableEngine::new(context, &database)?;
    let launched = engine.dbos().launch().await;
    launched.map_err(|error| failure::from_dbos("launch", &error))?;
    history::spawn_cleanup(&engine, database.keep_history);
    Ok(engine)
}
