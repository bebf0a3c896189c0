//! Filters for listing and purging sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{Head, SessionStatus, tags};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::SessionId;

/// The maximum number of sessions that one [`StateStore::list`](super::StateStore::list) call
/// returns.
pub const MAX_PAGE: u32 = 1000;

/// A filter for listing sessions. All conditions must hold.
///
/// Build filters with the methods, so that new conditions do not affect your code. In a store,
/// destructure the filter without `..`, so that a new condition is a compile error and not ignored.
///
/// # Examples
///
/// Lists the sessions that wait for an answer:
///
/// ```no_run
/// use helix_agents_core::store::{Page, SessionFilter, StateStore};
///
/// # async fn example(store: &dyn StateStore) -> helix_agents_core::error::Result<()> {
/// let filter = SessionFilter::new().pending();
/// for head in store.list(&filter, &Page::default()).await? {
///     println!("{}: {} calls", head.session, head.summary.pending);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Sessions of this agent.
    pub agent: Option<Arc<str>>,
    /// Sessions with this status.
    pub status: Option<SessionStatus>,
    /// Sessions in the tree of this root, including the root.
    pub root: Option<SessionId>,
    /// Sessions whose last run was of this kind of runtime.
    pub runtime: Option<Arc<str>>,
    /// Only sessions whose [`Summary::pending`](super::Summary::pending) is not zero.
    pub pending: bool,
    /// Only sessions with a current run whose lease was cleared or has expired, by the store's
    /// clock.
    pub lease_expired: bool,
    /// Only sessions whose wake-up time has been reached, by the store's clock.
    pub wake_due: bool,
    /// Sessions created at this time or later, by the store's clock.
    pub created_from: Option<Timestamp>,
    /// Sessions created before this time, by the store's clock.
    pub created_before: Option<Timestamp>,
    /// Sessions with all of these tags. They may have others.
    pub tags: BTreeMap<String, String>,
}

impl SessionFilter {
    /// Creates a filter that selects all sessions.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            agent: None,
            status: None,
            root: None,
            runtime: None,
            pending: false,
            lease_expired: false,
            wake_due: false,
            created_from: None,
            created_before: None,
            tags: BTreeMap::new(),
        }
    }

    /// Selects sessions of this agent.
    #[must_use]
    pub fn agent(mut self, name: impl Into<Arc<str>>) -> Self {
        self.agent = Some(name.into());
        self
    }

    /// Selects sessions with this status.
    #[must_use]
    pub fn status(mut self, status: SessionStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// Selects the sessions in the tree of this root, including the root.
    #[must_use]
    pub fn root(mut self, root: impl Into<SessionId>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// Selects sessions whose last run was of this kind of runtime.
    #[must_use]
    pub fn runtime(mut self, kind: impl Into<Arc<str>>) -> Self {
        self.runtime = Some(kind.into());
        self
    }

    /// Selects sessions whose [`Summary::pending`](super::Summary::pending) is not zero.
    #[must_use]
    pub fn pending(mut self) -> Self {
        self.pending = true;
        self
    }

    /// Selects sessions with a current run whose lease was cleared or has expired.
    #[must_use]
    pub fn lease_expired(mut self) -> Self {
        self.lease_expired = true;
        self
    }

    /// Selects sessions whose wake-up time has been reached.
    #[must_use]
    pub fn wake_due(mut self) -> Self {
        self.wake_due = true;
        self
    }

    /// Selects sessions created at this time or later, by the store's clock.
    #[must_use]
    pub fn created_from(mut self, at: Timestamp) -> Self {
        self.created_from = Some(at);
        self
    }

    /// Selects sessions created before this time, by the store's clock.
    #[must_use]
    pub fn created_before(mut self, at: Timestamp) -> Self {
        self.created_before = Some(at);
        self
    }

    /// Selects sessions with this tag. Further calls add further tags, all of which must match.
    #[must_use]
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.insert(key.into(), value.into());
        self
    }

    /// Checks the limits that all stores share. Stores call it before they list sessions.
    ///
    /// # Errors
    /// Returns [`ErrorCode::TagInvalid`](crate::error::ErrorCode::TagInvalid) for tags that no
    /// session can have.
    pub fn check(&self) -> Result<()> {
        tags::check(&self.tags)
    }

    /// Returns `true` if the creation time `at` is in the range of the filter.
    #[must_use]
    pub fn is_created_in_range(&self, at: Timestamp) -> bool {
        self.created_from.is_none_or(|from| from <= at)
            && self.created_before.is_none_or(|before| at < before)
    }
}

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The last session of the previous page.
    pub after: Option<SessionId>,
    /// The maximum number of sessions; capped at [`MAX_PAGE`].
    pub limit: u32,
}

impl Default for Page {
    fn default() -> Self {
        Self { after: None, limit: 100 }
    }
}

/// A selection of sessions to delete together with their descendants: roots, and children whose
/// parent was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purge {
    /// The minimum time since the last append to any session of the tree, by the store's clock. A
    /// tree consists of all sessions with the same root, even if that was deleted.
    pub older_than: Duration,
    /// The statuses of the topmost sessions. A running or suspended session is
    /// [`Active`](SessionStatus::Active).
    pub statuses: Vec<SessionStatus>,
}

impl Purge {
    /// Returns the topmost sessions to delete; the caller deletes their descendants. `heads` must
    /// contain every session, so this is for stores that can list all of them cheaply.
    #[must_use]
    pub fn roots(&self, heads: &[Head]) -> Vec<SessionId> {
        let is_young = |head: &&Head| !self.is_old(head);
        let kept: BTreeSet<_> =
            heads.iter().filter(is_young).map(|head| &head.created.root).collect();
        let all: BTreeSet<_> = heads.iter().map(|head| &head.session).collect();
        let is_top =
            |head: &Head| head.created.parent.as_ref().is_none_or(|above| !all.contains(above));
        let is_named = |head: &&Head| is_top(head) && self.statuses.contains(&head.summary.status);
        let named = heads.iter().filter(is_named).filter(|head| !kept.contains(&head.created.root));
        named.map(|head| head.session.clone()).collect()
    }

    /// Returns `true` if the session has no owner and its last append is old enough.
    #[must_use]
    pub fn is_old(&self, head: &Head) -> bool {
        !head.is_leased() && head.read_at.since(head.updated_at) >= self.older_than
    }
}
