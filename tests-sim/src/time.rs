//! Time: one true time, which is tokio's paused clock, and the clocks of stores and processes, each
//! of which runs beside it in its own way.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::clock::{Clock, Timestamp};
use helix_agents_testkit::trees::ProcessLife;
use tokio::time::Instant;

use crate::trace::Trace;

/// When every story begins: 2026-01-01.
const EPOCH: i64 = 1_767_225_600_000;

const MILLION: u128 = 1_000_000;

/// One clock of a simulated world.
#[derive(Debug)]
pub(crate) struct SimClock {
    began: Instant,
    /// How far its wall clock is ahead, in milliseconds.
    ahead: AtomicI64,
    /// How many microseconds it counts for each true second.
    rate: u128,
    /// The process that it is of; none for a store's.
    life: Option<ProcessLife>,
    trace: Arc<Trace>,
}

impl SimClock {
    /// A clock that is so many milliseconds ahead, and gains so many microseconds in each second.
    pub(crate) fn new(
        ahead: i64,
        drift: i32,
        life: Option<ProcessLife>,
        trace: Arc<Trace>,
    ) -> Arc<Self> {
        let rate = MILLION.saturating_add_signed(i128::from(drift));
        let ahead = AtomicI64::new(ahead);
        Arc::new(Self { began: Instant::now(), ahead, rate, life, trace })
    }

    /// Moves the wall clock by so many milliseconds.
    pub(crate) fn jump(&self, by: i64) {
        self.ahead.fetch_add(by, Ordering::Relaxed);
    }

    /// Whether it shows less than the true time.
    pub(crate) fn went_back(&self) -> bool {
        self.ahead.load(Ordering::Relaxed) < 0
    }
}

#[async_trait]
impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let since = i64::try_from(self.monotonic().as_millis()).unwrap_or(i64::MAX);
        Timestamp(EPOCH + self.ahead.load(Ordering::Relaxed) + since)
    }

    fn monotonic(&self) -> Duration {
        scaled(self.began.elapsed(), self.rate, MILLION)
    }

    /// A wait that ends while the process stands still ends when it wakes.
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(scaled(duration, MILLION, self.rate)).await;
        if let Some(life) = &self.life {
            life.awake().await;
            let at = self.began.elapsed().as_millis();
            self.trace.note("wakes", &(life.number(), at));
        }
    }
}

fn scaled(duration: Duration, by: u128, of: u128) -> Duration {
    Duration::from_micros(u64::try_from(duration.as_micros() * by / of).unwrap_or(u64::MAX))
}
