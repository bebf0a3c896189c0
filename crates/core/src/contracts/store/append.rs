//! Appends and their outcomes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{NewSession, Summary};
use crate::clock::Timestamp;
use crate::error::{Error, ErrorCode, Result};
use crate::id::{AppendId, RunId, SessionId};
use crate::usage::UsageRollup;

/// The maximum size of the events of one append: 64 MiB.
pub const MAX_APPEND_BYTES: usize = 64 * 1024 * 1024;

/// The smallest limit that a store may set on the size of one append: 16 KiB. The record that
/// replaces an oversized value is smaller.
pub const MIN_APPEND_BYTES: usize = 16 * 1024;

/// A position in a log: the number of events, and the append that ends there.
///
/// The append id distinguishes a log that was extended from one that was rolled back and then
/// extended differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The number of events.
    pub version: u64,
    /// The id of the last append.
    pub append: AppendId,
}

impl Position {
    /// Returns the position before the first append.
    #[must_use]
    pub fn start() -> Self {
        Self { version: 0, append: AppendId::none() }
    }
}

/// The effect of an append on the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseChange {
    /// Leaves the lease unchanged.
    Keep,
    /// Sets the lease to expire after this duration, by the store's clock.
    Take(Duration),
    /// Clears the lease.
    Clear,
}

/// A condition that the store checks with the append, in addition to the expected position. Times
/// are compared with the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// No further condition.
    None,
    /// The store's clock must not be later than this time.
    NotAfter(Timestamp),
    /// No lease may be held. Callers that start a run use this guard.
    LeaseFree,
    /// The parent of the new session must exist. Callers that create a child use this guard,
    /// because the parent may be deleted concurrently. Ignored by appends to existing sessions.
    ParentExists,
}

/// An append request.
#[derive(Debug, Clone)]
pub struct Append {
    /// The session id.
    pub session: SessionId,
    /// The expected end of the log.
    pub expected: Position,
    /// The id of this append.
    pub id: AppendId,
    /// The run that writes. `None` for requests from outside a run.
    pub run: Option<RunId>,
    /// The schema number of the events.
    pub schema: u16,
    /// The number of events; at least one.
    pub count: u32,
    /// The encoded events.
    pub body: Bytes,
    /// The summary after the append. `None` leaves the summary unchanged (requests from outside a
    /// run).
    pub summary: Option<Summary>,
    /// The total usage of the session itself after the append. `None` leaves the stored usage
    /// unchanged. A run sets this in the append that ends it. Forks, imports, late results, and
    /// requests that change the usage set it too.
    pub usage: Option<Arc<UsageRollup>>,
    /// The effect on the lease.
    pub lease: LeaseChange,
    /// The condition that must hold.
    pub guard: Guard,
}

impl Append {
    /// Checks the limits that all stores share. Stores call it first.
    ///
    /// # Errors
    /// Returns [`ErrorCode::IdInvalid`] if the id of the session, of the append, of its run or of
    /// the summary's run is empty, too long or contains a control character;
    /// [`ErrorCode::InputInvalid`] without events; [`ErrorCode::TooLarge`] above
    /// [`MAX_APPEND_BYTES`].
    pub fn check(&self) -> Result<()> {
        self.session.check()?;
        self.id.check()?;
        let current = self.summary.as_ref().and_then(|summary| summary.run.as_ref());
        [self.run.as_ref(), current].into_iter().flatten().try_for_each(RunId::check)?;
        if self.count == 0 {
            return Err(self.invalid("an append must have at least one event"));
        }
        if self.body.len() > MAX_APPEND_BYTES {
            let message = "the events of one append are larger than 64 MiB together";
            return Err(Error::new(ErrorCode::TooLarge, message)
                .with_context("session", &self.session)
                .with_context("bytes", self.body.len()));
        }
        Ok(())
    }

