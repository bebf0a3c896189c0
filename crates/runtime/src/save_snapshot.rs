//! Saves session snapshots concurrently with runs.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::error::Result;
use helix_agents_core::session::SessionOverview;
use helix_agents_core::store::StateStore;
use tracing::Instrument as _;

use crate::driver::Driver;

/// The timeout for saving a snapshot. After a timeout the snapshot is dropped; the next one is due
/// [`SNAPSHOT_EVENTS`](helix_agents_core::session::SNAPSHOT_EVENTS) events later.
const SAVE_TIME: Duration = Duration::from_secs(10);

impl Driver {
    /// Saves a snapshot of the session, if one is due, in a separate task that does not delay any effect. The
    /// task needs no lease, because a snapshot of a log position never becomes invalid. A shutdown waits for the
    /// task as it waits for runs.
    pub(crate) fn save_snapshot(&mut self) {
        let Some(overview) = self.journal.take_due_snapshot() else { return };
        let (store, tasks) = (Arc::clone(&self.context.store), &self.context.tasks);
        let shutdown = tasks.shutdown.clone();
        let saving = async move {
            let saved = tokio::select! {
                biased;
                saved = tokio::time::timeout(SAVE_TIME, save(&*store, &overview)) => saved,
                () = shutdown.cancelled() => return,
            };
            let (session, version) = (overview.id(), overview.position().version);
            match saved {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%session, version, %error, "a snapshot was not saved");
                }
                Err(_) => tracing::warn!(%session, version, "saving a snapshot took too long"),
            }
        };
        drop(tasks.spawn(saving.in_current_span()));
    }
}

async fn save(store: &dyn StateStore, overview: &SessionOverview) -> Result<()> {
    let snapshot = overview.to_snapshot()?;
    let (bytes, limit) = (snapshot.body.len(), store.max_append_bytes());
    if bytes > limit {
        // The custom state or the current step is too large.
        let session = overview.id();
        tracing::debug!(%session, bytes, limit, "a snapshot is too large for the store");
        return Ok(());
    }
    store.save_snapshot(overview.id(), snapshot).await
}
