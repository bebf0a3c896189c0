//! Handles: on runs of this process, and on runs of others seen through the store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::{AgentResult, RunControl, RunHandle};
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::session::{
    RequestKind, RunRecord, RunStatus, Session, load, request, usage_of_tree,
};
use helix_agents_core::stream::{ChunkKind, ChunkStream};
use helix_agents_core::usage::UsageRollup;

use crate::live::LiveRun;
use crate::parts::Parts;

/// How often a run of another process is looked at.
const POLL: Duration = Duration::from_millis(200);

/// One run, wherever it is carried out.
#[derive(Debug)]
struct Control {
    parts: Arc<Parts>,
    session: SessionId,
    run: RunId,
    /// Whose stream it shows in.
    root: SessionId,
    stream_from: u64,
    /// The run's shared part, if it is this process's.
    live: Option<Arc<LiveRun>>,
}

/// A handle on a run that this process has just begun.
pub(crate) fn handle(
    parts: &Arc<Parts>,
    live: &Arc<LiveRun>,
    root: SessionId,
    stream_from: u64,
) -> RunHandle {
    let control = Control {
        parts: Arc::clone(parts),
        session: live.session.clone(),
        run: live.run.clone(),
        root,
        stream_from,
        live: Some(Arc::clone(live)),
    };
    RunHandle::new(live.session.clone(), live.run.clone(), Arc::new(control))
}

/// A handle on a run found in the log; `live` is the session's run of this process, if any.
pub(crate) fn attach(
    parts: &Arc<Parts>,
    fold: &Session,
    run: &RunRecord,
    live: Option<Arc<LiveRun>>,
) -> RunHandle {
    let session = fold.id();
    let control = Control {
        parts: Arc::clone(parts),
        session: session.clone(),
        run: run.id.clone(),
        root: fold.root().clone(),
        stream_from: run.stream_from,
        live: live.filter(|live| live.run == run.id),
    };
    RunHandle::new(session.clone(), run.id.clone(), Arc::new(control))
}

impl Control {
    async fn follow(&self) -> Result<AgentResult> {
        loop {
            let head = self.parts.store.head(&self.session).await?;
            let current = head.and_then(|head| head.summary.run);
            if current.as_ref() != Some(&self.run) {
                break;
            }
            self.parts.clock.sleep(POLL).await;
        }
        let session = load(&*self.parts.store, &self.session).await?;
        match session.run(&self.run) {
            Some(run) if run.status == RunStatus::Superseded => {
                Err(self.error(ErrorCode::Superseded, "another run took over"))
            }
            Some(run) => Ok(AgentResult::of(run)),
            None => Err(self.error(ErrorCode::RunNotFound, "the session has no such run")),
        }
    }

    async fn ask(&self, kind: RequestKind, reason: Option<String>) -> Result<()> {
        let outside = self.parts.outside();
        request(outside, &self.session, Some(&self.run), kind, reason).await?;
        self.parts.runs.nudge();
        Ok(())
    }

    fn error(&self, code: ErrorCode, message: &'static str) -> Error {
        Error::new(code, message)
            .with_context("session", &self.session)
            .with_context("run", &self.run)
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
        if self.live.is_none() {
            self.parts.align_ended(&self.session).await?;
        }
        let chunks = self.parts.streams.read(&self.root, self.stream_from + 1).await?;
        let (session, run) = (self.session.clone(), self.run.clone());
        // Up to and with the chunk that ends this run, or up to the run that took over from it.
        let chunks = stream::unfold(Some(chunks), move |chunks| {
            let (session, run) = (session.clone(), run.clone());
            async move {
                let mut chunks = chunks?;
                let stored = match chunks.next().await? {
                    Ok(stored) => stored,
                    Err(error) => return Some((Err(error), None)),
                };
                let chunk = &stored.chunk;
                let own = chunk.session == session && chunk.run == run;
                let next_run = matches!(chunk.kind, ChunkKind::RunStarted | ChunkKind::RunResumed);
                if chunk.session == session && !own && next_run {
                    return None;
                }
                let last = own && chunk.kind.ends_run();
                Some((Ok(stored), (!last).then_some(chunks)))
            }
        });
        Ok(chunks.boxed())
    }

    async fn interrupt(&self, reason: Option<String>) -> Result<()> {
        self.ask(RequestKind::Interrupt, reason).await
    }

    async fn abort(&self, reason: Option<String>) -> Result<()> {
        self.ask(RequestKind::Abort, reason).await
    }

    async fn session(&self) -> Result<Session> {
        load(&*self.parts.store, &self.session).await
    }

    async fn usage_rollup(&self) -> Result<UsageRollup> {
        usage_of_tree(&*self.parts.store, &self.session).await
    }
}
