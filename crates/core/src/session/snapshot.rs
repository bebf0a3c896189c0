//! Snapshots: the overview of a session as a store keeps it, so that a process that looks at the session
//! for the first time reads the end of its log only.

use super::{Session, SessionOverview};
use crate::error::{Error, ErrorCode, Result};
use crate::id::SessionId;
use crate::store::Snapshot;

/// Which fold makes the snapshots of this version, and which it reads. It is raised whenever a log gives
/// another overview than before, or an overview another JSON.
pub const FOLD: u32 = 2;

/// The number of events after which the run that writes a log saves another snapshot. It bounds what the
/// first look of a process reads, unless a snapshot could not be saved.
pub const SNAPSHOT_EVENTS: u64 = 1_000;

impl SessionOverview {
    /// The snapshot of this overview, for [`save_snapshot`](crate::store::StateStore::save_snapshot).
    /// The overview is one of a log: the events applied to it were [settled](Session::settle).
    ///
    /// # Errors
    /// [`ErrorCode::Internal`] if it cannot be written as JSON.
    pub fn to_snapshot(&self) -> Result<Snapshot> {
        let body = serde_json::to_vec(self).map_err(|error| {
            let message = "a session's overview cannot be written as JSON";
            Error::new(ErrorCode::Internal, message).with_source(error)
        })?;
        Ok(Snapshot { position: self.position().clone(), fold: FOLD, body: body.into() })
    }

    /// The overview in a snapshot of a session, unless another fold made it, it cannot be read, or it is
    /// of another session or position than it says. Whether the log has that position is not looked at.
    #[must_use]
    pub fn from_snapshot(session: &SessionId, snapshot: &Snapshot) -> Option<Self> {
        if snapshot.fold != FOLD {
            return None;
        }
        let overview: Self = serde_json::from_slice(&snapshot.body).ok()?;
        let is_it = overview.id == *session && *overview.position() == snapshot.position;
        is_it.then_some(overview)
    }
}

impl Session {
    /// Returns `true` if a snapshot of the session is worth saving: its log has grown by
    /// [`SNAPSHOT_EVENTS`] since the last one that this process knows of, or has gone back to a
    /// checkpoint, which no overview can follow from an earlier snapshot.
    #[must_use]
    pub fn is_snapshot_due(&self) -> bool {
        let version = self.position().version;
        let has_grown = version.saturating_sub(self.snapshot) >= SNAPSHOT_EVENTS;
        has_grown
            || version >= SNAPSHOT_EVENTS && self.overview.fold_state.rewound_at > self.snapshot
    }

    /// Notes that a snapshot of that version was saved, or could not be: the next one is due later.
    pub fn snapshot_saved(&mut self, version: u64) {
        self.snapshot = self.snapshot.max(version);
    }
}
