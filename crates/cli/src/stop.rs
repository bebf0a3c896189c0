//! `helix interrupt` and `helix abort`: stop a run from another process than its own.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::AgentExecutor as _;
use helix_agents::id::SessionId;
use helix_agents::store::{Head, SessionStatus};
use serde_json::json;

use crate::cast::{self, Cast};
use crate::exit::Exit;
use crate::screen::{Screen, notice};
use crate::storage::{self, Which};
use crate::store::Store;
use crate::summary;

/// How long to wait for a run that was asked to stop at once: its tools get some seconds, and a
/// process that died meanwhile counts as alive for some more.
const PATIENCE: Duration = Duration::from_secs(15);

/// How often to look.
const PAUSE: Duration = Duration::from_millis(50);

/// The options of `helix interrupt`.
#[derive(Debug, Args)]
pub(crate) struct InterruptArgs {
    #[command(flatten)]
    which: Which,
    /// Why, for people who read the log.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// The options of `helix abort`.
#[derive(Debug, Args)]
pub(crate) struct AbortArgs {
    #[command(flatten)]
    which: Which,
    /// Why, for people who read the log.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The agent file, if nothing runs. Default: the one that the session was begun from.
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
}

/// Runs `helix interrupt`.
pub(crate) async fn interrupt(args: InterruptArgs, db: &Path, screen: &Screen) -> Result<Exit> {
    let store = storage::open(db).await?;
    let asked = ask_to_interrupt(&args, &store, db, screen).await;
    storage::close(&store).await;
    asked.map(|()| Exit::Completed)
}

async fn ask_to_interrupt(
    args: &InterruptArgs,
    store: &Store,
    db: &Path,
    screen: &Screen,
) -> Result<()> {
    let head = args.which.head(store).await?;
    if !head.is_leased() {
        let why = match (&head.summary.run, head.summary.status) {
            (Some(_), _) => {
                "the process of the run is gone: `helix resume` goes on with it, and \
                             `helix abort` ends it"
            }
            (None, SessionStatus::Active) => {
                "the session waits for people: `helix abort` ends that"
            }
            (None, _) => "its last run has ended",
        };
        return Err(nothing_runs("interrupted", why, &head).into());
    }
    let runtime = cast::spectator(store.clone())?;
    runtime.interrupt(&head.session, args.reason.clone()).await?;
    let resume = summary::resume_root(&head.created.root, store, db).await?;
    if screen.is_json() {
        screen.json(&json!({
            "session": head.session,
            "run": head.summary.run,
            "requested": "interrupt",
            "resume_command": resume,
        }))?;
    } else {
        screen.line("asked to stop at the end of the step")?;
        screen.field("go on", resume.as_deref().unwrap_or(summary::ELSEWHERE))?;
    }
    Ok(())
}

/// Runs `helix abort`.
pub(crate) async fn abort(args: AbortArgs, db: &Path, screen: &Screen) -> Result<Exit> {
    let store = storage::open(db).await?;
    let ended = end(&args, &store, screen).await;
    storage::close(&store).await;
    ended.map(|()| Exit::Completed)
}

async fn end(args: &AbortArgs, store: &Store, screen: &Screen) -> Result<()> {
    let mut head = args.which.head(store).await?;
    let has_ended = |head: &Head| match head.summary.status {
        SessionStatus::Completed | SessionStatus::Aborted => true,
        SessionStatus::Interrupted | SessionStatus::Failed | SessionStatus::Active => false,
    };
    if has_ended(&head) {
        return Err(nothing_runs("aborted", "its last run has ended", &head).into());
    }
    let session = head.session.clone();
    if head.is_leased() {
        cast::spectator(store.clone())?.abort(&session, args.reason.clone()).await?;
        if !screen.is_json() {
            let most = PATIENCE.as_secs();
            notice(&format!("Asked the run to stop: waiting for up to {most} s until it has."));
        }
        let began = Instant::now();
        while head.is_leased() && began.elapsed() < PATIENCE {
            tokio::time::sleep(PAUSE).await;
            head = storage::head(store, session.as_str()).await?;
        }
        if head.is_leased() {
            return tell(screen, &session, false);
        }
    }
    // Nobody works on it (any more), so this process ends it.
    if !has_ended(&head) {
        if !screen.is_json() && head.summary.run.is_some() {
            notice("The process of the run is gone; ending its session.");
        }
        let agent = Cast::agent_of_session(&head, args.agent.as_deref())?;
        let runtime = cast::executor_of(agent, store.clone())?;
        runtime.abort(&session, args.reason.clone()).await?;
    }
    head = storage::head(store, session.as_str()).await?;
    if head.summary.status == SessionStatus::Aborted {
        return tell(screen, &session, true);
    }
    // It can have ended by itself in the meantime.
    let message = format!("the run has {} meanwhile, and was not aborted", head.summary.status);
    Err(Error::new(ErrorCode::NothingToResume, message).with_context("session", &session).into())
}

fn tell(screen: &Screen, session: &SessionId, aborted: bool) -> Result<()> {
    if screen.is_json() {
        screen.json(&json!({ "session": session, "requested": "abort", "aborted": aborted }))?;
    } else if aborted {
        screen.line(format!("aborted {session}"))?;
    } else {
        screen.line(format!("asked {session} to stop at once; it has not ended yet"))?;
    }
    Ok(())
}

fn nothing_runs(what: &str, why: &str, head: &Head) -> Error {
    let message = format!("there is no run that could be {what}: {why}");
    Error::new(ErrorCode::NothingToResume, message).with_context("session", &head.session)
}
