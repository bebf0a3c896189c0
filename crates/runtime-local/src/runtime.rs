//! The runtime: an executor whose runs are tasks of this process.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use helix_agents_core::agent::AnyAgent;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::{
    AgentExecutor, AgentResult, ExecuteOptions, ForkOptions, Input, Resumable, ResumeOptions,
    RunHandle,
};
use helix_agents_core::hooks::HookChain;
use helix_agents_core::id::SessionId;
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::{
    Lineage, PendingView, RequestKind, SessionPage, Submission, fork, lineage, load, news_below,
    pending_calls, queue_message, request, session_page, submit,
};
use helix_agents_core::store::{Head, SessionStatus};
use helix_agents_core::stream::ChunkStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::builder::LocalRuntimeBuilder;
use crate::handle::attach;
use crate::live::{LiveRun, LiveRuns};
use crate::parts::Parts;
use crate::start;

/// Carries out runs as tasks of this process. Cheap to clone.
///
/// # Durability
/// What is recorded survives what the store survives. A process that is killed leaves its runs to
/// whoever resumes them once their lease has run out: this runtime's
/// [`recover`](AgentExecutor::recover), or a `resume` from any process.
#[derive(Debug, Clone)]
pub struct LocalRuntime {
    parts: Arc<Parts>,
    tasks: TaskTracker,
    drain: CancellationToken,
    shutdown: CancellationToken,
}

impl LocalRuntime {
    /// Begins to put a runtime together.
    pub fn builder() -> LocalRuntimeBuilder {
        LocalRuntimeBuilder::new()
    }

    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            parts: Arc::new(parts),
            tasks: TaskTracker::new(),
            drain: CancellationToken::new(),
            shutdown: CancellationToken::new(),
        }
    }

    pub(crate) fn parts(&self) -> &Arc<Parts> {
        &self.parts
    }

    pub(crate) fn live(&self, session: &SessionId) -> Option<Arc<LiveRun>> {
        self.parts.runs.get(session)
    }

    pub(crate) fn drain(&self) -> &CancellationToken {
        &self.drain
    }

    pub(crate) fn shutdown_token(&self) -> &CancellationToken {
        &self.shutdown
    }

    /// Runs a driver on a task of its own. The only place of this crate that spawns.
    pub(crate) fn spawn(
        &self,
        live: Arc<LiveRun>,
        driven: BoxFuture<'static, Result<AgentResult>>,
    ) {
        self.parts.runs.insert(&live);
        let runs = Arc::clone(&self.parts.runs);
        // Whatever becomes of the task, nobody waits for it forever.
        let guard = Ended { runs, live };
        let task = async move {
            let result = driven.await;
            if let Err(error) = &result {
                tracing::warn!(session = %guard.live.session, %error, "the run stopped");
            }
            guard.live.finish(result);
        };
        match &self.parts.tasks {
            Some(handle) => drop(self.tasks.spawn_on(task, handle)),
            None => drop(self.tasks.spawn(task)),
        }
    }

    /// Stops taking runs and ends those under way: they stop before their next effect, and after
    /// the grace period in the middle of it. They do not end in the log: another process goes on
    /// with them at once, for their leases are given up.
    pub async fn shutdown(&self) {
        self.drain.cancel();
        self.tasks.close();
        if tokio::time::timeout(self.parts.grace, self.tasks.wait()).await.is_err() {
            self.shutdown.cancel();
            self.tasks.wait().await;
        }
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.drain.is_cancelled() {
            return Err(Error::new(ErrorCode::Closed, "the runtime was shut down"));
        }
        Ok(())
    }

    pub(crate) async fn head(&self, session: &SessionId) -> Result<Head> {
        self.parts.store.head(session).await?.ok_or_else(|| {
            Error::new(ErrorCode::SessionNotFound, "there is no session of this id")
                .with_context("session", session)
        })
    }

    pub(crate) async fn ask(
        &self,
        session: &SessionId,
        kind: RequestKind,
        reason: Option<String>,
    ) -> Result<()> {
        request(self.parts.outside(), session, None, kind, reason).await?;
        self.parts.runs.nudge();
        Ok(())
    }
}

