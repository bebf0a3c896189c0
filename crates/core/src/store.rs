//! Where logs are kept: the contract of a state store.
//!
//! A store knows nothing of agents. To it, an append is bytes with a place in an order, beside a
//! [`Head`] that lists and sweepers read without folding.

mod patient;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::error::{Error, ErrorCode, Result};
use crate::guarantee::Guarantee;
use crate::id::{AppendId, RunId, SessionId};
pub use patient::PatientStore;

/// The most bytes that the events of one append may have together: 64 MiB.
pub const MAX_APPEND_BYTES: usize = 64 * 1024 * 1024;

/// The most sessions that one [`StateStore::list`] returns.
pub const MAX_PAGE: u32 = 1000;

/// Who can see what a store keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// This process only.
    Process,
    /// Every process on this machine.
    Machine,
    /// Every process that reaches the server.
    Network,
}

/// A place in a log: how many events it has, and the append that brought it there.
///
/// The id is what tells a log that went on from one that was rolled back and went on differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// How many events.
    pub version: u64,
    /// The last append.
    pub append: AppendId,
}

impl Position {
    /// Before the first append.
    #[must_use]
    pub fn start() -> Self {
        Self { version: 0, append: AppendId::none() }
    }
}

/// Session status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// A turn is under way: running, stopped without ending, or waiting for people.
    Active,
    /// The last turn has its answer.
    Completed,
    /// The last run failed.
    Failed,
    /// The last run was interrupted.
    Interrupted,
    /// The last run was aborted.
    Aborted,
}

impl SessionStatus {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Active, Self::Completed, Self::Failed, Self::Interrupted, Self::Aborted];

    /// The name in logs and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Aborted => "aborted",
        }
    }

    /// The status of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

impl fmt::Display for SessionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What lists and sweepers know of a session without reading its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Head {
    /// The session.
    pub session: SessionId,
    /// What it was created as.
    pub created: NewSession,
    /// Where its log ends.
    pub position: Position,
    /// What the writer of the last append said.
    pub summary: Summary,
    /// Until when the current run's owner counts as alive. None without a current run.
    pub lease_until: Option<Timestamp>,
    /// When it was created, by the store's clock.
    pub created_at: Timestamp,
    /// When the last append was taken, by the store's clock.
    pub updated_at: Timestamp,
    /// The store's clock when this head was read: what `lease_until` is compared with.
    pub read_at: Timestamp,
}

impl Head {
    /// Whether somebody held a lease that was still good when this head was read.
    #[must_use]
    pub fn is_leased(&self) -> bool {
        self.lease_until.is_some_and(|until| until > self.read_at)
    }
}

/// The part of a head that never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSession {
    /// The agent's name.
    pub agent: Arc<str>,
    /// The session at the top of the tree: itself, unless it is a child.
    pub root: SessionId,
    /// The session that created it, if it is a child.
    pub parent: Option<SessionId>,
    /// Free labels.
    pub tags: BTreeMap<String, String>,
}

/// The part of a head that the writer of an append computes from the fold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Status after the append.
    pub status: SessionStatus,
    /// The run that is not ended, if there is one.
    pub run: Option<RunId>,
    /// The runtime of the last run.
    pub runtime: Arc<str>,
    /// How many calls wait for people.
    pub pending: u32,
    /// When a sweeper should look at it.
    pub wake_at: Option<Timestamp>,
}

/// What an append does to the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseChange {
    /// Nothing.
    Keep,
    /// The owner counts as alive for this long from now, by the store's clock.
    Take(Duration),
    /// There is no owner any more.
    Clear,
}

/// What must hold, by the store's clock and inside the append, beside the expected position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Nothing more.
    None,
    /// The store's clock has not passed this point.
    NotAfter(Timestamp),
    /// Nobody holds a lease that ends later than now: what starting a run asks for.
    LeaseFree,
}

