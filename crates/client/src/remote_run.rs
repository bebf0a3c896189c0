//! A run at a server, as its handle operates on it.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt as _, future};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::{AgentResult, RunControl, RunHandle};
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::session::{RunStatus, Session};
use helix_agents_core::stream::ChunkStream;
use helix_agents_core::usage::UsageRollup;
use tokio::sync::OnceCell;

use crate::api::{RunSummary, StopRequest};
use crate::client::Client;
use crate::follow::FollowOptions;

/// The operations on the turn of a run, from this run on.
///
/// A process that takes a run over continues its turn as another run. A client that lost its server for a while has to
/// continue with that run.
#[derive(Debug)]
struct RemoteRun {
    client: Client,
    session: SessionId,
    run: RunId,
    place: OnceCell<Place>,
}

/// The facts about a run that never change.
#[derive(Debug, Clone, Copy)]
struct Place {
    turn: u32,
    /// The stream's last sequence number before the run.
    stream_from: u64,
}

impl Client {
    /// Returns a handle to a run, with the operations that the handles of runtimes have. It makes no request.
    ///
    /// If the process of the run is killed, another one continues its turn as a run with another id. The handle then
    /// belongs to that run: its result is that of the turn, its stream continues, and a request to stop goes to the run
    /// in progress.
    #[must_use]
    pub fn handle(&self, session: &SessionId, run: &RunId) -> RunHandle {
        let control = RemoteRun::new(self.clone(), session.clone(), run.clone());
        RunHandle::new(session.clone(), run.clone(), Arc::new(control))
    }
}

impl RemoteRun {
    fn new(client: Client, session: SessionId, run: RunId) -> Self {
        Self { client, session, run, place: OnceCell::new() }
    }

    async fn place(&self) -> Result<Place> {
        let place = self.place.get_or_try_init(|| async {
            let run = self.run_or_heir(|run| run.run == self.run).await?;
            let run = run.ok_or_else(|| self.unknown())?;
            Ok::<_, Error>(Place { turn: run.turn, stream_from: run.stream_from })
        });
        place.await.copied()
    }

    /// Returns the first run from this one on that meets a condition. Most handles are of the last run, whose status is
    /// small.
    async fn run_or_heir(
        &self,
        is_wanted: impl Fn(&RunSummary) -> bool,
    ) -> Result<Option<RunSummary>> {
        let last = self.client.status(&self.session).await?.last_run;
        if let Some(last) = last.filter(|last| last.run == self.run && is_wanted(last)) {
            return Ok(Some(last));
        }
        let runs = self.client.session(&self.session).await?.runs;
        let mut from_here = runs.into_iter().skip_while(|run| run.run != self.run).peekable();
        if from_here.peek().is_none() {
            return Err(self.unknown());
        }
        Ok(from_here.find(is_wanted))
    }

    fn unknown(&self) -> Error {
        let message = "the session has no run with this id";
        Error::new(ErrorCode::RunNotFound, message).with_context("run", &self.run)
    }

    /// Waits until no run is in progress.
    async fn rest(&self) -> Result<()> {
        let status = self.client.status(&self.session).await?;
        let options = FollowOptions::default().from(status.last_seq + 1).without_children();
        let mut chunks = self.client.follow_with(&self.session, options);
        while let Some(chunk) = chunks.next().await {
            chunk?;
        }
        Ok(())
    }

    /// Returns the request that stops the run in progress, if it belongs to this turn.
    async fn stop_request(&self, reason: Option<String>) -> Result<StopRequest> {
        let turn = self.place().await?.turn;
        let status = self.client.status(&self.session).await?;
        let current = status.last_run.filter(|run| run.turn == turn).ok_or_else(nothing_to_stop)?;
        let mut request = StopRequest::new(self.session.clone()).run(current.run);
        request.reason = reason;
        Ok(request)
    }
}

#[async_trait]
impl RunControl for RemoteRun {
    async fn result(&self) -> Result<AgentResult> {
        loop {
            self.rest().await?;
            // A run that was taken over has the result of the one that took it over.
            let heir = self.run_or_heir(|run| run.status != RunStatus::Superseded).await?;
            if let Some(run) = heir.filter(|run| run.status != RunStatus::Running) {
                return Ok(run.into_result());
            }
            // Another run has started since.
            tokio::time::sleep(self.client.transport.limits.base_wait).await;
        }
    }

    async fn stream(&self) -> Result<ChunkStream> {
        let from = self.place().await?.stream_from + 1;
        let chunks = self.client.follow_with(&self.session, FollowOptions::default().from(from));
        let session = self.session.clone();
        let chunks =
            chunks.map(|chunk| chunk.map_err(Error::from)).scan(false, move |has_ended, next| {
                let is_end = next.as_ref().map_or(true, |stored| {
                    stored.chunk.session == session && stored.chunk.kind.ends_run()
                });
                let next = if std::mem::replace(has_ended, is_end) { None } else { Some(next) };
                future::ready(next)
            });
        Ok(chunks.boxed())
    }

    async fn interrupt(&self, reason: Option<String>) -> Result<()> {
        let request = self.stop_request(reason).await?;
        if self.client.interrupt(request).await? { Ok(()) } else { Err(nothing_to_stop()) }
    }

    async fn abort(&self, reason: Option<String>) -> Result<()> {
        let request = self.stop_request(reason).await?;
        if self.client.abort(request).await? { Ok(()) } else { Err(nothing_to_stop()) }
    }

    async fn session(&self) -> Result<Session> {
        Ok(self.client.load(&self.session).await?)
    }

    async fn usage(&self) -> Result<UsageRollup> {
        Ok(self.client.status(&self.session).await?.usage)
    }
}

fn nothing_to_stop() -> Error {
    Error::new(ErrorCode::NothingToStop, "the run has ended")
}
