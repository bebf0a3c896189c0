//! Wraps stores and streams so that operations on an unavailable back end are retried, as in a runtime, for
//! up to 30 seconds of tokio's clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::clock::{Clock, IdSource, Timestamp};
use helix_agents_core::store::{RetryingStore, StateStore};
use helix_agents_core::stream::{RetryingStreams, StreamManager};
use tokio::time::Instant;

const RETRY_TIMEOUT: Duration = Duration::from_secs(30);

/// Wraps a store with retries.
pub fn store(inner: Arc<dyn StateStore>) -> RetryingStore {
    RetryingStore::new(
        inner,
        Arc::new(Ticking(Instant::now())),
        Arc::<Jitter>::default(),
        RETRY_TIMEOUT,
    )
}

/// Wraps streams with retries.
pub fn streams(inner: Arc<dyn StreamManager>) -> RetryingStreams {
    RetryingStreams::new(
        inner,
        Arc::new(Ticking(Instant::now())),
        Arc::<Jitter>::default(),
        RETRY_TIMEOUT,
    )
}

/// A clock for the waits between retries.
#[derive(Debug)]
struct Ticking(Instant);

#[async_trait]
impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp(0).after(self.monotonic())
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// A source of numbers that shorten the waits by different amounts.
#[derive(Debug, Default)]
struct Jitter(AtomicU64);

impl IdSource for Jitter {
    fn next(&self) -> u128 {
        u128::from(self.0.fetch_add(7, Ordering::Relaxed))
    }
}
