//! A clock that several owners share.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::clock::{Clock, Timestamp};

/// A shared clock, for code that needs a clock of its own.
#[derive(Debug, Clone)]
pub(crate) struct SharedClock(pub(crate) Arc<dyn Clock>);

#[async_trait]
impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    async fn sleep(&self, duration: Duration) {
        self.0.sleep(duration).await;
    }
}
