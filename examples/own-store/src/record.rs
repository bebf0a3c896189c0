//! What stands in the file: one record for each change.

use std::sync::Arc;

use bytes::Bytes;
use helix_agents::clock::Timestamp;
use helix_agents::id::{AppendId, RunId, SessionId};
use helix_agents::store::{NewSession, StoredAppend, Summary};
use helix_agents::usage::UsageRollup;
use serde::{Deserialize, Serialize};

/// A change. In the file: its length, one line of JSON, and the bytes of its events.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    /// A session and its first append.
    Created { new: NewSession, append: Appended },
    /// A session that begins with what another one had, and its first own append.
    Forked { from: SessionId, new: NewSession, append: Appended },
    /// A further append.
    Appended(Appended),
    /// A longer lease.
    Renewed { session: SessionId, until: Timestamp },
    /// Sessions that are gone.
    Deleted { sessions: Vec<SessionId> },
}

/// An append as it was taken, with what it made of the head.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Appended {
    pub(crate) session: SessionId,
    pub(crate) first: u64,
    pub(crate) count: u32,
    pub(crate) id: AppendId,
    pub(crate) run: Option<RunId>,
    pub(crate) schema: u16,
    pub(crate) at: Timestamp,
    /// The head's summary from here on.
    pub(crate) summary: Summary,
    /// The head's lease from here on.
    pub(crate) lease_until: Option<Timestamp>,
    /// The session's usage from here on, if an append has said any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Arc<UsageRollup>>,
    /// The events. They follow the line of JSON as they are.
    #[serde(skip)]
    pub(crate) body: Bytes,
}

impl Record {
    /// The bytes of its events, if it has any.
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

    /// Whether somebody is told that it took place, so that it has to be on the disk first. A
    /// renewal that is lost with the process does no harm: its owner is lost with it.
    pub(crate) fn is_promised(&self) -> bool {
        !matches!(self, Self::Renewed { .. })
    }
}

impl Appended {
    /// As readers get it.
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
