//! Processes that share a store and a task queue, and access to them with Temporal's own client.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::{AgentRegistry, AnyAgent};
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions, Resumable, RunHandle};
use helix_agents_core::llm::LlmAdapter;
use helix_agents_runtime_temporal::RuntimeBuilder as _;
use helix_agents_runtime_temporal::options::Url;
use helix_agents_runtime_temporal::{TemporalRuntime, TemporalRuntimeBuilder, TemporalWorker};
use helix_agents_store_sqlite::SqliteStore;
use helix_agents_test::{ScriptedLlm, within};
use helix_agents_testkit::servers;
use tempfile::TempDir;
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, UntypedWorkflow, WorkflowDescribeOptions,
    WorkflowExecutionStatus, WorkflowHandle,
};
use tokio::runtime::Runtime;

/// The lease and heartbeat timeout: the shortest possible one.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// The resources that processes share.
pub(crate) struct Deployment {
    pub(crate) store: SqliteStore,
    pub(crate) prefix: String,
    pub(crate) queue: String,
    _folder: TempDir,
}

impl Deployment {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("test.db")).await.unwrap();
        Self { store, prefix: servers::unique(), queue: servers::unique(), _folder: folder }
    }

    /// Returns a builder for a runtime of this deployment, with these agents.
    pub(crate) fn runtime(
        &self,
        llm: impl LlmAdapter,
        agents: &[AnyAgent],
    ) -> TemporalRuntimeBuilder {
        let registry = AgentRegistry::default();
        for agent in agents {
            registry.replace_erased(Arc::clone(agent));
        }
        TemporalRuntime::builder()
            .store(self.store.clone())
            .llm(llm)
            .registry(registry)
            .lease(LEASE)
            .grace(Duration::from_millis(100))
            .target(servers::temporal())
            .prefix(&*self.prefix)
            .task_queue(&*self.queue)
    }

    /// Returns a runtime that starts runs but executes none.
    pub(crate) async fn client(&self, agents: &[AnyAgent]) -> TemporalRuntime {
        let unused = ScriptedLlm::new([]);
        self.runtime(unused, agents).connect().await.unwrap()
    }

    /// Starts a process with a worker.
    pub(crate) async fn worker(&self, llm: impl LlmAdapter, agents: &[AnyAgent]) -> Process {
        Process::new(self.runtime(llm, agents)).await
    }

    /// Returns the workflow of a root session's first run.
    pub(crate) async fn workflow(
        &self,
        agent: &str,
        session: &str,
    ) -> WorkflowHandle<Client, UntypedWorkflow> {
        let id = format!("{}__{agent}__{session}", self.prefix);
        temporal().await.get_workflow_handle(id)
    }
}

/// Returns Temporal's own client.
pub(crate) async fn temporal() -> Client {
    let target = Url::parse(&servers::temporal()).unwrap();
    let connection = Connection::connect(ConnectionOptions::new(target).build()).await.unwrap();
    Client::new(connection, ClientOptions::new("default").build()).unwrap()
}

/// Returns the status of a workflow.
pub(crate) async fn status(
    workflow: &WorkflowHandle<Client, UntypedWorkflow>,
) -> WorkflowExecutionStatus {
    workflow.describe(WorkflowDescribeOptions::default()).await.unwrap().status()
}

/// A simulated process with a worker, on a separate tokio runtime that ends with it.
pub(crate) struct Process {
    pub(crate) runtime: TemporalRuntime,
    worker: TemporalWorker,
    tokio: Runtime,
}

impl Process {
    pub(crate) async fn new(builder: TemporalRuntimeBuilder) -> Self {
        Self::with_slots(builder, 200).await
    }

    /// Starts a process whose worker has this number of activity slots.
    pub(crate) async fn with_slots(builder: TemporalRuntimeBuilder, slots: usize) -> Self {
        let tokio =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let tokio = tokio.unwrap();
        let start = async move {
            let runtime = builder.connect().await.unwrap();
            let worker = TemporalWorker::builder(&runtime)
                .activities(slots)
                .sticky_timeout(Duration::from_secs(1))
                .graceful_shutdown(Duration::from_millis(100))
                .start()
                .await
                .unwrap();
            (runtime, worker)
        };
        let (runtime, worker) = tokio.spawn(start).await.unwrap();
        Self { runtime, worker, tokio }
    }

    /// Starts the session "story".
    pub(crate) async fn start(&self, agent: &AnyAgent) -> RunHandle {
        start(&self.runtime, agent).await
    }

    /// Kills the process without a shutdown.
    pub(crate) async fn kill(self) {
        let Self { worker, tokio, .. } = self;
        let end = move || {
            drop(worker);
            tokio.shutdown_timeout(Duration::from_secs(60));
        };
        tokio::task::spawn_blocking(end).await.unwrap();
    }

    /// Shuts the process down.
    pub(crate) async fn shut_down(self) {
        let Self { worker, tokio, .. } = self;
        worker.shutdown().await.unwrap();
        tokio.shutdown_background();
    }
}

/// Starts the session "story".
pub(crate) async fn start(runtime: &TemporalRuntime, agent: &AnyAgent) -> RunHandle {
    let options = ExecuteOptions::default().session("story");
    runtime.execute(Arc::clone(agent), "go".into(), options).await.unwrap()
}

/// Waits until a run's lease has expired.
pub(crate) async fn until_lease_expired(process: &Process, handle: &RunHandle) {
    within(async {
        while !matches!(process.runtime.can_resume(handle.session()).await.unwrap(), Resumable::Yes)
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}
