//! How long runs wait for streams: a moment, and not at all while these are away.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use helix_agents_core::clock::Clock;
use helix_agents_core::mutant;

#[cfg(test)]
mod tests;

/// The longest time that an append waits for the chunks before it, and a start for the end of the stream.
const LIMIT: Duration = Duration::from_secs(1);

/// The part of a lease that such a wait may take: nothing renews the lease meanwhile, and two thirds of it
/// may have passed when it is due to be renewed late.
const OF_LEASE: u32 = 8;

/// How often a wait looks whether its process stood still.
const NAPS: u32 = 4;

/// How long nothing waits for streams that did not answer in time.
const PAUSE: Duration = Duration::from_secs(10);

/// Bounds the waits for the streams of a process. Cheap to clone.
///
/// Streams show what happens; what happens does not depend on them.
#[derive(Clone)]
pub(crate) struct StreamWait(Arc<Inner>);

struct Inner {
    clock: Arc<dyn Clock>,
    limit: Duration,
    /// Until when streams count as away, by the process's monotonic clock.
    away_until: Mutex<Duration>,
}

impl StreamWait {
    /// Waits beside leases that last so long.
    pub(crate) fn new(clock: Arc<dyn Clock>, lease: Duration) -> Self {
        let limit = LIMIT.min(lease / OF_LEASE);
        Self(Arc::new(Inner { clock, limit, away_until: Mutex::default() }))
    }

    /// Waits for work on streams, unless they are away. `None` if it was not done in time.
    pub(crate) async fn briefly<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        if mutant!("stream-waited-for") {
            return Some(work.await);
        }
        if self.are_away() { None } else { self.last_chance(work).await }
    }

    /// The same where nothing comes after, so that streams are asked once more even if they are away.
    pub(crate) async fn last_chance<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.out_of_time() => None,
        }
    }

    /// Waits for as long as work on streams may take that is under way; not at all if they are away.
    pub(crate) async fn enough(&self) {
        if !self.are_away() {
            self.out_of_time().await;
        }
    }

    /// Waits for as long as streams may take. They count as away after that. A process that stood still meanwhile waits
    /// anew: the answer may have come while it could not take it.
    async fn out_of_time(&self) {
        let Inner { clock, limit, .. } = &*self.0;
        let (nap, mut left) = (*limit / NAPS, NAPS);
        while left > 0 {
            let before = clock.monotonic();
            clock.sleep(nap).await;
            let stood_still = clock.monotonic().saturating_sub(before) > nap + *limit;
            left = if stood_still { NAPS } else { left - 1 };
        }
        tracing::warn!("streams do not answer in time; nothing waits for them for a while");
        *self.away_until() = self.0.clock.monotonic() + PAUSE;
    }

    /// Notes that streams answered.
    pub(crate) fn answered(&self) {
        *self.away_until() = Duration::ZERO;
    }

    fn are_away(&self) -> bool {
        self.0.clock.monotonic() < *self.away_until()
    }

    fn away_until(&self) -> MutexGuard<'_, Duration> {
        self.0.away_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for StreamWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamWait").field("are_away", &self.are_away()).finish_non_exhaustive()
    }
}