/// Takes a run off the list when its task ends, however it ends.
struct Ended {
    runs: Arc<LiveRuns>,
    live: Arc<LiveRun>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.runs.remove(&self.live);
        self.live.finish_if_open();
    }
}

#[async_trait]
impl AgentExecutor for LocalRuntime {
    async fn execute(
        &self,
        agent: AnyAgent,
        input: Input,
        options: ExecuteOptions,
    ) -> Result<RunHandle> {
        self.check_open()?;
        start::execute(self, agent, input, options).await
    }

    async fn resume(
        &self,
        agent: AnyAgent,
        session: &SessionId,
        options: ResumeOptions,
    ) -> Result<RunHandle> {
        self.check_open()?;
        start::resume(self, agent, session, options, &HookChain::none()).await
    }

    async fn fork(&self, session: &SessionId, options: ForkOptions) -> Result<SessionId> {
        self.check_open()?;
        let new = fork(self.parts.outside(), session, &options).await?;
        // Whoever dies here leaves that to the first run.
        self.parts.align_ended(&new).await?;
        Ok(new)
    }

    async fn interrupt(&self, session: &SessionId, reason: Option<String>) -> Result<()> {
        self.ask(session, RequestKind::Interrupt, reason).await
    }

    async fn abort(&self, session: &SessionId, reason: Option<String>) -> Result<()> {
        let head = self.head(session).await?;
        if head.is_leased() {
            return self.ask(session, RequestKind::Abort, reason).await;
        }
        let parts = &self.parts;
        let Lineage { agent, above } = lineage(&*parts.store, &parts.registry, &head).await?;
        let above = HookChain::of_lineage(&above);
        start::abort(self, agent, session, reason, false, &above).await
    }

    async fn submit_tool_result(&self, root: &SessionId, submission: Submission) -> Result<()> {
        submit(self.parts.outside(), root, &submission).await?;
        self.parts.runs.nudge();
        if self.parts.auto_resume { self.go_on(root).await } else { Ok(()) }
    }

    async fn pending_calls(&self, root: &SessionId) -> Result<Vec<PendingView>> {
        pending_calls(&*self.parts.store, root).await
    }

    async fn send_message(&self, session: &SessionId, message: UserMessage) -> Result<()> {
        let request = self.parts.ids.request();
        queue_message(self.parts.outside(), session, &request, &message, None).await
    }

    async fn recover(&self) -> Result<Vec<RunHandle>> {
        self.recover_all().await
    }

    async fn sweep(&self) -> Result<Vec<RunHandle>> {
        self.sweep_all().await
    }

    async fn page(&self, session: &SessionId) -> Result<SessionPage> {
        let parts = &self.parts;
        let (store, streams) = (&*parts.store, &*parts.streams);
        session_page(store, streams, &*parts.clock, &*parts.ids, session).await
    }

    async fn follow(&self, session: &SessionId, from: u64) -> Result<ChunkStream> {
        self.parts.streams.read(session, from).await
    }

    async fn handle(&self, session: &SessionId) -> Result<RunHandle> {
        let fold = load(&*self.parts.store, session).await?;
        let run = fold.last_run().ok_or_else(|| {
            Error::new(ErrorCode::RunNotFound, "the session has no run")
                .with_context("session", session)
        })?;
        Ok(attach(&self.parts, &fold, run, self.live(session)))
    }

    async fn can_resume(&self, session: &SessionId) -> Result<Resumable> {
        let head = self.head(session).await?;
        Ok(match head.summary.status {
            SessionStatus::Active if head.is_leased() => Resumable::Running,
            SessionStatus::Active if head.summary.run.is_none() => {
                let mut fold = load(&*self.parts.store, session).await?;
                fold.observe(head.read_at);
                let news = fold.has_news() || news_below(&*self.parts.store, &fold).await?;
                if news { Resumable::Yes } else { Resumable::Waiting }
            }
            SessionStatus::Active | SessionStatus::Interrupted | SessionStatus::Failed => {
                Resumable::Yes
            }
            SessionStatus::Completed | SessionStatus::Aborted => Resumable::Ended,
        })
    }
}