/// One append, before it is taken.
#[derive(Debug, Clone)]
pub struct Append {
    /// The session.
    pub session: SessionId,
    /// Where the writer believes the log ends.
    pub expected: Position,
    /// This append's own id.
    pub id: AppendId,
    /// The run that writes; none for requests from outside.
    pub run: Option<RunId>,
    /// The schema of the events.
    pub schema: u16,
    /// How many events; at least one.
    pub count: u32,
    /// The events, encoded.
    pub body: Bytes,
    /// The head after it; `None` leaves the summary as it is (requests from outside).
    pub summary: Option<Summary>,
    /// What becomes of the lease.
    pub lease: LeaseChange,
    /// What must hold.
    pub guard: Guard,
}

impl Append {
    /// Refuses what no store takes; for stores to call first.
    ///
    /// # Errors
    /// [`ErrorCode::IdInvalid`] for a session that cannot be, [`ErrorCode::InputInvalid`] without an
    /// event, [`ErrorCode::TooLarge`] above [`MAX_APPEND_BYTES`].
    pub fn check(&self) -> Result<()> {
        self.session.check()?;
        if self.count == 0 {
            return Err(self.invalid("an append has at least one event"));
        }
        if self.body.len() > MAX_APPEND_BYTES {
            let message = "the events of one append are larger than 64 MiB together";
            return Err(Error::new(ErrorCode::TooLarge, message)
                .with_context("session", &self.session)
                .with_context("bytes", self.body.len()));
        }
        Ok(())
    }

    /// Refuses a first append that does not begin a log; returns its summary.
    ///
    /// # Errors
    /// As [`check`](Self::check), and [`ErrorCode::InputInvalid`] if it expects a log or has no
    /// summary.
    pub fn check_first(&self) -> Result<&Summary> {
        self.check()?;
        if self.expected != Position::start() {
            return Err(self.invalid("a session begins at the start of its log"));
        }
        let summary = self.summary.as_ref();
        summary.ok_or_else(|| self.invalid("a session's first append needs a summary"))
    }

    /// Refuses a fork's first append that goes on from nothing; returns its summary.
    ///
    /// # Errors
    /// As [`check`](Self::check), and [`ErrorCode::InputInvalid`] if it expects no log, expects the
    /// session's own, or has no summary.
    pub fn check_fork(&self, from: &SessionId) -> Result<&Summary> {
        self.check()?;
        if self.expected.version == 0 {
            return Err(self.invalid("a fork goes on from an append of the original"));
        }
        if self.session == *from {
            return Err(self.invalid("a fork is a session of its own"));
        }
        let summary = self.summary.as_ref();
        summary.ok_or_else(|| self.invalid("a session's first append needs a summary"))
    }

    fn invalid(&self, message: &'static str) -> Error {
        Error::new(ErrorCode::InputInvalid, message).with_context("session", &self.session)
    }
}

/// One append as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAppend {
    /// The place of its first event, from 1.
    pub first: u64,
    /// How many events.
    pub count: u32,
    /// Its id.
    pub id: AppendId,
    /// The run that wrote it.
    pub run: Option<RunId>,
    /// The schema of the events.
    pub schema: u16,
    /// When it was taken, by the store's clock; never decreasing within a session.
    pub at: Timestamp,
    /// The events, encoded.
    pub body: Bytes,
}

impl StoredAppend {
    /// The version after it.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.first + u64::from(self.count) - 1
    }

    /// The position after it.
    #[must_use]
    pub fn position(&self) -> Position {
        Position { version: self.version(), append: self.id.clone() }
    }
}

/// What came of an append that the store could judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendOutcome {
    /// Taken, now or when it was sent the first time.
    Appended {
        /// When, by the store's clock.
        at: Timestamp,
    },
    /// The log goes on after the expected position; nothing was written.
    Conflict {
        /// What was missed, in order.
        missed: Vec<StoredAppend>,
    },
    /// The guard does not hold; nothing was written.
    GuardFailed {
        /// The lease that is in the way, if it is one.
        lease_until: Option<Timestamp>,
        /// The store's clock.
        now: Timestamp,
    },
    /// The log does not hold what the expected position says; nothing was written.
    HistoryLost,
}

/// What came of creating a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreateOutcome {
    /// This call created it, now or when it was sent the first time.
    Created {
        /// When, by the store's clock.
        at: Timestamp,
    },
    /// Somebody else created it.
    Exists,
}

