//! The records of the file: one per change.

use std::sync::Arc;

use bytes::Bytes;
use helix_agents::clock::Timestamp;
use helix_agents::id::{AppendId, RunId, SessionId};
use helix_agents::store::{NewSession, StoredAppend, Summary};
use helix_agents::usage::UsageRollup;
use serde::{Deserialize, Serialize};

/// A change. In the file, it consists of its lengths, its JSON, and the bytes of its events.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    /// A new session and its first append.
    Created { new: NewSession, append: Appended },
    /// A forked session and its first own append.
    Forked { from: SessionId, new: NewSession, append: Appended },
    /// An append to an existing session.
    Appended(Appended),
    /// A lease renewal.
    Renewed { session: SessionId, until: Timestamp },
    /// A deletion of sessions.
    Deleted { sessions: Vec<SessionId> },
}

/// An accepted append and its effect on the head.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Appended {
    pub(crate) session: SessionId,
    pub(crate) first: u64,
    pub(crate) count: u32,
    pub(crate) id: AppendId,
    pub(crate) run: Option<RunId>,
    pub(crate) schema: u16,
    pub(crate) at: Timestamp,
    /// The summary of the session after the append.
    pub(crate) summary: Summary,
    /// The lease expiry after the append.
    pub(crate) lease_until: Option<Timestamp>,
    /// The usage of the session after the append, if any append had usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Arc<UsageRollup>>,
    /// The events. They follow the JSON as raw bytes.
    #[serde(skip)]
    pub(crate) body: Bytes,
}

impl Record {
    /// Returns the bytes of the record's events, if it has any.
    pub(crate) fn body(&self) -> &[u8] {
        match self {
            Self::Created { append, .. } | Self::Forked { append, .. } | Self::Appended(append) => {
                &append.body
            }
            Self::Renewed { .. } | Self::Deleted { .. } => &[],
        }
    }

    pub(crate) fn with_body(mut self, bytes: Bytes) -> Self {
        if let Self::Created { append, .. } | Self::Forked { append, .. } | Self::Appended(append) =
            &mut self
        {
            append.body = bytes;
        }
        self
    }

    /// Returns `true` if the change is acknowledged, so that it has to be on the disk first. A
    /// renewal may be lost, because its owner is lost with it.
    pub(crate) fn is_durable(&self) -> bool {
        !matches!(self, Self::Renewed { .. })
    }
}

impl Appended {
    /// Returns the append as readers get it.
    pub(crate) fn stored(&self) -> StoredAppend {
        StoredAppend {
            first: self.first,
            count: self.count,
            id: self.id.clone(),
            run: self.run.clone(),
            schema: self.schema,
            at: self.at,
            body: self.body.clone(),
        }
    }
}
