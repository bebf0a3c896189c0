//! What is known of a session without its log.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Position;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::{RunId, SessionId};

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
    /// The end of the lease: until then, and not at that moment any more, the owner counts as alive.
    /// None if the last append that changed it cleared it, or none has taken one. The store keeps it
    /// whatever the summary says of a run; a writer that ends a run clears it.
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

impl NewSession {
    /// Refuses a session whose place in the tree cannot be; for stores to call first, as the checks
    /// of a first append do.
    ///
    /// # Errors
    /// [`ErrorCode::IdInvalid`](crate::error::ErrorCode::IdInvalid) if the id of the root or of the
    /// parent is empty, too long or holds a control character.
    pub fn check(&self) -> Result<()> {
        self.root.check()?;
        self.parent.as_ref().map_or(Ok(()), SessionId::check)
    }
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

/// What came of renewing a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewal {
    /// Whether the run still is the session's current one; if not, nothing was renewed.
    pub renewed: bool,
    /// The head afterwards: how an owner hears of requests from outside. Its `read_at` is the moment
    /// of the renewal, so that the lease ends `ttl` after it.
    pub head: Head,
}
