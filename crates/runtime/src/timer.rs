//! A timer that is kept after its wait has ended early.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use helix_agents_core::clock::Clock;

/// A timer that keeps running if a wait for it ends early, for example because an effect has ended. The next wait uses
/// the running timer, so a series of short waits starts only one. A wait that finds the timer running ends with it, so
/// it can be shorter than its duration. Do not share a timer between waits if a later wait may have an earlier
/// deadline.
#[derive(Default)]
pub(crate) struct Timer(Option<BoxFuture<'static, ()>>);

impl Timer {
    /// Waits until the timer ends. Starts it with this duration if it is not running.
    ///
    /// # Cancel safety
    /// If the future is dropped, the timer keeps running.
    pub(crate) async fn wait(&mut self, clock: &Arc<dyn Clock>, duration: Duration) {
        let timer = self.0.get_or_insert_with(|| {
            let clock = Arc::clone(clock);
            Box::pin(async move { clock.sleep(duration).await })
        });
        timer.as_mut().await;
        self.0 = None;
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("is_running", &self.0.is_some()).finish()
    }
}
