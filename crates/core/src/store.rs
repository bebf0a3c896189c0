//! Where logs are kept: the contract of a state store.
//!
//! A store knows nothing of agents. To it, an append is bytes with a place in an order, beside a
//! [`Head`] that lists and sweepers read without folding.

mod all;
mod append;
mod head;
mod retrying;
mod select;
mod snapshot;
mod usage;

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
pub use head::{Head, NewSession, Renewal, SessionStatus, Summary};
pub use retrying::RetryingStore;
pub use select::{MAX_PAGE, Page, Purge, SessionFilter};
pub use snapshot::Snapshot;
pub use usage::SessionUsage;

/// Who can see what a store keeps. Whether that outlives its process is another matter, which
/// [`guarantees`](StateStore::guarantees) answers: a file that one process keeps to itself reaches no
/// further than that process, and survives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoreScope {
    /// This process only.
    Process,
    /// Every process on this machine.
    Machine,
    /// Every process that reaches the server.
    Network,
}

/// A place that keeps logs.
///
/// # Contract
///
/// `store_suite!` of `helix-agents-testkit` is the executable form of this section; a store is
/// what passes it.
///
/// - The appends of one session are totally ordered; [`read_log`](Self::read_log) returns them in that
///   order, gapless, and what one caller has read no later caller misses.
/// - An append is taken whole or not at all, and only if the log ends at the expected position
///   and the guard holds at that moment by the store's own clock.
/// - Of several appends at one position exactly one is taken; the others get
///   [`AppendOutcome::Conflict`] with what they missed.
/// - An append repeated under its id and position is answered as the first time and written once,
///   however much was appended since. So a lost reply is resolved by asking again.
/// - The expected version under another append id, or a version that the log does not reach, is
///   [`AppendOutcome::HistoryLost`]. The guard is judged last: a repetition is answered, and a
///   stale position is a conflict, whether it holds or not.
/// - A fork's log is the original's up to a position, and goes on from there by itself: neither
///   sees what is appended to the other, whichever is written, forked again or deleted. Every
///   position up to the one that is shared is one of the fork's, too. What is shared is kept until
///   the last session that shares it is gone.
/// - Summary, usage, lease and events of one append become visible together.
/// - A session's usage is what the last append said that said anything of it. A fork has what its
///   own appends say, never its original's. It goes with its session.
/// - `at` is the store's clock, never decreasing within a session. All handles of a store have the
///   same clock, to the millisecond. Leases are compared with it, never with a process's clock.
/// - Comparisons are exact. A lease is held before its end and free from that moment on; an append
///   with [`Guard::NotAfter`] is taken up to that moment, which is included.
/// - The ids of sessions, runs and appends are any text of 1 to
///   [`MAX_ID_BYTES`](crate::id::MAX_ID_BYTES) bytes without control characters, compared byte by
///   byte. [`Append::check_first`], [`check_fork`](Append::check_fork) and [`check`](Append::check)
///   refuse others with [`IdInvalid`](crate::error::ErrorCode::IdInvalid). A caller that asks for a
///   session with such an id is told that there is none.
/// - Bodies are any bytes up to [`max_append_bytes`](Self::max_append_bytes), refused above that with
///   [`TooLarge`](crate::error::ErrorCode::TooLarge). An append of no events is refused with
///   [`InputInvalid`](crate::error::ErrorCode::InputInvalid).
///
/// - A session has at most one snapshot, the newest that was saved. It goes with its session, and no
///   fork has its original's. It may be lost at any time, and counts against nothing.
///
/// # Durability
///
/// What was answered with `Appended` or `Created` survives what [`guarantees`](Self::guarantees)
/// says it survives. An error of kind
/// [`Unavailable`](crate::error::ErrorKind::Unavailable) leaves open whether the append was taken:
/// repeat it.
///
/// # Cancel safety
///
/// Dropping a future leaves open whether the operation took place, as with a lost reply. One that was
/// polled once and then is not holds up no other: what has a connection or a lock on its way is
/// carried out on a task of its own.
///
/// # Wrappers
///
/// Forward every method: put `#[deny(clippy::missing_trait_methods)]` on the impl.
#[async_trait]
pub trait StateStore: fmt::Debug + Send + Sync + 'static {
    /// Who can see what it keeps.
    fn reach(&self) -> StoreScope;

    /// What may be relied on as it is configured, and why: one for each of
    /// [`GuaranteeKind::OF_STORES`](crate::guarantee::GuaranteeKind::OF_STORES), in that order.
    fn guarantees(&self) -> Vec<Guarantee>;

    /// The most bytes that the body of one append may have: [`MAX_APPEND_BYTES`] unless the backend
    /// takes less, and not below [`MIN_APPEND_BYTES`]. Runs divide what they record accordingly.
    fn max_append_bytes(&self) -> usize {
        MAX_APPEND_BYTES
    }

    /// Creates a session with its first append, whose `expected` is [`Position::start`] and which
    /// has a summary. Its guard is not looked at.
    ///
    /// # Errors
    /// [`InputInvalid`](crate::error::ErrorCode::InputInvalid) for another first append, and those
    /// of the backend. An existing session is an outcome, not an error.
    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome>;

    /// Creates a session whose log is that of `from` up to the position that `first` expects, which
    /// is the end of one of its appends, and then `first`. The lease of the original is not taken
    /// over, and the guard of `first` is not looked at. It does not copy the history where the
    /// database can do without.
    ///
    /// Repeated with the same `first` it is answered as the first time. An existing session is an
    /// outcome, and judged before the position is.
    ///
    /// # Errors
    /// [`SessionNotFound`](crate::error::ErrorCode::SessionNotFound) if there is no `from`,
    /// [`InputInvalid`](crate::error::ErrorCode::InputInvalid) for a first append without summary,
    /// at the start of the log or of the same session, and those of the backend.
    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome>;

    /// Appends to a session.
    ///
    /// # Errors
    /// [`SessionNotFound`](crate::error::ErrorCode::SessionNotFound), and those of the backend.
    async fn append(&self, append: Append) -> Result<AppendOutcome>;

    /// The appends after version `after`, at most `limit` of them. `after` is 0 or the version
    /// after some append; empty means that the log ends there.
    ///
    /// # Errors
    /// [`SessionNotFound`](crate::error::ErrorCode::SessionNotFound), and those of the backend.
    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>>;

    /// The head of a session, if it exists.
    ///
    /// # Errors
    /// Those of the backend.
    async fn head(&self, session: &SessionId) -> Result<Option<Head>>;

    /// Heads, newest first: by creation time and then by id, both descending.
    ///
    /// # Errors
    /// [`SessionNotFound`](crate::error::ErrorCode::SessionNotFound) if the page is to go on after
    /// a session that is gone, and those of the backend.
    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>>;

    /// Heads with the usage of each session: the sessions, the order and the pages of
    /// [`list`](Self::list). It reads no log.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>>;

    /// Sets the end of the lease to `ttl` from now, if `run` is the session's current run. That may be
    /// earlier than before: a `ttl` of zero gives the lease back.
    ///
    /// # Errors
    /// [`SessionNotFound`](crate::error::ErrorCode::SessionNotFound), and those of the backend.
    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal>;

    /// Keeps a snapshot of a session in place of the one before. Nothing is kept, without an error, if a
    /// snapshot of a higher version is, if the log does not reach the snapshot's version, or if there is
    /// no such session. Whether the log has its position is for the reader to find out.
    ///
    /// A store that keeps none need not implement it: then each first look at a session reads its whole
    /// log.
    ///
    /// # Errors
    /// [`TooLarge`](crate::error::ErrorCode::TooLarge) and
    /// [`IdInvalid`](crate::error::ErrorCode::IdInvalid) as [`Snapshot::check`] says, and those of the
    /// backend. A failure costs nothing but the next reader's time.
    async fn save_snapshot(&self, _session: &SessionId, _snapshot: Snapshot) -> Result<()> {
        Ok(())
    }

    /// The snapshot of a session, if one is kept.
    ///
    /// # Errors
    /// Those of the backend.
    async fn snapshot(&self, _session: &SessionId) -> Result<Option<Snapshot>> {
        Ok(None)
    }

    /// Deletes a session and all below it, with their streams if the store keeps those, too: as
    /// [`forget`](crate::stream::StreamManager::forget) does, and not later than the sessions. What a
    /// child has shown is in the stream of its root and goes with that. Deleting a session that does
    /// not exist is no error; the answer says whether it did.
    ///
    /// A store that keeps sessions only leaves their streams to the caller:
    /// [`delete_session`](crate::session::delete_session) deletes both.
    ///
    /// # Errors
    /// Those of the backend.
    async fn delete(&self, session: &SessionId) -> Result<bool>;

    /// Deletes the roots that are named, each with all below it and their streams, as
    /// [`delete`](Self::delete) does; says how many sessions that were. A tree goes whole or not at all,
    /// and not while an owner holds a lease in it. What forks share with it stays. A child whose parent
    /// is gone counts as a root, by its own state.
    ///
    /// # Cancel safety
    /// It goes tree by tree, so it may be stopped and called again at any time.
    ///
    /// # Errors
    /// Those of the backend.
    async fn purge(&self, purge: &Purge) -> Result<u64>;
}