/// What came of forking a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForkOutcome {
    /// This call made the new session, now or when it was sent the first time.
    Created {
        /// When, by the store's clock.
        at: Timestamp,
    },
    /// Somebody else created a session of that id.
    Exists,
    /// The original's log never ended at the expected position; nothing was written.
    HistoryLost,
}

/// What came of renewing a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewal {
    /// Whether the run still is the session's current one; if not, nothing was renewed.
    pub renewed: bool,
    /// The head afterwards: how an owner hears of requests from outside.
    pub head: Head,
}

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
    /// With a current run whose lease has run out by the store's clock, or was cleared.
    pub lease_expired: bool,
    /// With a wake-up time that has passed by the store's clock.
    pub wake_due: bool,
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

/// Which sessions to forget, with all below them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purge {
    /// Nothing was appended to them, nor to any session below, for so long, by the store's clock.
    pub older_than: Duration,
    /// In one of these states. One that runs or waits is [`Active`](SessionStatus::Active).
    pub statuses: Vec<SessionStatus>,
}

impl Purge {
    /// The roots to forget, of the heads of all sessions; for stores that have those at hand.
    #[must_use]
    pub fn roots(&self, heads: &[Head]) -> Vec<SessionId> {
        let is_young = |head: &&Head| !self.is_old(head);
        let kept: BTreeSet<_> = heads.iter().filter(is_young).map(|it| &it.created.root).collect();
        let is_named = |head: &&Head| {
            head.created.parent.is_none() && self.statuses.contains(&head.summary.status)
        };
        let named = heads.iter().filter(is_named).map(|head| &head.session);
        named.filter(|root| !kept.contains(root)).cloned().collect()
    }

    /// Whether nobody works on a session, and nothing was appended to it for long enough.
    #[must_use]
    pub fn is_old(&self, head: &Head) -> bool {
        !head.is_leased() && head.read_at.since(head.updated_at) >= self.older_than
    }
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
/// - Summary, lease and events of one append become visible together.
/// - `at` is the store's clock, never decreasing within a session. Leases are compared with it,
///   never with a process's clock.
/// - Ids are any text without control characters. Those of sessions have up to
///   [`MAX_ID_BYTES`](crate::id::MAX_ID_BYTES); others are refused with
///   [`IdInvalid`](crate::error::ErrorCode::IdInvalid), and to whoever asks for one there is no such
///   session. Bodies are any bytes up to [`MAX_APPEND_BYTES`], refused above that with
///   [`TooLarge`](crate::error::ErrorCode::TooLarge). An append of no events is refused with
///   [`InputInvalid`](crate::error::ErrorCode::InputInvalid).
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
/// Dropping a future leaves open whether the operation took place, as with a lost reply.
///
/// # Wrappers
///
/// Forward every method: put `#[deny(clippy::missing_trait_methods)]` on the impl.
#[async_trait]
pub trait StateStore: fmt::Debug + Send + Sync + 'static {
    /// Who can see what it keeps.
    fn reach(&self) -> Reach;

    /// What may be relied on as it is configured, and why: one for each of
    /// [`Promise::OF_STORES`](crate::guarantee::Promise::OF_STORES), in that order.
    fn guarantees(&self) -> Vec<Guarantee>;

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

    /// Extends the lease to `ttl` from now, if `run` is the session's current run.
    ///
    /// # Errors
    /// [`SessionNotFound`](crate::error::ErrorCode::SessionNotFound), and those of the backend.
    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal>;

    /// Deletes a session and its children. Deleting one that does not exist is no error; the
    /// answer says whether it did.
    ///
    /// # Errors
    /// Those of the backend.
    async fn delete(&self, session: &SessionId) -> Result<bool>;

    /// Forgets the roots that are named, each with all below it, and their streams if the store
    /// keeps those, too; says how many sessions that were. A tree goes whole or not at all, and not
    /// while somebody holds a lease in it. What forks share with it stays.
    ///
    /// # Cancel safety
    /// It goes tree by tree, so it may be stopped and called again at any time.
    ///
    /// # Errors
    /// Those of the backend.
    async fn purge(&self, purge: &Purge) -> Result<u64>;
}
