//! The routes below `/sessions`.

use std::collections::BTreeMap;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::decode;
use helix_agents_core::id::SessionId;
use helix_agents_core::session::Session;
use helix_agents_core::store::{SessionFilter, SessionStatus};
use helix_agents_core::stream::StoredChunk;
use serde::Serialize;

use crate::api::{
    CheckpointsBody, ListQuery, LogBody, LogQuery, RunBody, SessionBody, SessionsBody,
    ShownMessage, SummaryBody,
};
use crate::api_error::ApiError;
use crate::auth::{Principal, Scope};
use crate::call::to_json;
use crate::metadata;
use crate::ownership::accessible;
use crate::ownership::listing::{self, Cursor, Owners};
use crate::redaction::Redaction;
use crate::service::Service;

/// The number of sessions or appends that a request returns unless it names another.
const DEFAULT_LIMIT: u32 = 100;

/// The maximum number of sessions or appends that a request returns.
const MAX_LIMIT: u32 = 1000;

/// The size of the appends after which a part of a log ends.
const MAX_LOG_BYTES: usize = 1024 * 1024;

/// The number of appends that are read from the store at once.
const LOG_PAGE: u32 = 16;

/// The maximum size of the messages in a response, as JSON.
const MAX_MESSAGES_BYTES: usize = 4 * 1024 * 1024;

/// The maximum size of the runs in a response, as JSON.
const MAX_RUNS_BYTES: usize = 1024 * 1024;

/// Lists the root sessions of the principal, newest first.
pub(crate) async fn list(
    service: &Service,
    principal: &Principal,
    query: ListQuery,
) -> Result<SessionsBody, ApiError> {
    let mut filter = SessionFilter::new();
    filter.agent = query.agent.map(Into::into);
    filter.status = query.status.as_deref().map(parse_status).transpose()?;
    filter.pending = query.pending == Some(1);
    let labels = query.metadata.as_deref().map(parse_labels).transpose()?.unwrap_or_default();
    for (name, value) in metadata::to_tags(&labels)? {
        filter = filter.tag(name, value);
    }
    let after = query.after.as_deref().map(parse_cursor).transpose()?;
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT as usize).clamp(1, MAX_LIMIT as usize);
    let owners = match principal.has_scope(Scope::AllSessions) {
        true => Owners::All,
        false => Owners::One(principal.id()),
    };
    let listing = listing::list(&*service.store, owners, &filter, after, limit).await?;
    let next = listing.next.as_ref().map(ToString::to_string);
    Ok(SessionsBody { sessions: listing.heads.iter().map(SummaryBody::of).collect(), next })
}

fn parse_cursor(text: &str) -> Result<Cursor, ApiError> {
    let message = "`after` is not the `next` of a list";
    Cursor::parse(text).ok_or_else(|| ApiError::invalid(message))
}

fn parse_labels(json: &str) -> Result<BTreeMap<String, String>, ApiError> {
    let message = "`metadata` must be a JSON object of strings, such as `{\"project\":\"x\"}`";
    serde_json::from_str(json).map_err(|_| ApiError::invalid(message))
}

fn parse_status(name: &str) -> Result<SessionStatus, ApiError> {
    SessionStatus::parse(name).ok_or_else(|| {
        let names = SessionStatus::ALL.map(SessionStatus::as_str).join(", ");
        ApiError::invalid(format!("the status is none of {names}"))
    })
}

/// Returns a session with its messages, and the position at which its stream continues.
pub(crate) async fn show(
    service: &Service,
    principal: &Principal,
    session: &SessionId,
) -> Result<SessionBody, ApiError> {
    let found = accessible(&*service.store, principal, session).await?;
    let (fold, live, next_seq) = if found.is_root() {
        let page = service.executor.page(session).await?;
        (page.session, page.live, Some(page.next_seq))
    } else {
        (service.sessions.get(session).await?, Vec::new(), None)
    };
    let head = service.store.head(session).await?.ok_or_else(ApiError::no_session)?;
    // Everything above belongs to the session to which the caller has access.
    if !found.identity().is_of(&head) {
        return Err(ApiError::no_session());
    }
    body_of(&fold, SummaryBody::of(&head), &live, next_seq, service.redaction())
}

