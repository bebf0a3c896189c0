//! Reading a log back.

use super::{Folding, Session, SessionOverview, SessionReader};
use crate::error::{Error, ErrorCode, Result};
use crate::event::{RecordedEvent, decode};
use crate::id::SessionId;
use crate::store::{Head, StateStore, StoredAppend};

/// How many appends are read at once.
const PAGE: u32 = 256;

/// How often a head and a log are read until they are of one moment.
const MAX_LOOKS: u32 = 64;

/// The target of a fold: a session, or its overview alone.
pub(super) trait Fold {
    /// Returns its overview.
    fn known(&self) -> &SessionOverview;

    /// Takes in the next append.
    fn take(&mut self, append: &StoredAppend) -> Result<Folding>;
}

impl Fold for Session {
    fn known(&self) -> &SessionOverview {
        self.overview()
    }

    fn take(&mut self, append: &StoredAppend) -> Result<Folding> {
        self.apply_append(append).map(|()| Folding::Done)
    }
}

impl Fold for SessionOverview {
    fn known(&self) -> &SessionOverview {
        self
    }

    fn take(&mut self, append: &StoredAppend) -> Result<Folding> {
        self.apply_append(append)
    }
}

/// The outcome of bringing a cached fold up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CatchUpOutcome {
    /// It is as its log is now.
    UpToDate,
    /// Its log is another one now, because the session was deleted and began anew.
    OfAnotherLog,
    /// The appends since then can only be folded with the history.
    NeedsHistory,
}

/// Folds the whole log of a session.
///
/// # Errors
/// [`ErrorCode::SessionNotFound`], the store's, and those of a log that cannot be read or is not
/// legal. The log is never touched.
pub async fn load(store: &dyn StateStore, session: &SessionId) -> Result<Session> {
    for _ in 0..MAX_LOOKS {
        let mut fold = Session::new(session.clone());
        let is_another = follow(store, &mut fold).await? == CatchUpOutcome::OfAnotherLog;
        if !is_another && fold.position().version == 0 {
            return Err(not_found(session));
        }
        if !is_another {
            return Ok(fold);
        }
    }
    Err(busy(session))
}

/// The head of a session and the fold of the same position, if there is such a session. Of two
/// moments, a run that has just ended would be taken for one whose owner is gone.
///
/// # Errors
/// As [`load`], and [`ErrorCode::StoreBusy`] if others append without pause.
pub(super) async fn look(
    logs: SessionReader<'_>,
    session: &SessionId,
) -> Result<Option<(Head, Session)>> {
    let SessionReader { store, folds } = logs;
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
    Err(busy(session))
}

/// The same of an overview.
///
/// # Errors
/// As [`look`].
pub(super) async fn glance(
    logs: SessionReader<'_>,
    session: &SessionId,
) -> Result<Option<(Head, SessionOverview)>> {
    for _ in 0..MAX_LOOKS {
        let Some(head) = logs.store.head(session).await? else { return Ok(None) };
        let mut overview = logs.overview_at(&head).await?;
        if head.position == *overview.position() {
            overview.observe(head.read_at);
            return Ok(Some((head, overview)));
        }
    }
    Err(busy(session))
}

/// An overview of a session no earlier than that head, from its snapshot and the appends since. `None` if
/// there is no snapshot that fits: then the whole log has to be read.
pub(super) async fn from_snapshot(store: &dyn StateStore, head: &Head) -> Option<SessionOverview> {
    let session = &head.session;
    let snapshot = store.snapshot(session).await.unwrap_or_else(|error| {
        tracing::warn!(%session, %error, "the snapshot of a session could not be read");
        None
    })?;
    let mut overview = SessionOverview::from_snapshot(session, &snapshot)?;
    // Whatever is wrong with it, the log has it all, and its reader finds out what is wrong with that.
    let kept = catch_up_from_cache(store, &mut overview, head).await;
    matches!(kept, Ok(CatchUpOutcome::UpToDate)).then_some(overview)
}

/// Takes in what was appended since the fold was made.
///
/// # Errors
/// As [`load`]. The fold is of no use then.
pub async fn catch_up(store: &dyn StateStore, fold: &mut Session) -> Result<()> {
    match follow(store, fold).await? {
        CatchUpOutcome::OfAnotherLog => Err(not_found(fold.id())),
        CatchUpOutcome::UpToDate | CatchUpOutcome::NeedsHistory => Ok(()),
    }
}

/// Takes in what was appended since the fold was made, up to what takes the history.
pub(super) async fn follow(store: &dyn StateStore, fold: &mut impl Fold) -> Result<CatchUpOutcome> {
    let session = fold.known().id().clone();
    loop {
        let position = fold.known().position().clone();
        let page = store.read_log(&session, position.version, PAGE).await?;
        if page.is_empty() {
            return Ok(CatchUpOutcome::UpToDate);
        }
        // Read after the page. If the log still has the fold's last append, the page is of the same log.
        if position.version > 0 {
            let start = fold.known().last_append().start;
            let last = store.read_log(&session, start, 1).await?;
            if last.first().is_none_or(|last| last.position() != position) {
                return Ok(CatchUpOutcome::OfAnotherLog);
            }
        }
        for append in &page {
            if fold.take(append)? == Folding::NeedsHistory {
                return Ok(CatchUpOutcome::NeedsHistory);
            }
        }
    }
}

/// [`follow`] for a fold that was kept for a while, at least up to that head.
///
/// # Errors
/// As [`load`]. The fold is of no use then, nor if it is of another log or needs the history.
pub(super) async fn catch_up_from_cache(
    store: &dyn StateStore,
    fold: &mut impl Fold,
    head: &Head,
) -> Result<CatchUpOutcome> {
    if *fold.known().position() == head.position {
        return Ok(CatchUpOutcome::UpToDate);
    }
    // The fold's last append is read once more: a log that has it is the same up to there.
    let start = fold.known().last_append().start;
    let page = store.read_log(&head.session, start, PAGE).await?;
    let mut appends = page.iter();
    let is_last = |last: &StoredAppend| last.position() == *fold.known().position();
    if !appends.next().is_some_and(is_last) {
        return Ok(CatchUpOutcome::OfAnotherLog);
    }
    for append in appends {
        if fold.take(append)? == Folding::NeedsHistory {
            return Ok(CatchUpOutcome::NeedsHistory);
        }
    }
    if fold.known().position().version < head.position.version {
        return follow(store, fold).await;
    }
    Ok(CatchUpOutcome::UpToDate)
}

pub(super) fn not_found(session: &SessionId) -> Error {
    Error::new(ErrorCode::SessionNotFound, "there is no session of this id")
        .with_context("session", session)
}

fn busy(session: &SessionId) -> Error {
    Error::new(ErrorCode::StoreBusy, "others append to the session without pause")
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
