//! What is asked of a log, and what came of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{NewSession, Summary};
use crate::clock::Timestamp;
use crate::error::{Error, ErrorCode, Result};
use crate::id::{AppendId, RunId, SessionId};
use crate::usage::UsageRollup;

/// The most bytes that the events of one append may have together: 64 MiB.
pub const MAX_APPEND_BYTES: usize = 64 * 1024 * 1024;

/// The least that a store's limit on the bytes of one append may be: 16 KiB. What a run records of
/// something that was too large is smaller.
pub const MIN_APPEND_BYTES: usize = 16 * 1024;

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
    /// The usage of the session itself after it: totals, not what this append adds. `None` leaves
    /// them as they are.
    pub usage: Option<Arc<UsageRollup>>,
    /// What becomes of the lease.
    pub lease: LeaseChange,
    /// What must hold.
    pub guard: Guard,
}

impl Append {
    /// Refuses what no store takes; for stores to call first.
    ///
    /// # Errors
    /// [`ErrorCode::IdInvalid`] if the id of the session, of the append, of its run or of the
    /// summary's run is empty, too long or holds a control character; [`ErrorCode::InputInvalid`]
    /// without an event; [`ErrorCode::TooLarge`] above [`MAX_APPEND_BYTES`].
    pub fn check(&self) -> Result<()> {
        self.session.check()?;
        self.id.check()?;
        let current = self.summary.as_ref().and_then(|summary| summary.run.as_ref());
        [self.run.as_ref(), current].into_iter().flatten().try_for_each(RunId::check)?;
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
    /// As [`check`](Self::check) and [`NewSession::check`], and [`ErrorCode::InputInvalid`] if it
    /// expects a log or has no summary.
    pub fn check_first(&self, new: &NewSession) -> Result<&Summary> {
        self.check()?;
        new.check()?;
        if self.expected != Position::start() {
            return Err(self.invalid("a session begins at the start of its log"));
        }
        let summary = self.summary.as_ref();
        summary.ok_or_else(|| self.invalid("a session's first append needs a summary"))
    }

    /// Refuses a fork's first append that goes on from nothing; returns its summary.
    ///
    /// # Errors
    /// As [`check`](Self::check) and [`NewSession::check`], and [`ErrorCode::InputInvalid`] if it
    /// expects no log, expects the session's own, or has no summary.
    pub fn check_fork(&self, from: &SessionId, new: &NewSession) -> Result<&Summary> {
        self.check()?;
        new.check()?;
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
