//! Loading sessions from their logs.

use super::SessionReader;
use super::conflicts::{MAX_CONFLICTS, too_many_conflicts};
use crate::error::{Error, ErrorCode, Result};
use crate::event::{RecordedEvent, decode};
use crate::id::SessionId;
use crate::machine::session::{FoldOutcome, Session, SessionOverview};
use crate::store::{Head, Position, StateStore, StoredAppend};

/// The number of appends that are read at once.
const PAGE: u32 = 256;

/// A state that is computed from a log: a whole session, or only its overview.
pub(super) trait Fold {
    /// Returns the overview.
    fn overview(&self) -> &SessionOverview;

    /// Applies the next append.
    fn take(&mut self, append: &StoredAppend) -> Result<FoldOutcome>;
}

impl Fold for Session {
    fn overview(&self) -> &SessionOverview {
        self.overview()
    }

    fn take(&mut self, append: &StoredAppend) -> Result<FoldOutcome> {
        self.apply_append(append).map(|()| FoldOutcome::Done)
    }
}

impl Fold for SessionOverview {
    fn overview(&self) -> &SessionOverview {
        self
    }

    fn take(&mut self, append: &StoredAppend) -> Result<FoldOutcome> {
        self.apply_append(append)
    }
}

/// The outcome of bringing a cached fold up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CatchUpOutcome {
    /// The fold contains the latest events of its log.
    UpToDate,
    /// The log was replaced, because the session was deleted and created again.
    OfAnotherLog,
    /// The new appends can only be folded with the history.
    NeedsHistory,
}

/// Folds the whole log of a session.
///
/// # Errors
/// Returns [`ErrorCode::SessionNotFound`], the errors of the store, and the errors of a log that
/// cannot be read or is illegal. The log is never changed.
pub async fn load(store: &dyn StateStore, session: &SessionId) -> Result<Session> {
    for _ in 0..MAX_CONFLICTS {
        let mut fold = Session::new(session.clone());
        let is_another = follow(store, &mut fold).await? == CatchUpOutcome::OfAnotherLog;
        if !is_another && fold.position().version == 0 {
            return Err(not_found(session));
        }
        if !is_another {
            return Ok(fold);
        }
    }
    Err(too_many_conflicts(session))
}

