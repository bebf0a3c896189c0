//! Releases the readers of clients that stall.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::Slot;

/// Starts a task that releases the reader if its client takes nothing for the time.
///
/// A body is not polled while its socket is full, so it cannot notice this itself. The connection is closed by the next
/// poll, or by [`serve`](crate::AgentServer::serve), which watches the sockets of its connections.
pub(super) fn start(slot: Arc<Slot>, timeout: Duration) -> AbortHandle {
    let watch = async move {
        loop {
            let unread_since = slot.lock().unread_since;
            let deadline = unread_since.unwrap_or_else(Instant::now) + timeout;
            if deadline <= Instant::now() {
                let mut state = slot.lock();
                // The client may have read something since.
                if state.unread_since == unread_since && state.reader.take().is_some() {
                    state.was_released = true;
                    tracing::info!("released the event stream of a client that does not read it");
                }
                if state.reader.is_none() {
                    return;
                }
                continue;
            }
            tokio::time::sleep_until(deadline).await;
        }
    };
    tokio::spawn(watch).abort_handle()
}
