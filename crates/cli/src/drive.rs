//! A run from its beginning to its end, with a person in front of it.

mod requests;

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::{FutureExt as _, StreamExt as _};
use helix_agents::agent::AnyAgent;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::{AgentExecutor as _, AgentResult, ResumeOptions, RunHandle};
use helix_agents::runtime_local::LocalRuntime;
use helix_agents::stream::ChunkKind;
use helix_agents::usage::Usage;
use tokio::time::timeout;

use self::requests::Requests;
use crate::ask::Person;
use crate::exit::Exit;
use crate::failure;
use crate::live::{LiveView, ticks};
use crate::screen::notice;
use crate::signals::Signals;
use crate::stage::Stage;
use crate::summary::{self, Ended, Turn};

/// How long the last chunks may take after the run has ended.
const LAST_CHUNKS: Duration = Duration::from_millis(500);

/// Shows a run below a heading until it has ended, and tells how. The first Ctrl-C interrupts it at
/// the next step boundary, the second aborts it; a request to terminate shuts the runtime down, and
/// whatever is asked after that ends the program at once.
///
/// # Errors
/// [`Unshown`], and then the runtime is shut down.
pub(crate) async fn to_the_end(
    runtime: &LocalRuntime,
    agent: &AnyAgent,
    handle: RunHandle,
    person: Person,
    stage: Stage<'_>,
    heading: &str,
) -> Result<Exit> {
    let mut driven = Driven { runtime, agent, handle, stage, before: Usage::default(), person };
    let mut signals = Signals::listen()?;
    let shown = async {
        if !stage.screen.is_json() {
            stage.screen.text(heading)?;
        }
        let mut view = LiveView::new(stage.screen);
        match driven.perform(&mut view, &mut signals).await? {
            Ok(ended) => summary::show(&driven.handle, &ended, stage).await,
            Err(error) => Ok(stopped(error, &driven.handle, stage)),
        }
    };
    let shown = shown.await;
    driven.or_shut_down(shown, &mut signals).await
}

/// The same as a turn of a conversation, which goes on: everything but the answer is brief.
/// `before` are the conversation's tokens until then.
///
/// # Errors
/// [`Unshown`], and then the runtime is shut down.
pub(crate) async fn turn(
    runtime: &LocalRuntime,
    agent: &AnyAgent,
    handle: RunHandle,
    person: Person,
    stage: Stage<'_>,
    before: Usage,
) -> Result<Exit> {
    let mut driven = Driven { runtime, agent, handle, stage, before, person };
    let mut signals = Signals::listen()?;
    let shown = async {
        let mut view = LiveView::new(stage.screen).within_conversation();
        match driven.perform(&mut view, &mut signals).await? {
            Ok(ended) => {
                let turn = Turn { before, said: view.has_said() };
                summary::show_turn(&driven.handle, &ended, turn, stage).await
            }
            Err(error) => Ok(stopped(error, &driven.handle, stage)),
        }
    };
    let shown = shown.await;
    driven.or_shut_down(shown, &mut signals).await
}

/// That a run could not be shown to its end, and how to go on with it.
#[derive(Debug)]
pub(crate) struct Unshown {
    resume: String,
}

impl fmt::Display for Unshown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the run cannot be shown (to go on: {})", self.resume)
    }
}

/// Tells of a run that stopped without an end. Mostly whoever shut the runtime down wished it so.
fn stopped(error: Error, handle: &RunHandle, stage: Stage<'_>) -> Exit {
    let is_wish = error.code() == ErrorCode::Closed;
    let is_json = stage.screen.is_json();
    if is_wish && !is_json {
        let resume = summary::command("resume", handle.session(), stage.db);
        notice(&format!("stopped; to go on: {resume}"));
    } else {
        failure::report(&error.into(), is_json);
    }
    if is_wish { Exit::Interrupted } else { Exit::Failed }
}

/// A run under way.
struct Driven<'a> {
    runtime: &'a LocalRuntime,
    agent: &'a AnyAgent,
    /// The run, or the one that goes on with it after an answer.
    handle: RunHandle,
    stage: Stage<'a>,
    /// The tokens that are not the run's.
    before: Usage,
    person: Person,
}

impl Driven<'_> {
    /// Shows the run until it has ended or stopped. If it waits for a person who is there, that
    /// person is asked, and it goes on.
    async fn perform(
        &mut self,
        view: &mut LiveView<'_>,
        signals: &mut Signals,
    ) -> Result<Result<Ended, Error>> {
        loop {
            let result = match self.follow(view, signals).await? {
                Ok(result) => result,
                Err(error) => return Ok(Err(error)),
            };
            let ended = Ended::new(result, self.runtime, &self.handle).await?;
            let Stage { db, asks, .. } = self.stage;
            if !asks || !self.person.answers(self.runtime, &ended.waiting, db, signals).await? {
                return Ok(Ok(ended));
            }
            let (agent, session) = (Arc::clone(self.agent), self.handle.session().clone());
            self.handle = self.runtime.resume(agent, &session, ResumeOptions::default()).await?;
        }
    }

    /// Shows the run until it has ended or stopped.
    async fn follow(
        &self,
        view: &mut LiveView<'_>,
        signals: &mut Signals,
    ) -> Result<Result<AgentResult, Error>> {
        let is_json = self.stage.screen.is_json();
        let mut requests = Requests::new(&self.handle, self.stage);
        let mut ticks = ticks();
        let mut chunks = self.handle.stream().await?;
        let mut follows = !is_json;
        let mut result = pin!(self.handle.result());
        let mut shutdown = pin!(self.runtime.shutdown().fuse());
        let ended = loop {
            tokio::select! {
                biased;
                signal = signals.next() => requests.pass_on(signal, view).await?,
                chunk = chunks.next(), if follows => match chunk.transpose()? {
                    Some(chunk) => {
                        view.show(&chunk)?;
                        self.count(&chunk.chunk.kind, view).await?;
                    }
                    None => follows = false,
                },
                result = &mut result => break result,
                () = &mut shutdown, if requests.are_to_terminate() => {}
                _ = ticks.tick(), if view.has_status() => view.tick(),
            }
        };
        while follows && let Ok(Some(chunk)) = timeout(LAST_CHUNKS, chunks.next()).await {
            view.show(&chunk?)?;
        }
        view.finish()?;
        Ok(ended)
    }

    /// Takes in the run's tokens, which the log tells after each reply of the model.
    async fn count(&self, kind: &ChunkKind, view: &mut LiveView<'_>) -> Result<()> {
        if view.has_status() && matches!(kind, ChunkKind::StepCommitted { .. }) {
            let Usage { input_tokens, output_tokens, .. } = self.handle.usage().await?;
            view.count(
                input_tokens.saturating_sub(self.before.input_tokens),
                output_tokens.saturating_sub(self.before.output_tokens),
            );
        }
        Ok(())
    }

    /// Shuts the runtime down if the run could not be shown: it must not go on unseen, nor without
    /// the store, which is closed next.
    async fn or_shut_down(&self, shown: Result<Exit>, signals: &mut Signals) -> Result<Exit> {
        let Err(error) = shown else { return shown };
        tokio::select! {
            () = self.runtime.shutdown() => {}
            _ = signals.next() => requests::leave(&self.handle, self.stage),
        }
        let resume = summary::command("resume", self.handle.session(), self.stage.db);
        Err(error.context(Unshown { resume }))
    }
}