/// Returns the head of a session and the fold at the same position, or `None` if the session does
/// not exist. If head and fold came from different moments, a run that has just ended would look
/// like a run whose owner has crashed.
///
/// # Errors
/// Returns the errors of [`load`], and [`ErrorCode::StoreBusy`] if others append continuously.
pub(super) async fn load_with_head(
    logs: SessionReader<'_>,
    session: &SessionId,
) -> Result<Option<(Head, Session)>> {
    let SessionReader { store, folds } = logs;
    let mut known = None;
    for _ in 0..MAX_CONFLICTS {
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
    Err(too_many_conflicts(session))
}

/// Returns the head of a session and its overview at the same position.
///
/// # Errors
/// Returns the errors of [`load_with_head`].
pub(super) async fn overview_with_head(
    logs: SessionReader<'_>,
    session: &SessionId,
) -> Result<Option<(Head, SessionOverview)>> {
    for _ in 0..MAX_CONFLICTS {
        let Some(head) = logs.store.head(session).await? else { return Ok(None) };
        let mut overview = logs.overview_at(&head).await?;
        if head.position == *overview.position() {
            overview.observe(head.read_at);
            return Ok(Some((head, overview)));
        }
    }
    Err(too_many_conflicts(session))
}

/// Returns an overview of a session that is at least as recent as the head, from its snapshot and
/// the appends since. Returns `None` if there is no suitable snapshot. The whole log has to be read
/// then.
pub(super) async fn from_snapshot(store: &dyn StateStore, head: &Head) -> Option<SessionOverview> {
    let session = &head.session;
    let snapshot = store.snapshot(session).await.unwrap_or_else(|error| {
        tracing::warn!(%session, %error, "the snapshot of a session could not be read");
        None
    })?;
    let mut overview = SessionOverview::from_snapshot(session, &snapshot)?;
    // On any error, the caller reads the whole log, which reports an error of the log itself.
    let kept = catch_up_from_cache(store, &mut overview, head).await;
    matches!(kept, Ok(CatchUpOutcome::UpToDate)).then_some(overview)
}

/// Applies the appends since the fold was computed.
///
/// # Errors
/// Returns the errors of [`load`]. The fold must be discarded then.
pub async fn catch_up(store: &dyn StateStore, fold: &mut Session) -> Result<()> {
    match follow(store, fold).await? {
        CatchUpOutcome::OfAnotherLog => Err(not_found(fold.id())),
        CatchUpOutcome::UpToDate | CatchUpOutcome::NeedsHistory => Ok(()),
    }
}

/// Applies the appends since the fold was computed, up to an append that needs the history.
pub(super) async fn follow(store: &dyn StateStore, fold: &mut impl Fold) -> Result<CatchUpOutcome> {
    let session = fold.overview().id().clone();
    loop {
        let position = fold.overview().position().clone();
        let page = store.read_log(&session, position.version, PAGE).await?;
        if page.is_empty() {
            return Ok(CatchUpOutcome::UpToDate);
        }
        // This is read after the page. If the log still has the fold's last append, the page is
        // from the same log.
        if position.version > 0 {
            let start = fold.overview().last_append().start;
            if !log_contains(store, &session, start, &position).await? {
                return Ok(CatchUpOutcome::OfAnotherLog);
            }
        }
        for append in &page {
            if fold.take(append)? == FoldOutcome::NeedsHistory {
                return Ok(CatchUpOutcome::NeedsHistory);
            }
        }
    }
}

/// Works like [`follow`] for a cached fold. Afterwards the fold is at least as recent as the head.
///
/// # Errors
/// Returns the errors of [`load`]. The fold must be discarded then, and also if it belongs to
/// another log or needs the history.
pub(super) async fn catch_up_from_cache(
    store: &dyn StateStore,
    fold: &mut impl Fold,
    head: &Head,
) -> Result<CatchUpOutcome> {
    if *fold.overview().position() == head.position {
        return Ok(CatchUpOutcome::UpToDate);
    }
    // The fold's last append is read again. A log that contains it has not changed up to there.
    let start = fold.overview().last_append().start;
    let page = store.read_log(&head.session, start, PAGE).await?;
    let mut appends = page.iter();
    let is_last = |last: &StoredAppend| last.position() == *fold.overview().position();
    if !appends.next().is_some_and(is_last) {
        return Ok(CatchUpOutcome::OfAnotherLog);
    }
    for append in appends {
        if fold.take(append)? == FoldOutcome::NeedsHistory {
            return Ok(CatchUpOutcome::NeedsHistory);
        }
    }
    if fold.overview().position().version < head.position.version {
        return follow(store, fold).await;
    }
    Ok(CatchUpOutcome::UpToDate)
}

pub(super) fn not_found(session: &SessionId) -> Error {
    Error::new(ErrorCode::SessionNotFound, "there is no session with this id")
        .with_context("session", session)
}

/// Returns the events of a session after a version, for tools that inspect a log. If the session
/// is deleted and created again meanwhile, the events of the two logs are not mixed.
///
/// # Errors
/// Returns the errors of [`load`].
pub async fn load_events(
    store: &dyn StateStore,
    session: &SessionId,
    after: u64,
) -> Result<Vec<RecordedEvent>> {
    for _ in 0..MAX_CONFLICTS {
        if let Some(events) = events_of_one_log(store, session, after).await? {
            return Ok(events);
        }
    }
    Err(too_many_conflicts(session))
}

/// Returns the events of a session, or `None` if the session was deleted and created again
/// meanwhile.
async fn events_of_one_log(
    store: &dyn StateStore,
    session: &SessionId,
    after: u64,
) -> Result<Option<Vec<RecordedEvent>>> {
    let mut events = Vec::new();
    let mut last: Option<StoredAppend> = None;
    loop {
        let version = last.as_ref().map_or(after, StoredAppend::version);
        let mut page = store.read_log(session, version, PAGE).await?;
        for append in &page {
            events.extend(decode(session, append)?);
        }
        let Some(newest) = page.pop() else { return Ok(Some(events)) };
        if let Some(last) = &last
            && !log_contains(store, session, last.first - 1, &last.position()).await?
        {
            return Ok(None);
        }
        last = Some(newest);
    }
}

/// Returns `true` if the append that starts after a version is the one that ends at this position.
/// A log that contains it has not been replaced since it was read.
async fn log_contains(
    store: &dyn StateStore,
    session: &SessionId,
    start: u64,
    position: &Position,
) -> Result<bool> {
    let page = store.read_log(session, start, 1).await?;
    Ok(page.first().is_some_and(|append| append.position() == *position))
}
