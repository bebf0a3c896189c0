//! A cache of sessions, so that a later access reads only the new appends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::load::{
    CatchUpOutcome as State, catch_up_from_cache, from_snapshot, load, load_with_head, not_found,
    overview_with_head,
};
use crate::error::Result;
use crate::id::SessionId;
use crate::machine::session::{Session, SessionOverview};
use crate::store::{Head, StateStore};

/// The maximum number of cached sessions, and also of cached overviews of other sessions.
pub const MAX_CACHED_SESSIONS: usize = 256;

/// The maximum total number of events in the logs of cached sessions. The most recently used
/// session stays cached whatever its length.
pub const MAX_CACHED_EVENTS: u64 = 250_000;

/// The sessions that a process has used recently. If a log was deleted, lost or replaced, the cache
/// detects it and reads the new log from its beginning.
#[derive(Debug, Default)]
pub struct SessionCache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    /// Cached sessions, each with the time of its last use.
    folds: HashMap<SessionId, (u64, Arc<Session>)>,
    /// Cached overviews of sessions that are not in `folds` or are older there, each with the time
    /// of its last use.
    overviews: HashMap<SessionId, (u64, SessionOverview)>,
    time: u64,
    events: u64,
}

/// Reads sessions from a store, with an optional cache.
#[derive(Debug, Clone, Copy)]
pub struct SessionReader<'a> {
    /// The store that contains the logs.
    pub store: &'a dyn StateStore,
    /// The cache of sessions, if there is one.
    pub folds: Option<&'a SessionCache>,
}

impl<'a> SessionReader<'a> {
    /// Creates a reader without a cache.
    pub fn of(store: &'a dyn StateStore) -> Self {
        Self { store, folds: None }
    }

    /// Returns the session with its latest events. If the session is not cached, this reads its
    /// whole log. Callers that do not need the history use the [overview](Self::overview).
    ///
    /// # Errors
    /// Returns the errors of [`load`](super::load).
    pub async fn load(self, session: &SessionId) -> Result<Session> {
        let Some(folds) = self.folds else { return load(self.store, session).await };
        let head = self.store.head(session).await?.ok_or_else(|| not_found(session))?;
        folds.get(self.store, &head, false).await
    }

    /// Returns the head of a session and the fold at the same position, or `None` if the session
    /// does not exist. If head and fold came from different moments, a run that has just ended
    /// would look like a run whose owner has crashed.
    ///
    /// # Errors
    /// Returns the errors of [`load`](super::load), and
    /// [`StoreBusy`](crate::error::ErrorCode::StoreBusy) if others append continuously.
    pub async fn find(self, session: &SessionId) -> Result<Option<(Head, Session)>> {
        load_with_head(self, session).await
    }

    /// Returns the overview of a session with its latest events. If the session is not cached, this
    /// reads its last snapshot and the appends since. The cost does not depend on the length of the
    /// log.
    ///
    /// # Errors
    /// Returns the errors of [`load`](super::load).
    pub async fn overview(self, session: &SessionId) -> Result<SessionOverview> {
        let head = self.store.head(session).await?.ok_or_else(|| not_found(session))?;
        self.overview_at(&head).await
    }

    /// Returns the head of a session and its overview at the same position, or `None` if the
    /// session does not exist. It works like [`find`](Self::find), without the history.
    ///
    /// # Errors
    /// Returns the errors of [`find`](Self::find).
    pub async fn find_overview(
        self,
        session: &SessionId,
    ) -> Result<Option<(Head, SessionOverview)>> {
        overview_with_head(self, session).await
    }

    /// Returns an overview that is at least as recent as the head.
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
    /// Returns the session with its latest events, at least as recent as the head. `alone` states
    /// that no other task uses the session meanwhile: it is then moved out of the cache instead of
    /// copied. Put it back with [`keep`](Self::keep).
    ///
    /// # Errors
    /// Returns the errors of [`load`](super::load).
    pub async fn get(&self, store: &dyn StateStore, head: &Head, alone: bool) -> Result<Session> {
        let session = &head.session;
        if let Some(cached) = self.locked(|entries| entries.find(session, alone)) {
            if cached.position() == &head.position {
                return Ok(Arc::unwrap_or_clone(cached));
            }
            let mut fold = Arc::unwrap_or_clone(cached);
            if let Ok(State::UpToDate) = catch_up_from_cache(store, &mut fold, head).await {
                return Ok(self.found(fold, alone));
            }
            self.forget(session);
        }
        let fold = load(store, session).await?;
        Ok(self.found(fold, alone))
    }

    /// Returns the overview of a session, at least as recent as the head.
    ///
    /// # Errors
    /// Returns the errors of [`load`](super::load).
    pub async fn overview(&self, store: &dyn StateStore, head: &Head) -> Result<SessionOverview> {
        let session = &head.session;
        if let Some(mut overview) = self.locked(|entries| entries.find_overview(session)) {
            if *overview.position() == head.position {
                return Ok(overview);
            }
            match catch_up_from_cache(store, &mut overview, head).await {
                Ok(State::UpToDate) => return Ok(self.found_overview(overview)),
                // A rewind needs the history, so use the whole session, which may be cached.
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
        self.locked(|entries| entries.keep_overview(overview.clone()));
        overview
    }

    /// Caches a session, unless the cache has a later version of it.
    pub fn keep(&self, fold: Session) {
        self.locked(|entries| entries.keep(fold));
    }

    /// Removes a session from the cache.
    pub fn forget(&self, session: &SessionId) {
        self.locked(|entries| {
            entries.remove(session);
            entries.overviews.remove(session);
        });
    }

    fn locked<T>(&self, act: impl FnOnce(&mut Entries) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Entries {
    fn find(&mut self, session: &SessionId, alone: bool) -> Option<Arc<Session>> {
        if alone {
            return self.remove(session);
        }
        self.time += 1;
        let (used, fold) = self.folds.get_mut(session)?;
        *used = self.time;
        Some(Arc::clone(fold))
    }

    /// Returns the most recent cached overview.
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
        if self
            .overviews
            .get(fold.id())
            .is_some_and(|(_, known)| known.position().version <= version)
        {
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
        let known = self.overviews.get(&session).map(|(_, known)| known.position().version);
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
