//! How a durable runtime is put together.

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::store::StoreScope;
use helix_agents_runtime::{Settings, builder_methods};

use crate::config::Database;
use crate::guarantees;
use crate::runtime::DurableRuntime;

/// A durable runtime under way. See [`DurableRuntime::builder`].
#[derive(Debug, Default)]
#[must_use = "call `connect` to get the runtime"]
pub struct DurableRuntimeBuilder {
    settings: Settings,
    database: Database,
}

impl DurableRuntimeBuilder {
    builder_methods!();

    /// The PostgreSQL database that DBOS keeps its tables in, as a URL. It is created if there is none of
    /// that name. It may be the store's own: the two keep to schemas of their own.
    ///
    /// DBOS prepares its statements, so a pooler in between has to lend connections for a session.
    pub fn database(mut self, url: impl Into<String>) -> Self {
        self.database.url = url.into();
        self
    }

    /// The schema of DBOS's tables. All processes of an application name the same one, and no other
    /// tables belong into it. `helix_dbos` unless told.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.database.schema = schema.into();
        self
    }

    /// The application among those that share a schema: processes of one name work on the sessions of
    /// one store. 3 to 100 lower-case letters, digits, `-` and `_`, no two `_` together. `helix-agents`
    /// unless told.
    pub fn app_name(mut self, name: impl Into<String>) -> Self {
        self.database.app = name.into();
        self
    }

    /// A name for this process that stays the same when it is started again, and that no other process
    /// has at the same time: that of a slot, say, as in a stateful set. What a process of this name left
    /// then goes on when [`connect`](Self::connect) is called, without waiting for a lease; its agents
    /// have to be in the registry, and hooks of one execution are refused, because whoever goes on does
    /// not know them.
    ///
    /// Without this each process has a name of its own, and what it leaves is taken over by
    /// [`recover`](helix_agents_core::executor::AgentExecutor::recover) and
    /// [`sweep`](helix_agents_core::executor::AgentExecutor::sweep) of any other one, once its leases
    /// have run out.
    pub fn executor_id(mut self, id: impl Into<String>) -> Self {
        self.database.executor = Some(id.into());
        self
    }

    /// The most connections to DBOS's database. 10 unless told.
    pub fn connections(mut self, most: u32) -> Self {
        self.database.connections = most;
        self
    }

    /// How many runs of this process do something at the same time. The others wait for their turn
    /// between two parts, and keep their leases. A run that only waits for its sub-agents does not
    /// count. Neither does a run that a tool starts on the tool's own task, because the tool may wait for
    /// it. No limit by default.
    ///
    /// This is not a DBOS queue: those are polled, and hand a run to any process.
    pub fn max_runs(mut self, most: usize) -> Self {
        self.database.max_runs = Some(most);
        self
    }

    /// How often a model call or a tool call that is under way looks whether its workflow was cancelled
    /// in DBOS. Each look is a small query. One second unless told.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.database.poll_interval = interval;
        self
    }

    /// How long DBOS's rows of a workflow are kept after its end, for people who look at them. Nothing
    /// else needs them: the log has it all. One hour unless told; [`Duration::MAX`] keeps them for good.
    pub fn keep_history(mut self, time: Duration) -> Self {
        self.database.keep_history = time;
        self
    }

    /// What may be relied on in a runtime that is put together so, and why: one for each of
    /// [`GuaranteeKind::OF_RUNTIMES`](helix_agents_core::guarantee::GuaranteeKind::OF_RUNTIMES), in that order.
    pub fn guarantees(&self) -> Vec<Guarantee> {
        guarantees::of(self.settings.lease, self.database.executor.is_some())
    }

    /// Connects to the database, brings DBOS's tables up to date, and begins to carry out runs. What a
    /// process of the same [`executor_id`](Self::executor_id) left goes on now.
    ///
    /// Workflows are tasks of the tokio runtime that this is called on, unless
    /// [`tasks_on`](Self::tasks_on) names another.
    ///
    /// # Errors
    /// [`ErrorCode::ConfigInvalid`] if something is missing or out of range, or if the store is one that
    /// no other process sees; [`ErrorCode::StoreUnavailable`] if the database does not answer.
    pub async fn connect(self) -> Result<DurableRuntime> {
        let Self { settings, database } = self;
        database.check()?;
        let context = settings.context()?;
        if context.store.reach() == StoreScope::Process {
            return Err(Error::new(
                ErrorCode::ConfigInvalid,
                "no other process sees the sessions of this store, so that nobody could go on with \
                 its runs; use a SQLite, PostgreSQL or Redis store, or the local runtime",
            ));
        }
        DurableRuntime::launch(context, database).await
    }
}
