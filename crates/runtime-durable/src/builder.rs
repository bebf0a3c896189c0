//! The builder of a durable runtime.

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::store::StoreScope;
use helix_agents_runtime::{BuiltEngine, RuntimeBuilder, Settings};

use crate::config::Database;
use crate::engine::DurableEngine;
use crate::guarantees;
use crate::runtime::{self, DurableRuntime};

/// A builder for [`DurableRuntime`]. See [`DurableRuntime::builder`].
///
/// # Examples
/// The name of a pod as the executor id, so that the next process of the pod continues its runs immediately:
///
/// ```
/// use helix_agents_core::agent::{Agent, AgentRegistry};
/// use helix_agents_runtime_durable::{DurableRuntime, RuntimeBuilder as _};
///
/// # fn main() -> helix_agents_core::error::Result<()> {
/// # let agent = Agent::builder("guide").system_prompt("You know cities.").build()?;
/// let agents = AgentRegistry::default();
/// agents.register(&agent)?;
/// let builder = DurableRuntime::builder()
///     .database("postgres://localhost/agents")
///     .registry(agents)
///     .executor_id("order-desk-0")
///     .max_runs(50);
/// assert!(builder.guarantees().iter().all(|guarantee| guarantee.holds));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
#[must_use = "call `connect` to get the runtime"]
pub struct DurableRuntimeBuilder {
    settings: Settings,
    database: Database,
}

impl BuiltEngine for DurableEngine {
    type Builder = DurableRuntimeBuilder;
}

impl RuntimeBuilder for DurableRuntimeBuilder {
    fn settings(&mut self) -> &mut Settings {
        &mut self.settings
    }
}

impl DurableRuntimeBuilder {
    /// Sets the URL of the PostgreSQL database for DBOS's tables. The database is created if it does not exist.
    /// It can be the store's database, because the store and DBOS use separate schemas.
    ///
    /// DBOS uses prepared statements, so a connection pooler must use session pooling.
    pub fn database(mut self, url: impl Into<String>) -> Self {
        self.database.url = url.into();
        self
    }

    /// Sets the schema of DBOS's tables. All processes of an application must use the same schema, and it
    /// must not contain other tables. The name has at most 63 lower-case letters, digits or `_` and does not
    /// start with a digit or `pg_`. Default: `helix_dbos`.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.database.schema = schema.into();
        self
    }

    /// Sets the application name, which separates applications that share a schema. All processes with the same name
    /// must use the same store. The name consists of 3 to 100 lower-case letters, digits, `-` and `_`, without
    /// consecutive, leading or trailing `_`. Default: `helix-agents`.
    pub fn app_name(mut self, name: impl Into<String>) -> Self {
        self.database.app = name.into();
        self
    }

    /// Sets a stable executor id for this process. It must stay the same across restarts, and no other process may use
    /// it at the same time. The name of a pod in a stateful set is suitable. [`connect`](Self::connect) then continues
    /// the runs of the previous process with this id without waiting for their leases. The agents of these runs must be
    /// in the registry. Hooks of a single run (`ExecuteOptions::hooks`) are rejected, because the next process does not
    /// know them.
    ///
    /// Without an executor id, each process has a unique name. Its runs are taken over by
    /// [`recover`](helix_agents_core::executor::AgentExecutor::recover) and
    /// [`sweep`](helix_agents_core::executor::AgentExecutor::sweep) of any other process once their leases have
    /// expired.
    pub fn executor_id(mut self, id: impl Into<String>) -> Self {
        self.database.executor = Some(id.into());
        self
    }

    /// Sets the maximum number of connections to DBOS's database, at least 2. Default: 10.
    pub fn connections(mut self, most: u32) -> Self {
        self.database.connections = most;
        self
    }

    /// Sets the maximum number of runs of this process that work concurrently. Other runs wait between two work
    /// items and keep their leases. A run that only waits for its sub-agents does not count. A run that a tool
    /// starts on the tool's own task does not count either, because the tool may wait for it. Default: no limit.
    ///
    /// This does not use a DBOS queue, because queues are polled and hand a run to any process.
    pub fn max_runs(mut self, most: usize) -> Self {
        self.database.max_runs = Some(most);
        self
    }

    /// Sets the interval at which a running model call or tool call checks whether its workflow was cancelled in
    /// DBOS. Each check is a small query. Default: one second.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.database.poll_interval = interval;
        self
    }

    /// Sets how long DBOS's rows of a workflow are kept after its end, for inspection. The runtime itself does not
    /// need them because the log contains everything. [`Duration::MAX`] keeps them forever. Default: one hour.
    pub fn keep_history(mut self, time: Duration) -> Self {
        self.database.keep_history = time;
        self
    }

    /// Returns the guarantees of a runtime with these options and their reasons, one for each of
    /// [`GuaranteeKind::OF_RUNTIMES`](helix_agents_core::guarantee::GuaranteeKind::OF_RUNTIMES), in that order.
    pub fn guarantees(&self) -> Vec<Guarantee> {
        guarantees::runtime_guarantees(self.settings.lease, self.database.executor.is_some())
    }

    /// Connects to the database, migrates DBOS's tables and starts to execute runs. Runs of a previous process
    /// with the same [`executor_id`](Self::executor_id) are continued.
    ///
    /// Workflows are tasks of the current tokio runtime, unless [`tasks_on`](Self::tasks_on) sets another one.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if a required option is missing, a value is out of range, or no
    /// other process can access the store; also if the URL cannot be used, or PostgreSQL or a pooler rejects
    /// the connection. Returns [`ErrorCode::StoreUnavailable`] if the database does not answer within 10 s or
    /// DBOS is not ready within 60 s.
    pub async fn connect(self) -> Result<DurableRuntime> {
        let Self { settings, database } = self;
        database.check()?;
        let context = settings.context()?;
        if context.store.scope() == StoreScope::Process {
            return Err(Error::new(
                ErrorCode::ConfigInvalid,
                "this store is visible only to this process, so no other process could continue a run; use a \
                 SQLite, PostgreSQL or Redis store, or the local runtime",
            ));
        }
        runtime::launch(context, database).await
    }
}
