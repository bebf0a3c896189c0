//! Reading a log back.

use super::{Logs, Session};
use crate::error::{Error, ErrorCode, Result};
use crate::event::{RecordedEvent, decode};
use crate::id::SessionId;
use crate::store::{Head, StateStore};

/// How many appends are read at once.
const PAGE: u32 = 256;

/// How often a head and a log are read until they are of one moment.
const MAX_LOOKS: u32 = 64;

/// Folds the whole log of a session.
///
/// # Errors
/// [`ErrorCode::SessionNotFound`], the store's, and those of a log that cannot be read or is not
/// legal. The log is never touched.
pub async fn load(store: &dyn StateStore, session: &SessionId) -> Result<Session> {
    let mut fold = Session::new(session.clone());
    catch_up(store, &mut fold).await?;
    if fold.position().version == 0 {
        return Err(not_found(session));
    }
    Ok(fold)
}

/// The head of a session and the fold of the same position, if there is such a session. Of two
/// moments, a run that has just ended would be taken for one whose owner is gone.
///
/// # Errors
/// As [`load`], and [`ErrorCode::StoreBusy`] if others append without pause.
pub(super) async fn look(logs: Logs<'_>, session: &SessionId) -> Result<Option<(Head, Session)>> {
    let Logs { store, folds } = logs;
    let mut known = None;
    for _ in 0..MAX_LOOKS {
        let Some(head) = store.head(session).await? else { return Ok(None) };
        let mut fold = match (known.take(), folds) {
            (None, Some(folds)) => folds.get(store, &head, false).await?,
            (None, None) => load(store, session).await?,
            (Some(mut fold), _) => {
                catch_up(store, &mut fold).await?;
                fold
            }
        };
        if head.position == *fold.position() {
            fold.observe(head.read_at);
            return Ok(Some((head, fold)));
        }
        known = Some(fold);
    }
    Err(Error::new(ErrorCode::StoreBusy, "others append to the session without pause")
        .with_context("session", session))
}

/// Takes in what was appended since the fold was made.
///
/// # Errors
/// As [`load`]. The fold is of no use then.
pub async fn catch_up(store: &dyn StateStore, fold: &mut Session) -> Result<()> {
    let session = fold.id().clone();
    loop {
        let page = store.read_log(&session, fold.position().version, PAGE).await?;
        if page.is_empty() {
            return Ok(());
        }
        for append in &page {
            fold.apply_append(append)?;
        }
    }
}

/// [`catch_up`] of a fold that was kept for a while, at least up to that head. False if its log is another
/// one now, because the session was deleted and began anew.
///
/// # Errors
/// As [`load`]. The fold is of no use then, nor if it is of another log.
pub(super) async fn catch_up_kept(
    store: &dyn StateStore,
    fold: &mut Session,
    head: &Head,
) -> Result<bool> {
    if *fold.position() == head.position {
        return Ok(true);
    }
    // The fold's last append is read once more: a log that has it is the same up to there.
    let page = store.read_log(&head.session, fold.ledger.last_append.start, PAGE).await?;
    let mut appends = page.iter();
    if appends.next().is_none_or(|last| last.position() != *fold.position()) {
        return Ok(false);
    }
    for append in appends {
        fold.apply_append(append)?;
    }
    if fold.position().version < head.position.version {
        catch_up(store, fold).await?;
    }
    Ok(true)
}

pub(super) fn not_found(session: &SessionId) -> Error {
    Error::new(ErrorCode::SessionNotFound, "there is no session of this id")
        .with_context("session", session)
}

/// The events of a session after a version, for people and programs that look at a log.
///
/// # Errors
/// As [`load`].
pub async fn load_events(
    store: &dyn StateStore,
    session: &SessionId,
    after: u64,
) -> Result<Vec<RecordedEvent>> {
    let mut events = Vec::new();
    let mut version = after;
    loop {
        let page = store.read_log(session, version, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(events);
        };
        version = last.version();
        for append in &page {
            events.extend(decode(session, append)?);
        }
    }
}
