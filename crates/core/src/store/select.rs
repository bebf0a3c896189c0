//! Which sessions are meant: to be listed, or forgotten.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::{Head, SessionStatus};
use crate::clock::Timestamp;
use crate::id::SessionId;

/// The most sessions that one [`StateStore::list`](super::StateStore::list) returns.
pub const MAX_PAGE: u32 = 1000;

/// Which sessions to list. All given conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Of this agent.
    pub agent: Option<Arc<str>>,
    /// In this status.
    pub status: Option<SessionStatus>,
    /// Below this root, itself included.
    pub root: Option<SessionId>,
    /// Whose last run was of this runtime.
    pub runtime: Option<Arc<str>>,
    /// With calls that wait for people.
    pub pending: bool,
    /// With a current run whose lease was cleared, or ends at this moment of the store's clock or
    /// earlier.
    pub lease_expired: bool,
    /// With a wake-up time that is this moment of the store's clock or earlier.
    pub wake_due: bool,
    /// Created at this moment of the store's clock or later.
    pub created_from: Option<Timestamp>,
    /// Created before this moment of the store's clock.
    pub created_before: Option<Timestamp>,
}

impl SessionFilter {
    /// Returns `true` if a session that was created at `at` is in the range of creation times.
    #[must_use]
    pub fn is_created_in_range(&self, at: Timestamp) -> bool {
        self.created_from.is_none_or(|from| from <= at)
            && self.created_before.is_none_or(|before| at < before)
    }
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Go on after this session, the last one of the page before.
    pub after: Option<SessionId>,
    /// At most this many; held at [`MAX_PAGE`].
    pub limit: u32,
}

impl Default for Page {
    fn default() -> Self {
        Self { after: None, limit: 100 }
    }
}

/// Which sessions to forget, with all below them: roots, and children whose parent is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purge {
    /// Nothing was appended to any session of the tree for so long, by the store's clock. A tree is all
    /// sessions with the same root, whether that is still there or not.
    pub older_than: Duration,
    /// In one of these states. One that runs or waits is [`Active`](SessionStatus::Active).
    pub statuses: Vec<SessionStatus>,
}

impl Purge {
    /// The sessions to forget with all below them, of the heads of all sessions; for stores that have
    /// those at hand.
    #[must_use]
    pub fn roots(&self, heads: &[Head]) -> Vec<SessionId> {
        let is_young = |head: &&Head| !self.is_old(head);
        let kept: BTreeSet<_> = heads.iter().filter(is_young).map(|it| &it.created.root).collect();
        let all: BTreeSet<_> = heads.iter().map(|it| &it.session).collect();
        let is_top =
            |head: &Head| head.created.parent.as_ref().is_none_or(|above| !all.contains(above));
        let is_named = |head: &&Head| is_top(head) && self.statuses.contains(&head.summary.status);
        let named = heads.iter().filter(is_named).filter(|it| !kept.contains(&it.created.root));
        named.map(|head| head.session.clone()).collect()
    }

    /// Whether a session has no owner, and nothing was appended to it for long enough.
    #[must_use]
    pub fn is_old(&self, head: &Head) -> bool {
        !head.is_leased() && head.read_at.since(head.updated_at) >= self.older_than
    }
}
