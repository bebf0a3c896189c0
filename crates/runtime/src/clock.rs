//! The default clock and id source: tokio's clock, which tests can pause, and UUIDs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use helix_agents_core::clock::{Clock, IdSource, Timestamp};
use tokio::time::Instant;

/// The default clock. [`monotonic`](Clock::monotonic) and [`sleep`](Clock::sleep) use tokio's time, which tests can
/// pause; [`now`](Clock::now) is the system's time, which they cannot.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    started: Instant,
}

impl TokioClock {
    /// Creates a clock whose monotonic time starts at zero now.
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
        Timestamp(i64::try_from(epoch_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// An id source of random ids that are ordered by time, to the millisecond (UUID version 7).
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl IdSource for SystemIds {
    fn next(&self) -> u128 {
        // `Uuid::now_v7` also orders the ids of one millisecond, for which it reads the clock twice and keeps a counter
        // under a lock. No caller needs that order, and a step would pay for it four times. Bytes 6 and 8 of a version 4
        // UUID contain its version and variant, so they are not random.
        let [a, b, c, d, e, f, _, _, _, g, h, i, j, ..] = uuid::Uuid::new_v4().into_bytes();
        let random = [a, b, c, d, e, f, g, h, i, j];
        uuid::Builder::from_unix_timestamp_millis(epoch_millis(), &random).into_uuid().as_u128()
    }
}

/// Returns the time since 1970 in milliseconds.
fn epoch_millis() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the single place that reads the system time"
    )]
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs().saturating_mul(1000).saturating_add(since.subsec_millis().into())
}
