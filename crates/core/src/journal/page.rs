//! The data that a page shows when a user opens a session: the content of the log, and the position
//! at which to follow the stream.

use futures_util::StreamExt as _;

use super::request::head;
use super::{SessionReader, repair_ended_stream};
use crate::clock::{Clock, IdSource};
use crate::error::Result;
use crate::id::SessionId;
use crate::machine::session::Session;
use crate::store::{Head, SessionStatus, StateStore};
use crate::stream::{StoredChunk, StreamInfo, StreamManager};

/// The data that is needed to show a session and then follow it, without gaps and without
/// repetition.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionPage {
    /// The session at the version of the stream's watermark: messages, state, runs.
    pub session: Session,
    /// The chunks of effects in progress, whose outcome is not in the log yet, oldest first.
    pub live: Vec<StoredChunk>,
    /// The sequence number at which to continue reading the stream.
    pub next_seq: u64,
    /// The status of the stream, which tells whether more chunks will follow.
    pub status: StreamStatus,
}

/// The status of a session's stream, computed from the log and from whether the stream is in line
/// with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StreamStatus {
    /// A run is in progress, or the stream does not show the whole log yet.
    Active,
    /// The session is at rest and continues once it is resumed: it waits for an answer or a child,
    /// or was interrupted.
    Paused,
    /// The session's last turn completed, or the session was aborted.
    Ended,
    /// The last run failed.
    Failed,
}

impl StreamStatus {
    /// Returns the status of the stream whose root session has this head.
    #[must_use]
    pub fn of(head: &Head, info: &StreamInfo) -> Self {
        let is_in_line =
            info.watermark_version(&head.session, head.created_at) >= head.position.version;
        if head.summary.run.is_some() || !is_in_line {
            return Self::Active;
        }
        match head.summary.status {
            SessionStatus::Active | SessionStatus::Interrupted => Self::Paused,
            SessionStatus::Completed | SessionStatus::Aborted => Self::Ended,
            SessionStatus::Failed => Self::Failed,
        }
    }
}

/// Builds a page. `session` must be a root session, because the stream belongs to the root.
///
/// # Errors
/// Returns [`SessionNotFound`](crate::error::ErrorCode::SessionNotFound), and the errors of the
/// store and the stream manager.
pub async fn session_page(
    logs: SessionReader<'_>,
    streams: &dyn StreamManager,
    clock: &dyn Clock,
    ids: &dyn IdSource,
    session: &SessionId,
) -> Result<SessionPage> {
    // The last writer may have crashed before it wrote the watermark.
    repair_ended_stream(logs, streams, clock, ids, session).await?;
    let info = streams.info(session).await?;
    let marked = info.marked.get(session).copied().unwrap_or_default();
    let head = head(logs.store, session).await?;
    let status = StreamStatus::of(&head, &info);
    if marked.version == 0 {
        // A lost stream is empty: everything that it shows from now on is new.
        let fold = logs.load(session).await?;
        let (live, next_seq) = (Vec::new(), info.last_seq + 1);
        return Ok(SessionPage { session: fold, live, next_seq, status });
    }
    let version = marked.version.min(head.position.version);
    let now = logs.load(session).await?;
    let fold = if now.position().version == version {
        now
    } else {
        load_until(logs.store, session, version).await?
    };
    let first = info.open.iter().map(|open| open.start_seq).filter(|seq| *seq < marked.seq).min();
    let mut live = Vec::new();
    if let Some(first) = first {
        let mut chunks = streams.read(session, first + 1).await?;
        while let Some(stored) = chunks.next().await {
            let stored = stored?;
            // The chunk is after the watermark, or belongs to a new stream because this one was
            // deleted meanwhile.
            if stored.seq > marked.seq || stored.seq <= first {
                break;
            }
            let last = stored.seq == marked.seq;
            if info.open.iter().any(|open| Some(open.attempt) == stored.attempt) {
                live.push(stored);
            }
            if last {
                break;
            }
        }
    }
    Ok(SessionPage { session: fold, live, next_seq: marked.seq + 1, status })
}

/// Returns the fold of a log up to a version at which an append ends.
async fn load_until(store: &dyn StateStore, session: &SessionId, version: u64) -> Result<Session> {
    let mut fold = Session::new(session.clone());
    while fold.position().version < version {
        let page = store.read_log(session, fold.position().version, 64).await?;
        if page.is_empty() {
            break;
        }
        for append in page.iter().take_while(|append| append.version() <= version) {
            fold.apply_append(append)?;
        }
        if page.last().is_some_and(|last| last.version() > version) {
            break;
        }
    }
    Ok(fold)
}

#[cfg(test)]
mod tests;
