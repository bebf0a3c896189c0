//! Snapshots, which have a key next to the log.

use helix_agents_core::error::Result;
use helix_agents_core::id::{AppendId, SessionId};
use helix_agents_core::store::{Position, Snapshot};

use crate::{Inner, script};

impl Inner {
    /// Saves a snapshot, unless a newer one is saved or the log does not reach its version.
    pub(super) async fn save_snapshot(
        &self,
        session: &SessionId,
        snapshot: &Snapshot,
    ) -> Result<()> {
        if session.check().is_err() {
            return Ok(());
        }
        let keys = self.keys.of(session);
        let Snapshot { position, fold, body } = snapshot;
        let (version, fold) = (position.version.to_string(), fold.to_string());
        let args = [version.as_bytes(), position.append.as_str().as_bytes(), fold.as_bytes(), body];
        let keys = [keys.head(), keys.snapshot()];
        self.server.eval(&script::SNAPSHOT_SAVE, &keys, &args).await.map(drop)
    }

    /// Returns the saved snapshot of a session, if there is one.
    pub(super) async fn find_snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        if session.check().is_err() {
            return Ok(None);
        }
        let keys = self.keys.of(session);
        let keys = [keys.head(), keys.snapshot()];
        let mut reply = self.server.eval(&script::SNAPSHOT_FIND, &keys, &[]).await?;
        if reply.is_empty() {
            return Ok(None);
        }
        let (version, append) = (reply.number()?, AppendId::from(reply.text()?));
        let (fold, body) = (reply.number()?, reply.bytes()?);
        Ok(Some(Snapshot { position: Position { version, append }, fold, body }))
    }
}
