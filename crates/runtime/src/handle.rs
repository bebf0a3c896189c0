//! Handles of runs: live runs of this process, and runs of other processes that are observed through the store.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::{AgentResult, RunControl, RunHandle};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{
    RunRecord, RunStatus, Session, SessionOverview, StopKind, request, usage_of_tree,
};
use helix_agents_core::store::Head;
use helix_agents_core::stream::ChunkStream;
use helix_agents_core::usage::UsageRollup;

use crate::context::RuntimeContext;
use crate::engine::Engine;
use crate::live::LiveRun;
use crate::run_ref::RunRef;
use crate::run_stream::RunStream;
use crate::runtime::Runtime;

/// The poll interval for runs of other processes.
const POLL: Duration = Duration::from_millis(200);

/// Controls one run, regardless of which process executes it.
#[derive(Debug)]
struct Control {
    context: Arc<RuntimeContext>,
    engine: Arc<dyn Engine>,
    run_ref: RunRef,
    /// The root session, whose stream contains the chunks of the run.
    root: SessionId,
    stream_from: u64,
    /// The shared state of the run, if this process executes it.
    live: Option<Arc<LiveRun>>,
}

/// Returns a handle of a run that this process has just started. `live` is set if this process also executes it.
pub(crate) fn handle(
    runtime: &Runtime,
    run_ref: RunRef,
    root: SessionId,
    stream_from: u64,
    live: Option<Arc<LiveRun>>,
) -> RunHandle {
    let control = Control {
        context: Arc::clone(runtime.context()),
        engine: Arc::clone(runtime.engine()),
        run_ref: run_ref.clone(),
        root,
        stream_from,
        live,
    };
    RunHandle::new(run_ref.session, run_ref.run, Arc::new(control))
}

/// Returns a handle of a run that was found in the log. `live` is the session's live run of this process, if any.
pub(crate) fn attach(
    runtime: &Runtime,
    run_ref: RunRef,
    fold: &SessionOverview,
    run: &RunRecord,
    live: Option<Arc<LiveRun>>,
) -> RunHandle {
    let live = live.filter(|live| live.run == run.id);
    handle(runtime, run_ref, fold.root().clone(), run.stream_from, live)
}

impl Control {
    async fn follow(&self) -> Result<AgentResult> {
        // The engine may detect the end before the next poll, and before the log contains it.
        let (mut ended_early, mut ended) = (false, pin!(self.engine.until_stopped(&self.run_ref)));
        loop {
            let head = self.context.store.head(&self.run_ref.session).await?;
            let is_current = |head: &Head| head.summary.run.as_ref() == Some(&self.run_ref.run);
            let is_unowned = |head: &Head| is_current(head) && !head.is_leased();
            let Some(head) = head.filter(is_current) else { break };
            if is_unowned(&head)
                && let Some(error) = self.engine.stop_reason(&self.run_ref).await
            {
                // In the meantime, the run may have ended, been superseded or been continued by another worker.
                let now = self.context.store.head(&self.run_ref.session).await?;
                if now.as_ref().is_some_and(is_unowned) {
                    return Err(error);
                }
                continue;
            }
            tokio::select! {
                biased;
                () = ended.as_mut(), if !ended_early => ended_early = true,
                () = self.context.clock.sleep(POLL) => {}
            }
        }
        match self.context.record_of(&self.run_ref).await? {
            Some(run) if run.status == RunStatus::Superseded => Err(self.error(
                ErrorCode::Superseded,
                "another run took over the session; request a new handle",
            )),
            Some(run) => Ok(AgentResult::of(&run)),
            None => Err(self.error(ErrorCode::RunNotFound, "the session has no such run")),
        }
    }

    async fn append_request(&self, kind: StopKind, reason: Option<String>) -> Result<()> {
        let request_context = self.context.request_context();
        let sessions =
            request(request_context, &self.run_ref.session, Some(&self.run_ref.run), kind, reason)
                .await?;
        sessions.iter().for_each(|session| self.context.wakeups.notify(session));
        Ok(())
    }

    fn error(&self, code: ErrorCode, message: &'static str) -> Error {
        Error::new(code, message)
            .with_context("session", &self.run_ref.session)
            .with_context("run", &self.run_ref.run)
    }
}

#[async_trait]
impl RunControl for Control {
    async fn result(&self) -> Result<AgentResult> {
        match &self.live {
            Some(live) => live.result().await,
            // Boxed, because most callers wait for a run of this process.
            None => Box::pin(self.follow()).await,
        }
    }

    async fn stream(&self) -> Result<ChunkStream> {
        let RunRef { session, run, .. } = self.run_ref.clone();
        let (context, root) = (Arc::clone(&self.context), self.root.clone());
        let stream = RunStream { context, root, session, run, is_live: self.live.is_some() };
        stream.read(self.stream_from + 1).await
    }

    async fn interrupt(&self, reason: Option<String>) -> Result<()> {
        self.append_request(StopKind::Interrupt, reason).await
    }

    async fn abort(&self, reason: Option<String>) -> Result<()> {
        self.append_request(StopKind::Abort, reason).await
    }

    async fn session(&self) -> Result<Session> {
        self.context.logs().load(&self.run_ref.session).await
    }

    async fn usage(&self) -> Result<UsageRollup> {
        usage_of_tree(self.context.logs(), &self.run_ref.session).await
    }
}
