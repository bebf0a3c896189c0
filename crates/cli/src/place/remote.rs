//! The sessions of a server, in the types of those in a database.

use std::sync::Arc;

use helix_agents::client::{Client, SessionQuery, SessionSummary};
use helix_agents::clock::Timestamp;
use helix_agents::error::{Error, ErrorCode, Result};
use helix_agents::executor::{Resumable, RunHandle};
use helix_agents::id::{AppendId, SessionId};
use helix_agents::session::{self, CallRef, PendingCallView};
use helix_agents::store::{Head, NewSession, Page, Position, SessionFilter, Summary};

/// Returns the head of a session.
pub(super) async fn head(client: &Client, session: &SessionId) -> Result<Head> {
    Ok(head_of(client.status(session).await?.summary))
}

/// Returns the head of the newest root session.
pub(super) async fn newest(client: &Client) -> Result<Head> {
    let mut query = SessionQuery::new().limit(1);
    loop {
        // A part may be empty although there is another one.
        let part = client.sessions(&query).await?;
        if let Some(summary) = part.sessions.into_iter().next() {
            return Ok(head_of(summary));
        }
        let Some(next) = part.next else {
            return Err(Error::new(ErrorCode::SessionNotFound, "there are no sessions yet"));
        };
        query = query.after(next);
    }
}

/// Returns a page of heads of the sessions with the labels of a filter.
pub(super) async fn list(
    client: &Client,
    filter: &SessionFilter,
    page: &Page,
) -> Result<Vec<Head>> {
    let mut query = SessionQuery::new().limit(page.limit);
    query.labels.clone_from(&filter.tags);
    query.after = page.after.as_ref().map(ToString::to_string);
    let most = page.limit as usize;
    let mut heads = Vec::new();
    loop {
        let part = client.sessions(&query).await?;
        heads.extend(part.sessions.into_iter().map(head_of));
        match part.next {
            Some(next) if heads.len() < most => query = query.after(next),
            _ => break,
        }
    }
    heads.truncate(most);
    Ok(heads)
}

/// Returns at most `most` pending calls of all sessions.
pub(super) async fn all_pending_calls(
    client: &Client,
    most: usize,
) -> Result<Vec<PendingCallView>> {
    let (mut calls, mut query) = (Vec::new(), SessionQuery::new().pending());
    loop {
        let part = client.sessions(&query).await?;
        for summary in part.sessions {
            if calls.len() >= most {
                break;
            }
            match client.status(&summary.session).await {
                Ok(status) => calls.extend(status.pending_calls),
                // The session was deleted meanwhile.
                Err(error) if error.is(ErrorCode::SessionNotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match part.next {
            Some(next) if calls.len() < most => query = query.after(next),
            _ => break,
        }
    }
    calls.truncate(most);
    Ok(calls)
}

/// Returns a pending call.
pub(super) async fn pending_call(
    client: &Client,
    root: &SessionId,
    call: &CallRef,
) -> Result<PendingCallView> {
    let pending = client.status(root).await?.pending_calls;
    let is_named = |view: &PendingCallView| {
        let session = call.session.as_ref().unwrap_or(root);
        view.session == *session && view.pending.call == call.call
    };
    pending.into_iter().find(is_named).ok_or_else(|| {
        Error::new(ErrorCode::CallNotFound, "the call is not pending").with_context("call", call)
    })
}

/// Returns whether a session can be resumed.
pub(super) async fn can_resume(client: &Client, session: &SessionId) -> Result<Resumable> {
    let status = client.status(session).await?;
    Ok(match &*status.summary.state {
        _ if status.can_resume => Resumable::Yes,
        "running" | "stopped" => Resumable::Running,
        "waiting" | "answered" => Resumable::Waiting,
        _ => Resumable::Ended,
    })
}

/// Returns the version of the checkpoint after a step.
pub(super) async fn checkpoint_after(
    client: &Client,
    session: &SessionId,
    step: u32,
) -> Result<u64> {
    let checkpoints = client.checkpoints(session).await?;
    Ok(session::checkpoint_after(&checkpoints, session, step)?.version)
}

/// Returns a handle to the last run of a session.
pub(super) async fn last_run(client: &Client, session: &SessionId) -> Result<RunHandle> {
    let run = client.status(session).await?.last_run.ok_or_else(|| {
        Error::new(ErrorCode::RunNotFound, "the session has no run")
            .with_context("session", session)
    })?;
    Ok(client.handle(session, &run.run))
}

/// Returns the head of a session. A server tells neither the tags of the program nor the end of a lease: of the tags, the
/// head has the labels, and a run in progress has a lease.
fn head_of(summary: SessionSummary) -> Head {
    let now = summary.updated_at;
    let is_leased = summary.state == "running";
    Head {
        created: NewSession {
            agent: Arc::from(summary.agent),
            root: summary.root,
            parent: summary.parent,
            tags: summary.labels,
        },
        position: Position { version: summary.version, append: AppendId::from("") },
        summary: Summary {
            status: summary.status,
            run: summary.run,
            runtime: Arc::from(""),
            pending: summary.pending,
            wake_at: None,
        },
        lease_until: is_leased.then_some(Timestamp(now.0.saturating_add(1))),
        created_at: summary.created_at,
        updated_at: now,
        read_at: now,
        session: summary.session,
    }
}
