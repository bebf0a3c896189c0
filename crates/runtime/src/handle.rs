//! Handles: on runs of this process, and on runs of others seen through the store.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::{AgentResult, RunControl, RunHandle};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{
    RequestKind, RunRecord, RunStatus, Session, SessionOverview, request, usage_of_tree,
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

/// How often a run of another process is looked at.
const POLL: Duration = Duration::from_millis(200);

/// One run, wherever it is carried out.
#[derive(Debug)]
struct Control {
    context: Arc<RuntimeContext>,
    engine: Arc<dyn Engine>,
    of: RunRef,
    /// Whose stream it shows in.
    root: SessionId,
    stream_from: u64,
    /// The run's shared part, if it is this process's.
    live: Option<Arc<LiveRun>>,
}

/// A handle on a run that this process has just begun; `live` if it also carries it out.
pub(crate) fn handle(
    runtime: &Runtime,
    of: RunRef,
    root: SessionId,
    stream_from: u64,
    live: Option<Arc<LiveRun>>,
) -> RunHandle {
    let control = Control {
        context: Arc::clone(runtime.context()),
        engine: Arc::clone(runtime.engine()),
        of: of.clone(),
        root,
        stream_from,
        live,
    };
    RunHandle::new(of.session, of.run, Arc::new(control))
}

/// A handle on a run found in the log; `live` is the session's run of this process, if any.
pub(crate) fn attach(
    runtime: &Runtime,
    of: RunRef,
    fold: &SessionOverview,
    run: &RunRecord,
    live: Option<Arc<LiveRun>>,
) -> RunHandle {
    let live = live.filter(|live| live.run == run.id);
    handle(runtime, of, fold.root().clone(), run.stream_from, live)
}

impl Control {
    async fn follow(&self) -> Result<AgentResult> {
        // An engine may know sooner than the next look; the log may still be behind it then.
        let (mut told, mut ended) = (false, pin!(self.engine.ended(&self.of)));
        loop {
            let head = self.context.store.head(&self.of.session).await?;
            let same = |head: &Head| head.summary.run.as_ref() == Some(&self.of.run);
            let stands = |head: &Head| same(head) && !head.is_leased();
            let Some(head) = head.filter(same) else { break };
            if stands(&head)
                && let Some(error) = self.engine.stopped(&self.of).await
            {
                // It may have been stopped for another one, have ended or been taken up meanwhile.
                let now = self.context.store.head(&self.of.session).await?;
                if now.as_ref().is_some_and(stands) {
                    return Err(error);
                }
                continue;
            }
            tokio::select! {
                biased;
                () = ended.as_mut(), if !told => told = true,
                () = self.context.clock.sleep(POLL) => {}
            }
        }
        match self.context.record_of(&self.of).await? {
            Some(run) if run.status == RunStatus::Superseded => {
                Err(self.error(ErrorCode::Superseded, "another run took over"))
            }
            Some(run) => Ok(AgentResult::of(&run)),
            None => Err(self.error(ErrorCode::RunNotFound, "the session has no such run")),
        }
    }

    async fn ask(&self, kind: RequestKind, reason: Option<String>) -> Result<()> {
        let outside = self.context.outside();
        let asked = request(outside, &self.of.session, Some(&self.of.run), kind, reason).await?;
        asked.iter().for_each(|session| self.context.wakeups.tell(session));
        Ok(())
    }

    fn error(&self, code: ErrorCode, message: &'static str) -> Error {
        Error::new(code, message)
            .with_context("session", &self.of.session)
            .with_context("run", &self.of.run)
    }
}

#[async_trait]
impl RunControl for Control {
    async fn result(&self) -> Result<AgentResult> {
        match &self.live {
            Some(live) => live.result().await,
            None => self.follow().await,
        }
    }

    async fn stream(&self) -> Result<ChunkStream> {
        let RunRef { session, run, .. } = self.of.clone();
        let (context, root) = (Arc::clone(&self.context), self.root.clone());
        let stream = RunStream { context, root, session, run, is_live: self.live.is_some() };
        stream.read(self.stream_from + 1).await
    }

    async fn interrupt(&self, reason: Option<String>) -> Result<()> {
        self.ask(RequestKind::Interrupt, reason).await
    }

    async fn abort(&self, reason: Option<String>) -> Result<()> {
        self.ask(RequestKind::Abort, reason).await
    }

    async fn session(&self) -> Result<Session> {
        self.context.logs().load(&self.of.session).await
    }

    async fn usage_rollup(&self) -> Result<UsageRollup> {
        usage_of_tree(self.context.logs(), &self.of.session).await
    }
}
