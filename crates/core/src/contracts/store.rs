//! The state store contract: a place that keeps session logs.
//!
//! A store knows nothing about agents. An append is a sequence of bytes at a position in a log, together with a
//! [`Head`], which listings and sweepers read instead of the log.

mod all;
mod append;
mod counts;
mod head;
mod retrying;
mod select;
mod snapshot;
mod tags;
mod usage;
mod write_queue;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::error::Result;
use crate::guarantee::Guarantee;
use crate::id::{RunId, SessionId};
pub use all::list_all;
pub use append::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Guard, LeaseChange, MAX_APPEND_BYTES,
    MIN_APPEND_BYTES, Position, StoredAppend,
};
pub use counts::SessionCounts;
pub use head::{Head, NewSession, Renewal, SessionStatus, Summary};
pub use retrying::RetryingStore;
pub use select::{MAX_PAGE, Page, Purge, SessionFilter};
pub use snapshot::Snapshot;
pub use tags::{MAX_TAG_KEY_BYTES, MAX_TAG_VALUE_BYTES, MAX_TAGS};
pub use usage::SessionUsage;
pub use write_queue::WriteQueue;

/// The processes that can see a store's data. Whether the data outlives its process is reported
/// separately by [`guarantees`](StateStore::guarantees): a file that one process uses exclusively
/// has the scope of that process, but survives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StoreScope {
    /// Only this process.
    Process,
    /// Every process on this machine.
    Machine,
    /// Every process that can connect to the server.
    Network,
}

