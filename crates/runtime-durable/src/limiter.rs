//! Limits the number of concurrent runs of a process.

use std::pin::pin;

use helix_agents_runtime::{RunRef, Runtime};
use tokio::sync::{Semaphore, SemaphorePermit};

/// A limit on the number of runs of a process that work concurrently.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimiter(Semaphore);

impl ConcurrencyLimiter {
    /// Creates a limiter for this number of concurrent runs.
    pub(crate) fn new(most: usize) -> Self {
        Self(Semaphore::new(most.min(Semaphore::MAX_PERMITS)))
    }

    /// Waits for a permit and keeps the run's lease in the meantime. Returns `None` if the runtime is shutting down;
    /// the next work item then stops the run.
    pub(crate) async fn wait(
        &self,
        runtime: &Runtime,
        run_ref: &RunRef,
    ) -> Option<SemaphorePermit<'_>> {
        let context = runtime.context();
        let mut permit = pin!(self.0.acquire());
        loop {
            tokio::select! {
                biased;
                permit = permit.as_mut() => return permit.ok(),
                () = context.tasks.drain.cancelled() => return None,
                () = context.clock.sleep(context.lease / 3) => {
                    // The next work item checks whether the run still owns its session.
                    let renewed = context.store.renew(&run_ref.session, &run_ref.run, context.lease).await;
                    if let Err(error) = renewed {
                        tracing::warn!(session = %run_ref.session, %error, "the lease was not renewed");
                    }
                }
            }
        }
    }
}
