//! A session as a page shows it that somebody opens: what is in the log, and where to go on in the
//! stream.

use futures_util::StreamExt as _;

use super::request::head;
use super::{Session, SessionReader, repair_ended_stream};
use crate::clock::{Clock, IdSource};
use crate::error::Result;
use crate::id::SessionId;
use crate::store::{Head, SessionStatus, StateStore};
use crate::stream::{StoredChunk, StreamInfo, StreamManager};

/// What is needed to show a session and then follow it, without gap and without repetition.
#[derive(Debug, Clone)]
pub struct SessionPage {
    /// The session at the version that the stream is marked at: messages, state, runs.
    pub session: Session,
    /// What effects under way have shown so far that are not in the log yet, oldest first.
    pub live: Vec<StoredChunk>,
    /// Where to go on reading the stream.
    pub next_seq: u64,
    /// Whether more is to come there.
    pub status: StreamStatus,
}

/// How the stream of a session stands: by what the log says, and whether the stream is in line with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamStatus {
    /// A run is under way, or the stream does not show yet all that the log has.
    Active,
    /// The session rests, and continues once it is resumed: it waits for an answer or a child, or was
    /// interrupted.
    Paused,
    /// The session's last turn was completed, or the session was aborted.
    Ended,
    /// The last run failed.
    Failed,
}

impl StreamStatus {
    /// The status of the stream of the root with this head.
    #[must_use]
    pub fn of(head: &Head, info: &StreamInfo) -> Self {
        let is_in_line = info.marked_by(&head.session) >= head.position.version;
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

/// Puts a page together. The stream is the root's, so `session` is a root.
///
/// # Errors
/// [`SessionNotFound`](crate::error::ErrorCode::SessionNotFound), and those of the store and the
/// stream manager.
pub async fn session_page(
    logs: SessionReader<'_>,
    streams: &dyn StreamManager,
    clock: &dyn Clock,
    ids: &dyn IdSource,
    session: &SessionId,
) -> Result<SessionPage> {
    // Whoever wrote last may have died before the mark.
    repair_ended_stream(logs, streams, clock, ids, session).await?;
    let info = streams.info(session).await?;
    let marked = info.marked.get(session).copied().unwrap_or_default();
    let head = head(logs.store, session).await?;
    let status = StreamStatus::of(&head, &info);
    if marked.version == 0 {
        // A stream that was lost knows nothing: what it shows from now on is new.
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
    let began = info.open.iter().map(|open| open.began).filter(|began| *began < marked.seq).min();
    let mut live = Vec::new();
    if let Some(began) = began {
        let mut chunks = streams.read(session, began + 1).await?;
        while let Some(stored) = chunks.next().await {
            let stored = stored?;
            // Behind the mark, or of the next stream, because this one was forgotten meanwhile.
            if stored.seq > marked.seq || stored.seq <= began {
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

/// The fold of a log up to a version at which an append ends.
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
