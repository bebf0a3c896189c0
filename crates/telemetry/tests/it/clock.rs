//! A clock that a test sets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::clock::{Clock, Timestamp};

/// A clock that a test sets.
#[derive(Debug, Default)]
pub(crate) struct ManualClock(AtomicU64);

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_700_000_000_000).after(self.monotonic())
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

impl ManualClock {
    /// Moves the clock forward.
    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_millis()).unwrap(), Ordering::Relaxed);
    }
}
