//! Sessions as a process saw them last, so that the next look reads only what came since.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Session;
use super::load::{catch_up_kept, load, look, not_found};
use crate::error::Result;
use crate::id::SessionId;
use crate::store::{Head, StateStore};

/// How many sessions are kept.
pub const MAX_FOLDS: usize = 256;

/// How many events the logs of the sessions that are kept may have together. The session that was used
/// last is kept whatever its length.
pub const MAX_FOLDED_EVENTS: u64 = 250_000;

/// The sessions that a process looked at last. A session whose log was deleted, lost or began anew is
/// noticed, and read from its beginning.
#[derive(Debug, Default)]
pub struct Folds(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// With the time of their last use.
    folds: HashMap<SessionId, (u64, Arc<Session>)>,
    time: u64,
    events: u64,
}

/// The logs of a store, and what a process remembers of them.
#[derive(Debug, Clone, Copy)]
pub struct Logs<'a> {
    /// Where the logs are.
    pub store: &'a dyn StateStore,
    /// What is remembered of them, if anything is.
    pub folds: Option<&'a Folds>,
}

impl<'a> Logs<'a> {
    /// Logs of which nothing is remembered.
    pub fn of(store: &'a dyn StateStore) -> Self {
        Self { store, folds: None }
    }

    /// A session as its log is now.
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
}

impl Folds {
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
            if let Ok(true) = catch_up_kept(store, &mut fold, head).await {
                return Ok(self.found(fold, alone));
            }
            self.forget(session);
        }
        let fold = load(store, session).await?;
        Ok(self.found(fold, alone))
    }

    fn found(&self, fold: Session, alone: bool) -> Session {
        if !alone {
            self.keep(fold.clone());
        }
        fold
    }

    /// Keeps a session, unless it is known as it was later.
    pub fn keep(&self, fold: Session) {
        self.kept(|kept| kept.keep(fold));
    }

    /// Forgets a session.
    pub fn forget(&self, session: &SessionId) {
        self.kept(|kept| kept.remove(session));
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

    fn keep(&mut self, fold: Session) {
        let known = self.folds.get(fold.id()).map_or(0, |(_, known)| known.position().version);
        if known > fold.position().version {
            return;
        }
        self.time += 1;
        self.remove(&fold.id().clone());
        self.events += fold.position().version;
        self.folds.insert(fold.id().clone(), (self.time, Arc::new(fold)));
        while self.folds.len() > MAX_FOLDS
            || self.events > MAX_FOLDED_EVENTS && self.folds.len() > 1
        {
            let oldest = self.folds.iter().min_by_key(|(_, (used, _))| *used);
            let Some(oldest) = oldest.map(|(session, _)| session.clone()) else { return };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, session: &SessionId) -> Option<Arc<Session>> {
        let (_, fold) = self.folds.remove(session)?;
        self.events -= fold.position().version;
        Some(fold)
    }
}
