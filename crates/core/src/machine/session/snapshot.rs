//! Snapshots: stored overviews of sessions. A process that reads a session for the first time then
//! reads only the end of its log.

use super::{Session, SessionOverview};
use crate::error::{Error, ErrorCode, Result};
use crate::id::SessionId;
use crate::store::Snapshot;

/// The version of the fold, which snapshots carry. It must be raised whenever a log results in a
/// different overview than before, or an overview in different JSON. Snapshots of other fold
/// versions are ignored.
pub const FOLD_VERSION: u32 = 6;

/// The number of events after which the run that writes a log saves another snapshot. It bounds the
/// number of events that a first read covers, unless saving a snapshot failed.
pub const SNAPSHOT_EVENTS: u64 = 1_000;

impl SessionOverview {
    /// Returns a snapshot of this overview, for
    /// [`save_snapshot`](crate::store::StateStore::save_snapshot). The events applied to the
    /// overview must have been [acknowledged](Session::acknowledge).
    ///
    /// # Errors
    /// Returns [`ErrorCode::Internal`] if the overview cannot be written as JSON.
    pub fn to_snapshot(&self) -> Result<Snapshot> {
        let body = serde_json::to_vec(self).map_err(|error| {
            let message = "a session's overview cannot be written as JSON";
            Error::new(ErrorCode::Internal, message).with_source(error)
        })?;
        Ok(Snapshot { position: self.position().clone(), fold: FOLD_VERSION, body: body.into() })
    }

    /// Returns the overview in a snapshot of a session, or `None` if another fold version made it,
    /// it cannot be read, or it belongs to another session or position than it states. This does
    /// not check whether the log has that position.
    #[must_use]
    pub fn from_snapshot(session: &SessionId, snapshot: &Snapshot) -> Option<Self> {
        if snapshot.fold != FOLD_VERSION {
            return None;
        }
        let overview: Self = serde_json::from_slice(&snapshot.body).ok()?;
        let matches = overview.id == *session && *overview.position() == snapshot.position;
        matches.then_some(overview)
    }
}

impl Session {
    /// Returns `true` if a snapshot of the session should be saved: its log has grown by
    /// [`SNAPSHOT_EVENTS`] since the last snapshot that this process knows, or the session was
    /// rewound. An overview from a snapshot before a rewind cannot be brought past the rewind, so a
    /// new snapshot is needed.
    #[must_use]
    pub fn is_snapshot_due(&self) -> bool {
        let version = self.position().version;
        let has_grown = version.saturating_sub(self.snapshot) >= SNAPSHOT_EVENTS;
        has_grown
            || version >= SNAPSHOT_EVENTS && self.overview.fold_state.rewound_at > self.snapshot
    }

    /// Records that a snapshot of that version was saved, or could not be saved. In both cases, the
    /// next one is due later.
    pub fn snapshot_saved(&mut self, version: u64) {
        self.snapshot = self.snapshot.max(version);
    }
}
