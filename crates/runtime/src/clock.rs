//! Time and ids of a process: tokio's clock, which tests can pause, and UUIDs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use helix_agents_core::clock::{Clock, IdSource, Timestamp};
use tokio::time::Instant;

/// The clock of a tokio program.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    started: Instant,
}

impl TokioClock {
    /// A clock that counts from now.
    #[must_use]
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "this is where a process's time comes in")]
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// Time-ordered random ids (UUID version 7).
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl IdSource for SystemIds {
    fn next(&self) -> u128 {
        uuid::Uuid::now_v7().as_u128()
    }
}