fn body_of(
    fold: &Session,
    summary: SummaryBody,
    live: &[StoredChunk],
    next_seq: Option<u64>,
    redaction: Redaction,
) -> Result<SessionBody, ApiError> {
    let messages = redaction.messages(fold).into_iter().map(ShownMessage);
    let (messages, omitted_messages) = newest(messages, MAX_MESSAGES_BYTES)?;
    let runs = fold.runs().map(|run| RunBody::of(run, redaction));
    let (runs, omitted_runs) = newest(runs, MAX_RUNS_BYTES)?;
    Ok(SessionBody {
        summary,
        shown_version: fold.position().version,
        runs,
        omitted_runs,
        messages,
        omitted_messages,
        custom_state: std::sync::Arc::clone(fold.state()),
        live: live.iter().map(|stored| redaction.chunk(stored).into_owned()).collect(),
        next_seq,
    })
}

/// Returns the last items whose JSON has at most this size, at least one, and the number of items before them.
fn newest<T: Serialize>(
    items: impl Iterator<Item = T>,
    max_bytes: usize,
) -> Result<(Vec<T>, usize), ApiError> {
    let mut items: Vec<T> = items.collect();
    let (mut kept, mut bytes) = (0, 0);
    for item in items.iter().rev() {
        bytes += to_json(item)?.len();
        if bytes > max_bytes && kept > 0 {
            break;
        }
        kept += 1;
    }
    let omitted = items.len() - kept;
    items.drain(..omitted);
    Ok((items, omitted))
}

/// Returns a part of a session's log: whole appends, up to a number and up to a size. It has at least one append unless
/// the log has ended.
pub(crate) async fn log(
    service: &Service,
    principal: &Principal,
    session: &SessionId,
    query: LogQuery,
) -> Result<LogBody, ApiError> {
    if !principal.has_scope(Scope::ReadLogs) {
        let message = "the credentials do not permit reading logs";
        return Err(ApiError::new(ErrorCode::Forbidden, message));
    }
    let found = accessible(&*service.store, principal, session).await?;
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let mut after = query.after.unwrap_or_default();
    let (mut events, mut left, mut bytes) = (Vec::new(), limit, 0);
    let next = 'log: loop {
        if left == 0 {
            break Some(after);
        }
        let wanted = left.min(LOG_PAGE);
        let page = service.store.read_log(session, after, wanted).await?;
        for append in &page {
            bytes += append.body.len();
            if bytes > MAX_LOG_BYTES && left < limit {
                break 'log Some(after);
            }
            events.extend(decode(session, append)?);
            (after, left) = (append.version(), left - 1);
        }
        if page.len() < wanted as usize {
            break None;
        }
    };
    found.check_current(&*service.store).await?;
    Ok(LogBody { events, next })
}

/// Returns the checkpoints of a session.
pub(crate) async fn checkpoints(
    service: &Service,
    principal: &Principal,
    session: &SessionId,
) -> Result<CheckpointsBody, ApiError> {
    let found = accessible(&*service.store, principal, session).await?;
    let fold = service.sessions.get(session).await?;
    found.check_current(&*service.store).await?;
    Ok(CheckpointsBody { checkpoints: fold.checkpoints().to_vec() })
}

/// Deletes a root session with all its descendants.
pub(crate) async fn delete(
    service: &Service,
    principal: &Principal,
    session: &SessionId,
) -> Result<(), ApiError> {
    let found = accessible(&*service.store, principal, session).await?;
    found.check_root()?;
    match service.executor.delete_if(session, &found.required_tags()).await? {
        true => Ok(()),
        false => Err(ApiError::no_session()),
    }
}
