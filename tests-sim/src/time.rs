//! Time: tokio's paused clock is the true time. The clocks of stores and processes differ from it, each by its own
//! offset and rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::clock::{Clock, Timestamp};
use helix_agents_testkit::trees::ProcessLife;
use tokio::time::Instant;

use crate::trace::Trace;

/// The start time of every story: 2026-01-01.
const EPOCH: i64 = 1_767_225_600_000;

const MILLION: u128 = 1_000_000;

/// One clock of a simulated world.
#[derive(Debug)]
pub(crate) struct SimClock {
    started: Instant,
    /// The offset of its wall clock, in milliseconds.
    offset: AtomicI64,
    /// The number of microseconds that it counts per true second.
    rate: u128,
    /// The process of the clock. `None` for a store's clock.
    life: Option<ProcessLife>,
    trace: Arc<Trace>,
}

impl SimClock {
    /// Creates a clock with an offset in milliseconds and a drift in microseconds per second.
    pub(crate) fn new(
        offset: i64,
        drift: i32,
        life: Option<ProcessLife>,
        trace: Arc<Trace>,
    ) -> Arc<Self> {
        let rate = MILLION.saturating_add_signed(i128::from(drift));
        let offset = AtomicI64::new(offset);
        Arc::new(Self { started: Instant::now(), offset, rate, life, trace })
    }

    /// Moves the wall clock by the given number of milliseconds.
    pub(crate) fn jump(&self, by: i64) {
        self.offset.fetch_add(by, Ordering::Relaxed);
    }

    /// Returns `true` if its wall clock is behind the true time.
    pub(crate) fn went_back(&self) -> bool {
        !self.behind().is_zero()
    }

    /// Returns how far its wall clock is behind the true time.
    pub(crate) fn behind(&self) -> Duration {
        let behind = self.offset.load(Ordering::Relaxed).min(0).unsigned_abs();
        Duration::from_millis(behind)
    }
}

#[async_trait]
impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let since = i64::try_from(self.monotonic().as_millis()).unwrap_or(i64::MAX);
        Timestamp(EPOCH + self.offset.load(Ordering::Relaxed) + since)
    }

    fn monotonic(&self) -> Duration {
        scaled(self.started.elapsed(), self.rate, MILLION)
    }

    /// Sleeps. If the sleep ends while the process is stalled, it ends when the process continues.
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(scaled(duration, MILLION, self.rate)).await;
        if let Some(life) = &self.life {
            life.awake().await;
            self.trace.note("wakes", &life.number());
        }
    }
}

fn scaled(duration: Duration, by: u128, of: u128) -> Duration {
    Duration::from_micros(u64::try_from(duration.as_micros() * by / of).unwrap_or(u64::MAX))
}
