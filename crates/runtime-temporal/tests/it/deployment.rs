//! Processes that share a store and a queue, as in production, and what Temporal's own client says of them.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::{AgentRegistry, AnyAgent};
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions, Resumable, RunHandle};
use helix_agents_core::llm::LlmAdapter;
use helix_agents_runtime_temporal::options::Url;
use helix_agents_runtime_temporal::{TemporalRuntime, TemporalRuntimeBuilder, TemporalWorker};
use helix_agents_store_sqlite::SqliteStore;
use helix_agents_testkit::gate::within;
use helix_agents_testkit::servers;
use tempfile::TempDir;
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, UntypedWorkflow, WorkflowDescribeOptions,
    WorkflowExecutionStatus, WorkflowHandle,
};
use tokio::runtime::Runtime;

/// After how long a worker counts as dead: as short as it may be.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// What processes share.
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

    /// A runtime of it, with these agents.
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

    /// A process that begins runs and carries none out.
    pub(crate) async fn client(&self, agents: &[AnyAgent]) -> TemporalRuntime {
        let nobody = helix_agents_testkit::scripted::ScriptedLlm::new([]);
        self.runtime(nobody, agents).connect().await.unwrap()
    }

    /// A process that carries runs out.
    pub(crate) async fn worker(&self, llm: impl LlmAdapter, agents: &[AnyAgent]) -> Process {
        Process::new(self.runtime(llm, agents)).await
    }

    /// The workflow of a root's first run.
    pub(crate) async fn workflow(
        &self,
        agent: &str,
        session: &str,
    ) -> WorkflowHandle<Client, UntypedWorkflow> {
        let id = format!("{}__{agent}__{session}", self.prefix);
        temporal().await.get_workflow_handle(id)
    }
}

/// Temporal's own client.
pub(crate) async fn temporal() -> Client {
    let target = Url::parse(&servers::temporal()).unwrap();
    let connection = Connection::connect(ConnectionOptions::new(target).build()).await.unwrap();
    Client::new(connection, ClientOptions::new("default").build()).unwrap()
}

/// How a workflow is.
pub(crate) async fn status(
    workflow: &WorkflowHandle<Client, UntypedWorkflow>,
) -> WorkflowExecutionStatus {
    workflow.describe(WorkflowDescribeOptions::default()).await.unwrap().status()
}

/// A process with a worker, on a tokio runtime of its own that dies with it.
pub(crate) struct Process {
    pub(crate) runtime: TemporalRuntime,
    worker: TemporalWorker,
    tokio: Runtime,
}

impl Process {
    pub(crate) async fn new(builder: TemporalRuntimeBuilder) -> Self {
        Self::with_slots(builder, 200).await
    }

    /// The same, with a worker that carries out so many activities at once.
    pub(crate) async fn with_slots(builder: TemporalRuntimeBuilder, slots: usize) -> Self {
        let tokio =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let tokio = tokio.unwrap();
        let begin = async move {
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
        let (runtime, worker) = tokio.spawn(begin).await.unwrap();
        Self { runtime, worker, tokio }
    }

    /// Begins the session "story".
    pub(crate) async fn begin(&self, agent: &AnyAgent) -> RunHandle {
        begin(&self.runtime, agent).await
    }

    /// Ends it as SIGKILL does.
    pub(crate) async fn kill(self) {
        let Self { worker, tokio, .. } = self;
        let end = move || {
            drop(worker);
            tokio.shutdown_timeout(Duration::from_secs(60));
        };
        tokio::task::spawn_blocking(end).await.unwrap();
    }

    /// Ends it in good order.
    pub(crate) async fn shut_down(self) {
        let Self { worker, tokio, .. } = self;
        worker.shutdown().await.unwrap();
        tokio.shutdown_background();
    }
}

/// Begins the session "story".
pub(crate) async fn begin(runtime: &TemporalRuntime, agent: &AnyAgent) -> RunHandle {
    let options = ExecuteOptions::default().session("story");
    runtime.execute(Arc::clone(agent), "go".into(), options).await.unwrap()
}

/// Waits until a run's lease is over.
pub(crate) async fn until_over(process: &Process, handle: &RunHandle) {
    within(async {
        while !matches!(process.runtime.can_resume(handle.session()).await.unwrap(), Resumable::Yes)
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}
