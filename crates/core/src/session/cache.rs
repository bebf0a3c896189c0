//! Sessions as a process saw them last, so that the next look reads only what came since.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::load::{
    Kept as State, catch_up_from_cache, from_snapshot, glance, load, look, not_found,
};
use super::{Session, SessionOverview};
use crate::error::Result;
use crate::id::SessionId;
use crate::store::{Head, StateStore};

/// The most sessions that are kept, and the most overviews of others.
pub const MAX_CACHED_SESSIONS: usize = 256;

/// How many events the logs of the sessions that are kept may have together. The session that was used
/// last is kept whatever its length.
pub const MAX_CACHED_EVENTS: u64 = 250_000;

/// The sessions that a process looked at last. A session whose log was deleted, lost or began anew is
/// noticed, and read from its beginning.
#[derive(Debug, Default)]
pub struct SessionCache(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// With the time of their last use.
    folds: HashMap<SessionId, (u64, Arc<Session>)>,
    /// Likewise, of sessions that are not among those, or newer.
    overviews: HashMap<SessionId, (u64, SessionOverview)>,
    time: u64,
    events: u64,
}

/// The logs of a store, and what a process remembers of them.
#[derive(Debug, Clone, Copy)]
pub struct SessionReader<'a> {
    /// Where the logs are.
    pub store: &'a dyn StateStore,
    /// What is remembered of them, if anything is.
    pub folds: Option<&'a SessionCache>,
}

impl<'a> SessionReader<'a> {
    /// Logs of which nothing is remembered.
    pub fn of(store: &'a dyn StateStore) -> Self {
        Self { store, folds: None }
    }

    /// A session as its log is now. If nothing is remembered of it, its whole log is read: what needs no
    /// history asks for the [overview](Self::overview).
    ///
    /// # Errors
    /// As [`load`](super::load).
    pub async fn load(self, session: &SessionId) -> Result<Session> {
        let Some(folds) = self.folds else { return load(self.store, session).await };
        let head = self.store.head(session).await?.ok_or_else(|| not_found(session))?;
        folds.get(self.store, &head, false).await
    }

    /// The head of a session and the fold of the same position, if there is such a session. Of two
    /// moments, a run that has just ended would be taken for one whose owner is gone.
    ///
    /// # Errors
    /// As [`load`](super::load), and [`StoreBusy`](crate::error::ErrorCode::StoreBusy) if others append
    /// without pause.
    pub async fn look(self, session: &SessionId) -> Result<Option<(Head, Session)>> {
        look(self, session).await
    }

    /// A session as its log is now, without its history. If nothing is remembered of it, its last snapshot
    /// is read and what was appended since: that is the same work for a log of any length.
    ///
    /// # Errors
    /// As [`load`](super::load).
    pub async fn overview(self, session: &SessionId) -> Result<SessionOverview> {
        let head = self.store.head(session).await?.ok_or_else(|| not_found(session))?;
        self.overview_at(&head).await
    }

    /// The head of a session and its overview at the same position, if there is such a session: as
    /// [`look`](Self::look), without the history.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub async fn look_at_overview(
        self,
        session: &SessionId,
    ) -> Result<Option<(Head, SessionOverview)>> {
        glance(self, session).await
    }

    /// An overview no earlier than that head.
    pub(super) async fn overview_at(self, head: &Head) -> Result<SessionOverview> {
        if let Some(folds) = self.folds {
            return folds.overview(self.store, head).await;
        }
        match from_snapshot(self.store, head).await {
            Some(overview) => Ok(overview),
            None => Ok(load(self.store, &head.session).await?.into_overview()),
        }
    }
}

impl SessionCache {
    /// A session as its log is now, no earlier than that head. `alone` if nobody else works on it, who
    /// would look for it meanwhile.
    ///
    /// # Errors
    /// As [`load`](super::load).
    pub async fn get(&self, store: &dyn StateStore, head: &Head, alone: bool) -> Result<Session> {
        let session = &head.session;
        if let Some(kept) = self.kept(|kept| kept.find(session, alone)) {
            if kept.position() == &head.position {
                return Ok(Arc::unwrap_or_clone(kept));
            }
            let mut fold = Arc::unwrap_or_clone(kept);
            if let Ok(State::UpToDate) = catch_up_from_cache(store, &mut fold, head).await {
                return Ok(self.found(fold, alone));
            }
            self.forget(session);
        }
        let fold = load(store, session).await?;
        Ok(self.found(fold, alone))
    }

