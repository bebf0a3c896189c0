//! Sessions as they were when a part of them was carried out last, so that the next part reads only what
//! came since.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{Session, catch_up_kept, load};
use helix_agents_core::store::{Head, StateStore};

#[cfg(test)]
mod tests;

/// How many are kept. Their messages are shared with whoever works on them.
const MOST: usize = 256;

/// The sessions of a process whose runs are carried out in parts.
#[derive(Debug, Default)]
pub(crate) struct Folds(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// With the time of their last use.
    folds: HashMap<SessionId, (u64, Session)>,
    time: u64,
}

impl Folds {
    /// A session as its log is now, no earlier than that head. `alone` if nobody else works on it, who
    /// would look for it meanwhile.
    ///
    /// # Errors
    /// As [`load`].
    pub(crate) async fn get(
        &self,
        store: &dyn StateStore,
        head: &Head,
        alone: bool,
    ) -> Result<Session> {
        let kept = self.kept(|kept| kept.find(&head.session, alone));
        let fold = match caught_up(store, kept, head).await {
            Some(fold) => fold,
            None => {
                self.forget(&head.session);
                load(store, &head.session).await?
            }
        };
        if !alone {
            self.keep(fold.clone());
        }
        Ok(fold)
    }

    /// Keeps a session, unless it is known as it was later.
    pub(crate) fn keep(&self, fold: Session) {
        self.kept(|kept| kept.keep(fold));
    }

    /// Forgets a session that nothing more is to be done for.
    pub(crate) fn forget(&self, session: &SessionId) {
        self.kept(|kept| kept.folds.remove(session));
    }

    fn kept<T>(&self, act: impl FnOnce(&mut Kept) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Kept {
    fn find(&mut self, session: &SessionId, alone: bool) -> Option<Session> {
        if alone {
            return self.folds.remove(session).map(|(_, fold)| fold);
        }
        self.time += 1;
        let (used, fold) = self.folds.get_mut(session)?;
        *used = self.time;
        Some(fold.clone())
    }

    fn keep(&mut self, fold: Session) {
        let known = self.folds.get(fold.id()).map_or(0, |(_, known)| known.position().version);
        if known > fold.position().version {
            return;
        }
        self.time += 1;
        self.folds.insert(fold.id().clone(), (self.time, fold));
        if self.folds.len() > MOST {
            let oldest = self.folds.iter().min_by_key(|(_, (used, _))| *used);
            let oldest = oldest.map(|(session, _)| session.clone());
            oldest.map(|session| self.folds.remove(&session));
        }
    }
}

/// A kept fold with what came since; none if its log is another one now: a session that was deleted may
/// have begun anew.
async fn caught_up(store: &dyn StateStore, kept: Option<Session>, head: &Head) -> Option<Session> {
    let mut fold = kept?;
    catch_up_kept(store, &mut fold, head).await.ok()?.then_some(fold)
}
