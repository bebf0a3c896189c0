//! A run from its beginning to its end, with a person in front of it.

use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures_util::StreamExt as _;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::{AgentResult, RunHandle};
use helix_agents::runtime_local::LocalRuntime;
use tokio::time::timeout;

use crate::exit::Exit;
use crate::failure;
use crate::live::LiveView;
use crate::screen::{Screen, notice};
use crate::signals::{Signal, Signals};
use crate::summary::{self, Circumstances};

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

/// Shows a run until it has ended, and tells how. The first Ctrl-C interrupts it at the next step
/// boundary, the second aborts it; a request to terminate shuts the runtime down.
pub(crate) async fn to_the_end(
    runtime: &LocalRuntime,
    handle: &RunHandle,
    screen: &Screen,
    around: Around<'_>,
) -> Result<Exit> {
    match follow(runtime, handle, screen).await {
        Ok(result) => {
            let Around { db, model, began } = around;
            let around = Circumstances { db, model, took: Some(began.elapsed()) };
            summary::show(screen, handle, &result, around).await
        }
        Err(error) if is_shut_down(&error) && !screen.is_json() => {
            let session = handle.fold().await?;
            let resume = summary::command("resume", &session, around.db);
            notice(&format!("stopped; to go on: {resume}"));
            Ok(Exit::Interrupted)
        }
        Err(error) if is_shut_down(&error) => {
            failure::report(&error, true);
            Ok(Exit::Interrupted)
        }
        Err(error) => Err(error),
    }
}

fn is_shut_down(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Error>().is_some_and(|error| error.code() == ErrorCode::Closed)
}

async fn follow(
    runtime: &LocalRuntime,
    handle: &RunHandle,
    screen: &Screen,
) -> Result<AgentResult> {
    let mut signals = Signals::listen()?;
    let mut requests = Requests { runtime, handle, interrupts: 0, quiet: screen.is_json() };
    let mut view = LiveView::new(screen);
    let mut chunks = handle.stream().await?;
    let mut follows = !screen.is_json();
    let mut result = pin!(handle.result());
    let ended = loop {
        tokio::select! {
            biased;
            signal = signals.next() => requests.pass_on(signal).await?,
            chunk = chunks.next(), if follows => match chunk {
                Some(chunk) => view.show(&chunk?)?,
                None => follows = false,
            },
            result = &mut result => break result,
        }
    };
    while follows && let Ok(Some(chunk)) = timeout(LAST_CHUNKS, chunks.next()).await {
        view.show(&chunk?)?;
    }
    view.finish()?;
    Ok(ended?)
}

struct Requests<'a> {
    runtime: &'a LocalRuntime,
    handle: &'a RunHandle,
    interrupts: u32,
    quiet: bool,
}

impl Requests<'_> {
    async fn pass_on(&mut self, signal: Signal) -> Result<()> {
        if signal == Signal::Terminate {
            self.say("terminating: the session can be resumed");
            self.runtime.shutdown().await;
            return Ok(());
        }
        self.interrupts += 1;
        let reason = Some("Ctrl-C".to_owned());
        let passed_on = if self.interrupts == 1 {
            self.say("interrupting at the end of this step; Ctrl-C again aborts");
            self.handle.interrupt(reason).await
        } else {
            self.say("aborting");
            self.handle.abort(reason).await
        };
        match passed_on {
            Err(error) if error.code() != ErrorCode::NothingToResume => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn say(&self, message: &str) {
        if !self.quiet {
            notice(message);
        }
    }
}
