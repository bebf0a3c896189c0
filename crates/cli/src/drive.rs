//! Follows an interactive run until it ends: shows its stream, handles signals and asks for approvals.

mod requests;
mod stopped;

use std::fmt;
use std::pin::pin;
use std::time::Duration;

use anyhow::Result;
use futures_util::{FutureExt as _, StreamExt as _};
use helix_agents::error::Error;
use helix_agents::executor::{AgentResult, ResumeOptions, RunHandle};
use helix_agents::stream::ChunkKind;
use helix_agents::terminal::{LiveView, ticks};
use helix_agents::usage::Usage;
use tokio::time::timeout;

use self::requests::Requests;
use self::stopped::stopped;
use crate::approver::Approver;
use crate::executor::Executor;
use crate::exit::Exit;
use crate::follow_up;
use crate::run_view::RunView;
use crate::signals::Signals;
use crate::summary::{self, EndedRun, Turn};

/// The time to wait for the last chunks after the run has ended.
const LAST_CHUNKS: Duration = Duration::from_millis(500);

/// Shows a run below a heading until it ends, then shows its result. The first Ctrl-C interrupts the run
/// at the next step boundary, the second aborts it. SIGTERM shuts the runtime down (a run at a server continues), and any
/// further signal ends the program immediately.
///
/// # Errors
/// Returns [`OutputFailed`] if the output fails. The runtime is shut down then.
pub(crate) async fn run_to_end(
    executor: &Executor,
    handle: RunHandle,
    approver: Approver,
    run_view: RunView<'_>,
    heading: &str,
) -> Result<Exit> {
    let mut followed =
        FollowedRun { executor, handle, run_view, before: Usage::default(), approver };
    let mut signals = Signals::listen()?;
    let shown = async {
        if !run_view.screen.is_json() {
            run_view.screen.text(heading)?;
        }
        let mut view = LiveView::new(run_view.screen);
        match followed.perform(&mut view, &mut signals).await? {
            Ok(ended) => summary::show(&followed.handle, &ended, run_view),
            Err(error) => Ok(stopped(error, &followed.handle, run_view)),
        }
    };
    let shown = shown.await;
    followed.or_shut_down(shown, &mut signals).await
}

/// Like [`run_to_end`], for one turn of a conversation: everything but the answer is brief. `before` is
/// the token usage of the session before the turn.
///
/// # Errors
/// Returns [`OutputFailed`] if the output fails. The runtime is shut down then.
pub(crate) async fn turn(
    executor: &Executor,
    handle: RunHandle,
    approver: Approver,
    run_view: RunView<'_>,
    before: Usage,
) -> Result<Exit> {
    let mut followed = FollowedRun { executor, handle, run_view, before, approver };
    let mut signals = Signals::listen()?;
    let shown = async {
        let mut view = LiveView::new(run_view.screen).within_conversation();
        match followed.perform(&mut view, &mut signals).await? {
            Ok(ended) => {
                let turn = Turn { before, text_shown: view.is_text_shown() };
                summary::show_turn(&followed.handle, &ended, turn, run_view)
            }
            Err(error) => Ok(stopped(error, &followed.handle, run_view)),
        }
    };
    let shown = shown.await;
    followed.or_shut_down(shown, &mut signals).await
}

/// The error if the output of a run failed, with the command that resumes the run.
#[derive(Debug)]
pub(crate) struct OutputFailed {
    resume: String,
}

impl fmt::Display for OutputFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the output of the run cannot be written (to resume: {})", self.resume)
    }
}

/// A run that is followed.
struct FollowedRun<'a> {
    executor: &'a Executor,
    /// The handle of the run; replaced when the run is resumed after an answer.
    handle: RunHandle,
    run_view: RunView<'a>,
    /// The token usage of the session before the run.
    before: Usage,
    approver: Approver,
}

impl FollowedRun<'_> {
    /// Follows the run until it ends or stops. If it is suspended for approvals and the user can be
    /// asked, asks the user and resumes it.
    async fn perform(
        &mut self,
        view: &mut LiveView<'_>,
        signals: &mut Signals,
    ) -> Result<Result<EndedRun, Error>> {
        loop {
            let result = match self.follow(view, signals).await? {
                Ok(result) => result,
                Err(error) => return Ok(Err(error)),
            };
            let place = self.executor.place();
            let ended = EndedRun::new(result, place, &self.handle).await?;
            let RunView { db, interactive, .. } = self.run_view;
            if !interactive || !self.approver.ask_all(place, &ended.waiting, db, signals).await? {
                return Ok(Ok(ended));
            }
            let session = self.handle.session().clone();
            self.handle = self.executor.resume(&session, ResumeOptions::default()).await?;
        }
    }

    /// Follows the run until it ends, is suspended or stops.
    async fn follow(
        &self,
        view: &mut LiveView<'_>,
        signals: &mut Signals,
    ) -> Result<Result<AgentResult, Error>> {
        let is_json = self.run_view.screen.is_json();
        let mut requests = Requests::new(&self.handle, self.run_view);
        let mut ticks = ticks();
        let mut chunks = self.handle.stream().await?;
        let mut follows = !is_json;
        let mut result = pin!(self.handle.result());
        let mut shutdown = pin!(self.executor.shutdown().fuse());
        let ended = loop {
            tokio::select! {
                biased;
                signal = signals.next() => requests.forward(signal, view).await?,
                chunk = chunks.next(), if follows => match chunk.transpose()? {
                    Some(chunk) => {
                        view.show(&chunk)?;
                        self.count(&chunk.chunk.kind, view).await?;
                    }
                    None => follows = false,
                },
                result = &mut result => break result,
                left = &mut shutdown, if requests.is_terminating() => if let Some(error) = left {
                    break Err(error);
                },
                _ = ticks.tick(), if view.has_status() => view.tick(),
            }
        };
        while follows && let Ok(Some(chunk)) = timeout(LAST_CHUNKS, chunks.next()).await {
            view.show(&chunk?)?;
        }
        view.finish()?;
        Ok(ended)
    }

    /// Updates the token count of the view. The log has it after each step.
    async fn count(&self, kind: &ChunkKind, view: &mut LiveView<'_>) -> Result<()> {
        if view.has_status() && matches!(kind, ChunkKind::StepCommitted { .. }) {
            let session = self.executor.place().overview(self.handle.session()).await?;
            let tokens = session.usage.tokens.since(&self.before);
            view.count(tokens.input_tokens, tokens.output_tokens);
        }
        Ok(())
    }

    /// Shuts the runtime down if the output failed: the run must not continue without output, nor
    /// without the store, which is closed next.
    async fn or_shut_down(&self, shown: Result<Exit>, signals: &mut Signals) -> Result<Exit> {
        let Err(error) = shown else { return shown };
        tokio::select! {
            _ = self.executor.shutdown() => {}
            _ = signals.next() => requests::leave(&self.handle, self.run_view),
        }
        let resume = follow_up::command("resume", self.handle.session(), self.run_view.db);
        Err(error.context(OutputFailed { resume }))
    }
}
