//! `helix interrupt` and `helix abort`: stop a run from another process.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use helix_agents::AnyStore;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::AgentExecutor as _;
use helix_agents::id::SessionId;
use helix_agents::store::{Head, SessionStatus};
use helix_agents::terminal::{Screen, notice};
use serde_json::json;

use crate::exit::Exit;
use crate::follow_up;
use crate::session_agent::{self, SessionAgent};
use crate::storage::{self, Which};

/// How long to wait for an aborted run to stop. Its tools get some seconds, and the lease of a process
/// that crashed meanwhile takes some more to expire.
const ABORT_TIMEOUT: Duration = Duration::from_secs(15);

/// The polling interval.
const PAUSE: Duration = Duration::from_millis(50);

/// The options of `helix interrupt`.
#[derive(Debug, Args)]
pub(crate) struct InterruptArgs {
    #[command(flatten)]
    which: Which,
    /// The reason that the log records.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// The options of `helix abort`.
#[derive(Debug, Args)]
pub(crate) struct AbortArgs {
    #[command(flatten)]
    which: Which,
    /// The reason that the log records.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The agent file, needed if no run is active. Default: the one that the session was created with.
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
}

/// Runs `helix interrupt`.
pub(crate) async fn interrupt(args: InterruptArgs, db: &Path, screen: &Screen) -> Result<Exit> {
    let store = storage::open(db).await?;
    let requested = request_interrupt(&args, &store, db, screen).await;
    storage::close(&store).await;
    requested.map(|()| Exit::Completed)
}

async fn request_interrupt(
    args: &InterruptArgs,
    store: &AnyStore,
    db: &Path,
    screen: &Screen,
) -> Result<()> {
    let head = args.which.head(store).await?;
    if !head.is_leased() {
        let reason = match (&head.summary.run, head.summary.status) {
            (Some(_), _) => {
                "its lease has expired, so its process has probably crashed: use `helix resume` to \
                 resume the run, or `helix abort` to end it"
            }
            (None, SessionStatus::Active) => {
                "the session waits for answers: use `helix abort` to end it"
            }
            (None, _) => "the last run of the session has already ended",
        };
        return Err(nothing_runs("interrupted", reason, &head).into());
    }
    let runtime = session_agent::runtime_without_model(store.clone())?;
    runtime.interrupt(&head.session, args.reason.clone()).await?;
    let resume = follow_up::resume_root(&head.created.root, store, db).await?;
    if screen.is_json() {
        screen.json(&json!({
            "session": head.session,
            "run": head.summary.run,
            "requested": "interrupt",
            "resume_command": resume,
        }))?;
    } else {
        screen.line("interrupt requested: the run stops at the end of the step")?;
        screen.field("resume", resume.as_deref().unwrap_or(follow_up::ELSEWHERE))?;
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

async fn end(args: &AbortArgs, store: &AnyStore, screen: &Screen) -> Result<()> {
    let mut head = args.which.head(store).await?;
    let has_ended = |head: &Head| match head.summary.status {
        SessionStatus::Completed | SessionStatus::Aborted => true,
        SessionStatus::Interrupted | SessionStatus::Failed | SessionStatus::Active => false,
    };
    if has_ended(&head) {
        return Err(nothing_runs(
            "aborted",
            "the last run of the session has already ended",
            &head,
        )
        .into());
    }
    let session = head.session.clone();
    if head.is_leased() {
        session_agent::runtime_without_model(store.clone())?
            .abort(&session, args.reason.clone())
            .await?;
        if !screen.is_json() {
            let most = ABORT_TIMEOUT.as_secs();
            notice(&format!("Abort requested: waiting for up to {most} s for the run to stop."));
        }
        let started = Instant::now();
        while head.is_leased() && started.elapsed() < ABORT_TIMEOUT {
            tokio::time::sleep(PAUSE).await;
            head = storage::head(store, session.as_str()).await?;
        }
        if head.is_leased() {
            return report(screen, &session, false);
        }
    }
    // No process executes the run, so this process aborts it.
    if !has_ended(&head) {
        if !screen.is_json() && head.summary.run.is_some() {
            notice(
                "The lease of the run has expired, so its process has probably crashed; aborting the run here.",
            );
        }
        let agent = SessionAgent::agent_of_session(&head, args.agent.as_deref())?;
        let runtime = session_agent::runtime_for_agent(agent, store.clone())?;
        runtime.abort(&session, args.reason.clone()).await?;
    }
    head = storage::head(store, session.as_str()).await?;
    if head.summary.status == SessionStatus::Aborted {
        return report(screen, &session, true);
    }
    // The run may have ended by itself in the meantime.
    let message =
        format!("the run ended as {} in the meantime and was not aborted", head.summary.status);
    Err(Error::new(ErrorCode::NothingToStop, message).with_context("session", &session).into())
}

fn report(screen: &Screen, session: &SessionId, aborted: bool) -> Result<()> {
    if screen.is_json() {
        screen.json(&json!({ "session": session, "requested": "abort", "aborted": aborted }))?;
    } else if aborted {
        screen.line(format!("aborted {session}"))?;
    } else {
        screen.line(format!(
            "abort requested, but the run has not stopped yet; check with `helix sessions show {session}`"
        ))?;
    }
    Ok(())
}

fn nothing_runs(action: &str, reason: &str, head: &Head) -> Error {
    let message = format!("no run can be {action}: {reason}");
    Error::new(ErrorCode::NothingToStop, message).with_context("session", &head.session)
}