    /// Checks the first append of a new session and returns its summary.
    ///
    /// # Errors
    /// Returns the errors of [`check`](Self::check) and [`NewSession::check`], and
    /// [`ErrorCode::InputInvalid`] if the append does not expect an empty log or has no summary.
    pub fn check_first(&self, new: &NewSession) -> Result<&Summary> {
        self.check()?;
        new.check()?;
        if self.expected != Position::start() {
            return Err(self.invalid("a session's first append must be at the start of its log"));
        }
        let summary = self.summary.as_ref();
        summary.ok_or_else(|| self.invalid("a session's first append needs a summary"))
    }

    /// Returns the parent that must exist for this first append of a new session, if the
    /// [guard](Guard::ParentExists) requires one.
    #[must_use]
    pub fn required_parent<'a>(&self, new: &'a NewSession) -> Option<&'a SessionId> {
        new.parent.as_ref().filter(|_| self.guard == Guard::ParentExists)
    }

    /// Checks the first append of a fork and returns its summary.
    ///
    /// # Errors
    /// Returns the errors of [`check`](Self::check) and [`NewSession::check`], and
    /// [`ErrorCode::InputInvalid`] if the append expects an empty log, belongs to the original
    /// session, or has no summary.
    pub fn check_fork(&self, from: &SessionId, new: &NewSession) -> Result<&Summary> {
        self.check()?;
        new.check()?;
        if self.expected.version == 0 {
            return Err(self.invalid("a fork must continue after an append of the original"));
        }
        if self.session == *from {
            return Err(self.invalid("a fork must not have the id of the original"));
        }
        let summary = self.summary.as_ref();
        summary.ok_or_else(|| self.invalid("a session's first append needs a summary"))
    }

    fn invalid(&self, message: &'static str) -> Error {
        Error::new(ErrorCode::InputInvalid, message).with_context("session", &self.session)
    }
}

/// An append as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAppend {
    /// The sequence number of the first event, from 1.
    pub first: u64,
    /// The number of events.
    pub count: u32,
    /// The id of the append.
    pub id: AppendId,
    /// The run that wrote the append, if any.
    pub run: Option<RunId>,
    /// The schema number of the events.
    pub schema: u16,
    /// The time of the append, by the store's clock. It never decreases within a session.
    pub at: Timestamp,
    /// The encoded events.
    pub body: Bytes,
}

impl StoredAppend {
    /// Returns the version after the append.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.first + u64::from(self.count) - 1
    }

    /// Returns the position after the append.
    #[must_use]
    pub fn position(&self) -> Position {
        Position { version: self.version(), append: self.id.clone() }
    }
}

/// The outcome of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendOutcome {
    /// The append is stored, by this call or by an earlier one that it repeats.
    Appended {
        /// The time of the append, by the store's clock.
        at: Timestamp,
    },
    /// The log continues after the expected position; nothing was written.
    Conflict {
        /// The appends after the expected position, in order.
        missed: Vec<StoredAppend>,
    },
    /// The guard does not hold; nothing was written.
    GuardFailed {
        /// The expiry of the lease that prevents the append, if that is the reason.
        lease_until: Option<Timestamp>,
        /// The current time, by the store's clock.
        now: Timestamp,
    },
    /// The log does not contain the expected position; nothing was written.
    HistoryLost,
}

/// The outcome of creating a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreateOutcome {
    /// The session was created, by this call or by an earlier one that it repeats.
    Created {
        /// The time of the creation, by the store's clock.
        at: Timestamp,
    },
    /// Another caller created the session.
    Exists,
    /// The guard requires the parent, and it does not exist. No session was created.
    ParentMissing,
}

/// The outcome of forking a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForkOutcome {
    /// The new session was created, by this call or by an earlier one that it repeats.
    Created {
        /// The time of the creation, by the store's clock.
        at: Timestamp,
    },
    /// Another caller created a session with this id.
    Exists,
    /// The original's log has no append that ends at the expected position; nothing was written.
    HistoryLost,
}
