//! The store's clock between two readings.

use std::time::Duration;

use helix_agents_core::clock::Timestamp;

/// An estimate of the store's clock, from its last reading and the process's monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreClock {
    time: Timestamp,
    read_at: Duration,
}

impl StoreClock {
    /// Creates the estimate from a reading and the time of the monotonic clock when it was made.
    pub(crate) const fn read(time: Timestamp, read_at: Duration) -> Self {
        Self { time, read_at }
    }

    /// Returns the store's time at this time of the monotonic clock.
    pub(crate) fn at(self, monotonic: Duration) -> Timestamp {
        self.time.after(monotonic.saturating_sub(self.read_at))
    }
}
