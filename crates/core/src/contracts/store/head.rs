//! Session heads: the data that a store has about a session without reading its log.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Position, tags};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::{RunId, SessionId};

/// The status of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// A turn is in progress: it is running, stopped without ending, or suspended.
    Active,
    /// The last turn completed.
    Completed,
    /// The last run failed.
    Failed,
    /// The last run was interrupted.
    Interrupted,
    /// The last run was aborted.
    Aborted,
}

impl SessionStatus {
    /// All statuses.
    pub const ALL: [Self; 5] =
        [Self::Active, Self::Completed, Self::Failed, Self::Interrupted, Self::Aborted];

    /// Returns the name that is used in logs and on the command line.
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

    /// Returns the status with this name.
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

/// The data about a session that listings and sweepers need, without reading its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Head {
    /// The session id.
    pub session: SessionId,
    /// The data with which the session was created. It never changes.
    pub created: NewSession,
    /// The end of the log.
    pub position: Position,
    /// The summary of the last append that had one.
    pub summary: Summary,
    /// The lease expiry: the lease is held while the clock is before this time. `None` if the last
    /// change cleared the lease, or if there was none. The store keeps it independently of the
    /// summary; a writer that ends a run clears it.
    pub lease_until: Option<Timestamp>,
    /// The time of the creation, by the store's clock.
    pub created_at: Timestamp,
    /// The time of the last append, by the store's clock.
    pub updated_at: Timestamp,
    /// The store's clock when this head was read, for comparison with `lease_until`.
    pub read_at: Timestamp,
}

impl Head {
    /// Returns `true` if the session had an unexpired lease when this head was read.
    #[must_use]
    pub fn is_leased(&self) -> bool {
        self.lease_until.is_some_and(|until| until > self.read_at)
    }

    /// Returns the state of the session as one word: `running` or `stopped` if it has an unfinished
    /// run, `waiting` or `answered` if it is suspended, otherwise the name of its status.
    #[must_use]
    pub fn state_name(&self) -> &'static str {
        match (&self.summary.run, self.summary.status) {
            (Some(_), _) if self.is_leased() => "running",
            (Some(_), _) => "stopped",
            // An active session without a run is suspended.
            (None, SessionStatus::Active) if self.summary.pending > 0 => "waiting",
            (None, SessionStatus::Active) => "answered",
            (None, status) => status.as_str(),
        }
    }
}

/// The immutable part of a head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSession {
    /// The agent's name.
    pub agent: Arc<str>,
    /// The root session of the tree: the session itself, unless it is a child.
    pub root: SessionId,
    /// The parent session, if the session is a child.
    pub parent: Option<SessionId>,
    /// Labels for listing, within the limits [`MAX_TAGS`](super::MAX_TAGS),
    /// [`MAX_TAG_KEY_BYTES`](super::MAX_TAG_KEY_BYTES) and
    /// [`MAX_TAG_VALUE_BYTES`](super::MAX_TAG_VALUE_BYTES).
    pub tags: BTreeMap<String, String>,
}

impl NewSession {
    /// Returns `true` if the session has all of these tags.
    #[must_use]
    pub fn has_tags(&self, tags: &BTreeMap<String, String>) -> bool {
        tags.iter().all(|(key, value)| self.tags.get(key) == Some(value))
    }

    /// Checks the ids of the root and of the parent, and the tags.
    /// [`Append::check_first`](super::Append::check_first) and
    /// [`Append::check_fork`](super::Append::check_fork) call this method.
    ///
    /// # Errors
    /// Returns [`ErrorCode::IdInvalid`](crate::error::ErrorCode::IdInvalid) if the id of the root
    /// or of the parent is empty, too long or contains a control character, and
    /// [`ErrorCode::TagInvalid`](crate::error::ErrorCode::TagInvalid) if there are too many tags, if
    /// a key or a value is too long, if a key is empty or contains a control character, or if a
    /// value contains a NUL character.
    pub fn check(&self) -> Result<()> {
        self.root.check()?;
        self.parent.as_ref().map_or(Ok(()), SessionId::check)?;
        tags::check(&self.tags)
    }
}

/// The part of a head that the writer of an append computes from the state of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The status after the append.
    pub status: SessionStatus,
    /// The run that has not ended, if any.
    pub run: Option<RunId>,
    /// The kind of runtime of the last run.
    pub runtime: Arc<str>,
    /// The number of pending calls, plus one for each call whose child session is suspended or
    /// interrupted.
    pub pending: u32,
    /// The earliest time, by the store's clock, at which a sweep should check the session. `None`
    /// if there is no such time.
    pub wake_at: Option<Timestamp>,
}

/// The result of renewing a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewal {
    /// Whether the lease was renewed: the run is still the session's current one.
    pub renewed: bool,
    /// The head after the renewal, through which an owner notices requests from outside. Its
    /// `read_at` is the time of the renewal, so the lease expires `ttl` after it.
    pub head: Head,
}

#[cfg(test)]
mod tests;
