//! A controllable clock for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::clock::{Clock, Timestamp};
use helix_agents_test::Gate;

/// A wall clock that only moves when told to. Its waits end immediately when told to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wall {
    pub(crate) now: Arc<AtomicI64>,
    pub(crate) rings: Gate,
}

#[async_trait]
impl Clock for Wall {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    async fn sleep(&self, _: Duration) {
        self.rings.pass().await;
    }
}