    /// The overview of a session as its log is now, no earlier than that head.
    ///
    /// # Errors
    /// As [`load`](super::load).
    pub async fn overview(&self, store: &dyn StateStore, head: &Head) -> Result<SessionOverview> {
        let session = &head.session;
        if let Some(mut overview) = self.kept(|kept| kept.find_overview(session)) {
            if *overview.position() == head.position {
                return Ok(overview);
            }
            match catch_up_from_cache(store, &mut overview, head).await {
                Ok(State::UpToDate) => return Ok(self.found_overview(overview)),
                // Only the whole session can go back, and it may be known.
                Ok(State::NeedsHistory) => {
                    return Ok(self.get(store, head, false).await?.into_overview());
                }
                Ok(State::OfAnotherLog) | Err(_) => self.forget(session),
            }
        }
        match from_snapshot(store, head).await {
            Some(overview) => Ok(self.found_overview(overview)),
            None => Ok(self.get(store, head, false).await?.into_overview()),
        }
    }

    fn found(&self, fold: Session, alone: bool) -> Session {
        if !alone {
            self.keep(fold.clone());
        }
        fold
    }

    fn found_overview(&self, overview: SessionOverview) -> SessionOverview {
        self.kept(|kept| kept.keep_overview(overview.clone()));
        overview
    }

    /// Keeps a session, unless it is known as it was later.
    pub fn keep(&self, fold: Session) {
        self.kept(|kept| kept.keep(fold));
    }

    /// Forgets a session.
    pub fn forget(&self, session: &SessionId) {
        self.kept(|kept| {
            kept.remove(session);
            kept.overviews.remove(session);
        });
    }

    fn kept<T>(&self, act: impl FnOnce(&mut Kept) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Kept {
    fn find(&mut self, session: &SessionId, alone: bool) -> Option<Arc<Session>> {
        if alone {
            return self.remove(session);
        }
        self.time += 1;
        let (used, fold) = self.folds.get_mut(session)?;
        *used = self.time;
        Some(Arc::clone(fold))
    }

    /// The newest that is known.
    fn find_overview(&mut self, session: &SessionId) -> Option<SessionOverview> {
        self.time += 1;
        if let Some((used, overview)) = self.overviews.get_mut(session) {
            *used = self.time;
            return Some(overview.clone());
        }
        let (used, fold) = self.folds.get_mut(session)?;
        *used = self.time;
        Some(fold.overview().clone())
    }

    fn keep(&mut self, fold: Session) {
        let known = self.folds.get(fold.id()).map_or(0, |(_, known)| known.position().version);
        if known > fold.position().version {
            return;
        }
        self.time += 1;
        self.remove(&fold.id().clone());
        let version = fold.position().version;
        if self.overviews.get(fold.id()).is_some_and(|(_, it)| it.position().version <= version) {
            self.overviews.remove(fold.id());
        }
        self.events += version;
        self.folds.insert(fold.id().clone(), (self.time, Arc::new(fold)));
        while self.folds.len() > MAX_CACHED_SESSIONS
            || self.events > MAX_CACHED_EVENTS && self.folds.len() > 1
        {
            let oldest = self.folds.iter().min_by_key(|(_, (used, _))| *used);
            let Some(oldest) = oldest.map(|(session, _)| session.clone()) else { return };
            self.remove(&oldest);
        }
    }

    fn keep_overview(&mut self, overview: SessionOverview) {
        let (session, version) = (overview.id().clone(), overview.position().version);
        let whole = self.folds.get(&session).map(|(_, fold)| fold.position().version);
        let known = self.overviews.get(&session).map(|(_, it)| it.position().version);
        if whole.max(known).is_some_and(|known| known >= version) {
            return;
        }
        self.time += 1;
        self.overviews.insert(session, (self.time, overview));
        while self.overviews.len() > MAX_CACHED_SESSIONS {
            let oldest = self.overviews.iter().min_by_key(|(_, (used, _))| *used);
            let Some(oldest) = oldest.map(|(session, _)| session.clone()) else { return };
            self.overviews.remove(&oldest);
        }
    }

    fn remove(&mut self, session: &SessionId) -> Option<Arc<Session>> {
        let (_, fold) = self.folds.remove(session)?;
        self.events -= fold.position().version;
        Some(fold)
    }
}
