//! A run from its beginning to its end, with a person in front of it.

use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures_util::StreamExt as _;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::{AgentResult, RunHandle};
use helix_agents::runtime_local::LocalRuntime;
use helix_agents::stream::ChunkKind;
use helix_agents::usage::Usage;
use tokio::time::timeout;

use crate::exit::Exit;
use crate::failure;
use crate::live::{LiveView, ticks};
use crate::screen::{Screen, notice};
use crate::signals::{Signal, Signals};
use crate::summary::{self, Circumstances, Turn};

/// How long the last chunks may take after the run has ended.
const LAST_CHUNKS: Duration = Duration::from_millis(500);

/// What a run happens in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Around<'a> {
    /// The database file.
    pub(crate) db: &'a Path,
    /// The model's name.
    pub(crate) model: &'a str,
    /// When the command began.
    pub(crate) began: Instant,
}

impl<'a> Around<'a> {
    fn circumstances(self) -> Circumstances<'a> {
        Circumstances { db: self.db, model: self.model, took: Some(self.began.elapsed()) }
    }
}

/// Shows a run until it has ended, and tells how. The first Ctrl-C interrupts it at the next step
/// boundary, the second aborts it; a request to terminate shuts the runtime down.
pub(crate) async fn to_the_end(
    runtime: &LocalRuntime,
    handle: &RunHandle,
    screen: &Screen,
    around: Around<'_>,
) -> Result<Exit> {
    let mut view = LiveView::new(screen);
    let tokens = Tokens { handle, before: Usage::default() };
    match follow(runtime, tokens, screen, &mut view).await {
        Ok(result) => summary::show(screen, handle, &result, around.circumstances()).await,
        Err(error) => stopped(error, handle, screen, around),
    }
}

/// The same as a turn of a conversation, which goes on: everything but the answer is brief.
/// `before` are the conversation's tokens until then.
pub(crate) async fn turn(
    runtime: &LocalRuntime,
    handle: &RunHandle,
    screen: &Screen,
    around: Around<'_>,
    before: Usage,
) -> Result<Exit> {
    let mut view = LiveView::new(screen).within_conversation();
    match follow(runtime, Tokens { handle, before }, screen, &mut view).await {
        Ok(result) => {
            let turn = Turn { before, said: view.has_said() };
            summary::show_turn(screen, handle, &result, turn, around.circumstances()).await
        }
        Err(error) => stopped(error, handle, screen, around),
    }
}

/// Tells of a run that did not end: that was the wish of whoever shut the runtime down.
fn stopped(
    error: anyhow::Error,
    handle: &RunHandle,
    screen: &Screen,
    around: Around<'_>,
) -> Result<Exit> {
    if !is_shut_down(&error) {
        return Err(error);
    }
    if screen.is_json() {
        failure::report(&error, true);
    } else {
        let resume = summary::command("resume", handle.session(), around.db);
        notice(&format!("stopped; to go on: {resume}"));
    }
    Ok(Exit::Interrupted)
}

fn is_shut_down(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Error>().is_some_and(|error| error.code() == ErrorCode::Closed)
}

async fn follow(
    runtime: &LocalRuntime,
    tokens: Tokens<'_>,
    screen: &Screen,
    view: &mut LiveView<'_>,
) -> Result<AgentResult> {
    let handle = tokens.handle;
    let mut signals = Signals::listen()?;
    let mut requests = Requests { runtime, handle, interrupts: 0, quiet: screen.is_json() };
    let mut ticks = ticks();
    let mut chunks = handle.stream().await?;
    let mut follows = !screen.is_json();
    let mut result = pin!(handle.result());
    let ended = loop {
        tokio::select! {
            biased;
            signal = signals.next() => requests.pass_on(signal, view).await?,
            chunk = chunks.next(), if follows => match chunk.transpose()? {
                Some(chunk) => {
                    view.show(&chunk)?;
                    tokens.follow(&chunk.chunk.kind, view).await?;
                }
                None => follows = false,
            },
            result = &mut result => break result,
            _ = ticks.tick(), if view.has_status() => view.tick(),
        }
    };
    while follows && let Ok(Some(chunk)) = timeout(LAST_CHUNKS, chunks.next()).await {
        view.show(&chunk?)?;
    }
    view.finish()?;
    Ok(ended?)
}

/// A run and its tokens, which the log tells after each reply of the model.
struct Tokens<'a> {
    handle: &'a RunHandle,
    /// Those that are not the run's.
    before: Usage,
}

impl Tokens<'_> {
    async fn follow(&self, kind: &ChunkKind, view: &mut LiveView<'_>) -> Result<()> {
        if view.has_status() && matches!(kind, ChunkKind::StepCommitted { .. }) {
            let Usage { input_tokens, output_tokens, .. } = self.handle.usage().await?;
            view.count(
                input_tokens.saturating_sub(self.before.input_tokens),
                output_tokens.saturating_sub(self.before.output_tokens),
            );
        }
        Ok(())
    }
}

struct Requests<'a> {
    runtime: &'a LocalRuntime,
    handle: &'a RunHandle,
    interrupts: u32,
    quiet: bool,
}

impl Requests<'_> {
    async fn pass_on(&mut self, signal: Signal, view: &mut LiveView<'_>) -> Result<()> {
        if signal == Signal::Terminate {
            self.say("terminating: the session can be resumed");
            view.ask("terminating");
            self.runtime.shutdown().await;
            return Ok(());
        }
        self.interrupts += 1;
        let reason = Some("Ctrl-C".to_owned());
        let (asked, what, says) = if self.interrupts == 1 {
            let says = "interrupting at the end of this step; Ctrl-C again aborts";
            (self.handle.interrupt(reason).await, "interrupting", says)
        } else {
            (self.handle.abort(reason).await, "aborting", "aborting")
        };
        match asked {
            Ok(()) => {
                self.say(says);
                view.ask(what);
                Ok(())
            }
            // It has ended meanwhile.
            Err(error) if error.code() == ErrorCode::NothingToResume => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn say(&self, message: &str) {
        if !self.quiet {
            notice(message);
        }
    }
}
