//! `helix interrupt` and `helix abort`: stop a run from another process.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use futures_util::StreamExt as _;
use helix_agents::AnyStore;
use helix_agents::client::{Client, StopRequest};
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::AgentExecutor as _;
use helix_agents::id::SessionId;
use helix_agents::store::{Head, SessionStatus};
use helix_agents::terminal::{Screen, notice};
use serde_json::json;

use crate::exit::Exit;
use crate::follow_up;
use crate::location::Location;
use crate::place::{Access, Place};
use crate::session_agent::{self, SessionAgent};
use crate::which::Which;

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
pub(crate) async fn interrupt(args: InterruptArgs, db: &Location, screen: &Screen) -> Result<Exit> {
    let place = Place::open(db, Access::Write).await?;
    let requested = request_interrupt(&args, &place, db, screen).await;
    place.close().await;
    requested.map(|()| Exit::Completed)
}

async fn request_interrupt(
    args: &InterruptArgs,
    place: &Place,
    db: &Location,
    screen: &Screen,
) -> Result<()> {
    let head = args.which.head(place).await?;
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
    place.interrupt(&head.session, args.reason.clone()).await?;
    let resume = follow_up::resume_root(&head.created.root, place, db).await?;
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
pub(crate) async fn abort(args: AbortArgs, db: &Location, screen: &Screen) -> Result<Exit> {
    let place = Place::open(db, Access::Write).await?;
    let ended = match &place {
        Place::Store { store, .. } => end(&args, &place, store, screen).await,
        Place::Server(client) => end_at_server(&args, &place, client, screen).await,
    };
    place.close().await;
    ended.map(|()| Exit::Completed)
}

fn has_ended(head: &Head) -> bool {
    match head.summary.status {
        SessionStatus::Completed | SessionStatus::Aborted => true,
        SessionStatus::Interrupted | SessionStatus::Failed | SessionStatus::Active => false,
    }
}

fn already_ended(head: &Head) -> Error {
    nothing_runs("aborted", "the last run of the session has already ended", head)
}

/// Aborts a run at a server, which also aborts one whose process has crashed.
async fn end_at_server(
    args: &AbortArgs,
    place: &Place,
    client: &Client,
    screen: &Screen,
) -> Result<()> {
    let head = args.which.head(place).await?;
    let mut request = StopRequest::new(head.session.clone());
    request.reason.clone_from(&args.reason);
    if !client.abort(request).await.map_err(Error::from)? {
        return Err(already_ended(&head).into());
    }
    let rest = async {
        let mut chunks = client.follow(&head.session);
        while let Some(Ok(_)) = chunks.next().await {}
    };
    let has_stopped = tokio::time::timeout(ABORT_TIMEOUT, rest).await.is_ok();
    let head = place.head(head.session.as_str()).await?;
    report(screen, &head.session, has_stopped && head.summary.status == SessionStatus::Aborted)
}

async fn end(args: &AbortArgs, place: &Place, store: &AnyStore, screen: &Screen) -> Result<()> {
    let mut head = args.which.head(place).await?;
    if has_ended(&head) {
        return Err(already_ended(&head).into());
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
            head = place.head(session.as_str()).await?;
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
    head = place.head(session.as_str()).await?;
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
