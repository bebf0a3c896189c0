//! How many runs of a process do something at the same time.

use std::pin::pin;

use helix_agents_runtime::{RunRef, Runtime};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Limits how many runs of a process do something at the same time.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimiter(Semaphore);

impl ConcurrencyLimiter {
    /// So many at once.
    pub(crate) fn new(most: usize) -> Self {
        Self(Semaphore::new(most.min(Semaphore::MAX_PERMITS)))
    }

    /// Waits for a turn, and keeps the run's lease meanwhile: the run is alive. There is none when the
    /// runtime shuts down: the next part then finds that out.
    pub(crate) async fn wait(&self, runtime: &Runtime, of: &RunRef) -> Option<SemaphorePermit<'_>> {
        let context = runtime.context();
        let mut turn = pin!(self.0.acquire());
        loop {
            tokio::select! {
                biased;
                turn = turn.as_mut() => return turn.ok(),
                () = context.tasks.drain.cancelled() => return None,
                () = context.clock.sleep(context.lease / 3) => {
                    // Whether the run is still its session's is the next part's to find out.
                    let renewed = context.store.renew(&of.session, &of.run, context.lease).await;
                    if let Err(error) = renewed {
                        tracing::warn!(session = %of.session, %error, "the lease was not renewed");
                    }
                }
            }
        }
    }
}