/// A store of session logs.
///
/// # Contract
///
/// `store_suite!` of `helix-agents-conformance` is the executable form of this contract; every store
/// must pass it.
///
/// - The appends of one session are totally ordered. [`read_log`](Self::read_log) returns them in
///   that order, without gaps. An append that one caller has read is visible to all later reads.
/// - Appends are atomic. An append is accepted only if, at that moment, the log ends at the
///   expected position and the guard holds by the store's own clock.
/// - At most one of several different appends at one position is accepted. The others get [`AppendOutcome::Conflict`]
///   with the appends that they missed.
/// - Appends are idempotent. An append that is repeated with the same id and position returns the
///   first result and is written once, however much was appended since. A caller resolves a lost
///   reply by retrying.
/// - If the log has another append id at the expected version, or ends before that version, the
///   outcome is [`AppendOutcome::HistoryLost`]. The guard is checked last: a repeated append
///   returns its result, and a stale position is a conflict, whether or not the guard holds.
/// - A fork's log is the original's log up to a position, followed by its own appends. Neither session sees the other's
///   later appends, and either can be written, forked again or deleted independently. Every position of the original up
///   to the fork point is also valid in the fork. Shared data is kept until the last session that shares it is deleted.
/// - Summary, usage, lease and events of one append become visible atomically.
/// - A session's usage is the one in the last append that carried usage. A fork has only the usage
///   of its own appends, never the original's. It is deleted with the session.
/// - The time of an append ([`StoredAppend::at`]) is read from the store's clock and never
///   decreases within a session. All handles of a store share one clock, to the millisecond. Leases
///   are compared with that clock, never with a process's clock.
/// - Time comparisons are exact. A lease is held while the clock is before its expiry, and free at the expiry. An
///   append with [`Guard::NotAfter`] is accepted up to and including the given time.
/// - Ids of sessions, runs and appends are strings of 1 to
///   [`MAX_ID_BYTES`](crate::id::MAX_ID_BYTES) bytes without control characters, compared byte by
///   byte. [`Append::check_first`], [`check_fork`](Append::check_fork) and [`check`](Append::check)
///   reject others with [`IdInvalid`](crate::error::ErrorCode::IdInvalid). For reads, a session
///   with an invalid id does not exist.
/// - The tags of a session are those with which it was created or forked. They become visible, to [`head`](Self::head)
///   and to [`list`](Self::list) by tag, together with the session, never change, and are deleted with it. A fork has
///   exactly the tags in its own [`NewSession`]. Keys and values are compared byte by byte.
///   [`Append::check_first`] and [`check_fork`](Append::check_fork) reject tags beyond the limits with
///   [`TagInvalid`](crate::error::ErrorCode::TagInvalid).
/// - Bodies are arbitrary bytes up to [`max_append_bytes`](Self::max_append_bytes). Larger ones are
///   rejected with [`TooLarge`](crate::error::ErrorCode::TooLarge), appends without events with
///   [`InputInvalid`](crate::error::ErrorCode::InputInvalid).
/// - A session has at most one snapshot, the one with the greatest version. It is deleted with the session and not
///   inherited by forks. It may be lost at any time.
///
/// # Durability
///
/// An append that returned `Appended` or `Created` survives each kind of failure for which
/// [`guarantees`](Self::guarantees) reports a guarantee that holds. After an error of kind
/// [`Unavailable`](crate::error::ErrorKind::Unavailable) it is unknown whether the append was
/// accepted: retry it.
///
/// # Cancel safety
///
/// After a future was dropped it is unknown whether the operation took place, as with a lost reply.
/// A future that was polled once and is not polled again must not block others: work that holds a
/// connection or a lock runs on its own task.
///
/// # Wrappers
///
/// Forward every method: put `#[deny(clippy::missing_trait_methods)]` on the impl.
///
/// # Examples
///
/// ```no_run
/// use helix_agents_core::store::StateStore;
///
/// # use helix_agents_core::error::Result;
/// # async fn example(store: &dyn StateStore) -> Result<()> {
/// if let Some(head) = store.head(&"ticket-7".into()).await? {
///     println!("version {}, {:?}", head.position.version, head.summary.status);
/// }
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait StateStore: fmt::Debug + Send + Sync + 'static {
    /// Returns which processes can see the store's data.
    fn scope(&self) -> StoreScope;

    /// Returns what the store guarantees in its configuration, and why: one entry for each of
    /// [`GuaranteeKind::OF_STORES`](crate::guarantee::GuaranteeKind::OF_STORES), in that order.
    fn guarantees(&self) -> Vec<Guarantee>;

    /// Returns the maximum body size of one append, in bytes: [`MAX_APPEND_BYTES`] unless the
    /// backend accepts less, and at least [`MIN_APPEND_BYTES`]. Runs split their records
    /// accordingly.
    fn max_append_bytes(&self) -> usize {
        MAX_APPEND_BYTES
    }

    /// Returns the identity of the queue that executes appends in the order in which their futures are first polled, or
    /// `None` if the order is not guaranteed.
    fn write_queue(&self) -> Option<WriteQueue> {
        None
    }

    /// Creates a session with its first append. The append's `expected` is [`Position::start`] and
    /// it has a summary.
    ///
    /// With [`Guard::ParentExists`], the store creates a child only if its parent exists, and otherwise returns
    /// [`CreateOutcome::ParentMissing`]. A concurrent deletion of the parent either prevents the child or deletes it. A
    /// store that cannot ensure this if the creating process crashes documents it. The guard has no effect on a root.
    /// Other guards are ignored.
    ///
    /// # Errors
    /// Returns [`InputInvalid`](crate::error::ErrorCode::InputInvalid) for any other first append, and errors of the
    /// backend. If the session exists, the result is [`CreateOutcome::Exists`], not an error.
    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome>;

    /// Creates a session whose log is the log of `from` up to the position that `first` expects,
    /// followed by `first`. That position is the end of an append. The lease of the original is not
    /// inherited, and the guard of `first` is ignored. The history is not copied if the database
    /// can avoid it.
    ///
    /// A repeated call with the same `first` returns the first result. If a session with the new id exists, the result
    /// is [`ForkOutcome::Exists`], whatever the position.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`](crate::error::ErrorCode::SessionNotFound) if `from` does not exist;
    /// [`InputInvalid`](crate::error::ErrorCode::InputInvalid) if the first append has no summary, is at the start of
    /// the log, or belongs to the same session; and errors of the backend.
    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome>;

    /// Appends to a session.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`](crate::error::ErrorCode::SessionNotFound), and errors of the backend.
    async fn append(&self, append: Append) -> Result<AppendOutcome>;

    /// Returns up to `limit` appends that follow version `after`, in log order. `after` must be 0 or the
    /// [version](StoredAppend::version) at which an append ends. Unless `limit` is 0, an empty result means that the
    /// log ends at `after`.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`](crate::error::ErrorCode::SessionNotFound), and errors of the backend.
    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>>;

    /// Returns the head of a session, if the session exists.
    ///
    /// # Errors
    /// Returns the errors of the backend.
    async fn head(&self, session: &SessionId) -> Result<Option<Head>>;

    /// Lists heads, newest first: by creation time and then by id, both descending.
    ///
    /// A list by tag should not read sessions without the tag: a store with many sessions keeps an index of tags, in the
    /// order of the list. With several tags, it searches the sessions that have one of them. Sessions that do not meet
    /// the other conditions are read and skipped.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`](crate::error::ErrorCode::SessionNotFound) if the page continues after a session that
    /// was deleted, [`TagInvalid`](crate::error::ErrorCode::TagInvalid) from [`SessionFilter::check`], and errors of the
    /// backend.
    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>>;

    /// Lists heads together with the usage of each session. Sessions, order and pages are those of
    /// [`list`](Self::list). No log is read.
    ///
    /// # Errors
    /// Returns the errors of [`list`](Self::list).
    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>>;

    /// Sets the lease expiry to `ttl` from now, if `run` is the session's current run. The new
    /// expiry may be earlier: a `ttl` of zero releases the lease.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`](crate::error::ErrorCode::SessionNotFound), and errors of the backend.
    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal>;

    /// Saves a snapshot of a session instead of one of a lower version. The call does nothing and succeeds if the store
    /// has a snapshot of a higher version, if the log is shorter than the snapshot's version, or if the session does
    /// not exist. The reader of the snapshot checks that its position is in the log.
    ///
    /// Optional: without it the first read of a session in each process reads the whole log.
    ///
    /// # Errors
    /// Returns [`TooLarge`](crate::error::ErrorCode::TooLarge) and [`IdInvalid`](crate::error::ErrorCode::IdInvalid)
    /// from [`Snapshot::check`], and errors of the backend. A failure only makes the next read slower.
    async fn save_snapshot(&self, _session: &SessionId, _snapshot: Snapshot) -> Result<()> {
        Ok(())
    }

    /// Returns the snapshot of a session, if there is one.
    ///
    /// # Errors
    /// Returns the errors of the backend.
    async fn snapshot(&self, _session: &SessionId) -> Result<Option<Snapshot>> {
        Ok(None)
    }

    /// Deletes a session and all its descendants. If the store also keeps streams, the stream of the session is deleted
    /// as well, whatever its state, and no later than the session. The chunks of a child session are in the stream of
    /// its root and are deleted with that stream. Returns whether the session existed; deleting a missing session is
    /// not an error.
    ///
    /// A store that only keeps sessions leaves streams to the caller:
    /// [`delete_session`](crate::session::delete_session) deletes both.
    ///
    /// # Errors
    /// Returns the errors of the backend.
    async fn delete(&self, session: &SessionId) -> Result<bool> {
        self.delete_if(session, &BTreeMap::new()).await
    }

    /// Deletes a session as [`delete`](Self::delete) does if it has all of these tags. Otherwise it changes nothing and
    /// returns `false`, as for a missing session.
    ///
    /// The check and the deletion are atomic: another session that is created with the id in the meantime is deleted
    /// only if it has the tags as well.
    ///
    /// # Errors
    /// Returns the errors of the backend.
    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool>;

    /// Deletes all matching root sessions, each with all its descendants and their streams, as [`delete`](Self::delete)
    /// does. Returns the number of deleted sessions. No session of a tree is deleted while a lease is held in the tree.
    /// A store that cannot delete a tree atomically documents what a crash can leave behind. Data that is shared with
    /// forks is kept. A child whose parent was deleted counts as a root, and its own status decides.
    ///
    /// # Cancel safety
    /// Trees are deleted one by one, so the call can be dropped and repeated at any time.
    ///
    /// # Errors
    /// Returns the errors of the backend.
    async fn purge(&self, purge: &Purge) -> Result<u64>;
}
