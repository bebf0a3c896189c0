//! Limits how long runs wait for streams: briefly, and not at all while streams are unavailable.

use std::fmt;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use helix_agents_core::clock::Clock;
use helix_agents_core::mutant;
use tokio::sync::Mutex;

use crate::timer::Timer;

#[cfg(test)]
mod tests;

/// The longest time that an append waits for the preceding chunks to be written, or that the start of a run waits for
/// the stream's last sequence number.
const LIMIT: Duration = Duration::from_secs(1);

/// A wait is also limited to the lease duration divided by this number, because the lease is not renewed during the
/// wait, and two thirds of it may already have passed.
const LEASE_DIVISOR: u32 = 8;

/// The number of slices of a wait. After each slice the wait checks whether the process was paused.
const SLICES: u32 = 4;

/// How long streams count as unavailable after a timeout. Runs do not wait for them during this time.
const PAUSE: Duration = Duration::from_secs(10);

/// Limits the waits for the streams of a process. Cheap to clone.
///
/// Streams show what happens in a run; the run does not depend on them.
#[derive(Clone)]
pub(crate) struct StreamWait {
    shared: Arc<Shared>,
    /// The timer of the current slice. Later waits reuse it, because most waits end long before their limit. `None` if
    /// each wait starts a timer.
    timer: Option<Arc<Mutex<Timer>>>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    limit: Duration,
    /// The monotonic time until which streams count as unavailable.
    unavailable_until: StdMutex<Duration>,
}

impl StreamWait {
    /// Creates limits for runs with this lease duration.
    pub(crate) fn new(clock: Arc<dyn Clock>, lease: Duration) -> Self {
        let limit = LIMIT.min(lease / LEASE_DIVISOR);
        let shared = Shared { clock, limit, unavailable_until: StdMutex::default() };
        Self { shared: Arc::new(shared), timer: None }
    }

    /// Returns a handle for the waits of one run, which reuse one timer. It must only be used in one tokio runtime.
    pub(crate) fn with_timer(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), timer: Some(Arc::default()) }
    }

    /// Waits for work on streams, unless they are unavailable. Returns `None` if the work was not done in time.
    pub(crate) async fn wait_if_available<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        if mutant!("stream-waited-for") {
            return Some(work.await);
        }
        if self.are_unavailable() { None } else { self.wait_once(work).await }
    }

    /// Waits for the last stream writes of a run, even if streams count as unavailable. Returns `None` if the work was
    /// not done in time.
    pub(crate) async fn wait_once<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.time_out() => None,
        }
    }

    /// Waits until the limit for work in progress on streams has passed. Returns immediately if streams are
    /// unavailable.
    pub(crate) async fn timeout_elapsed(&self) {
        if !self.are_unavailable() {
            self.time_out().await;
        }
    }

    /// Waits until the limit has passed, and then marks streams as unavailable. An earlier wait may
    /// have started the timer, so the first slice may be shorter. If the process was paused during the wait, the wait
    /// restarts, because the response may have arrived during the pause.
    async fn time_out(&self) {
        let Shared { clock, limit, .. } = &*self.shared;
        let (slice, mut left) = (*limit / SLICES, SLICES);
        // A wait that is concurrent with another one starts a timer of its own.
        let mut reused = self.timer.as_ref().and_then(|timer| timer.try_lock().ok());
        let mut own = Timer::default();
        let timer = reused.as_deref_mut().unwrap_or(&mut own);
        while left > 0 {
            let before = clock.monotonic();
            timer.wait(clock, slice).await;
            let was_paused = clock.monotonic().saturating_sub(before) > slice + *limit;
            left = if was_paused { SLICES } else { left - 1 };
        }
        tracing::warn!("streams did not answer in time; runs do not wait for them for a while");
        *self.unavailable_until() = self.shared.clock.monotonic() + PAUSE;
    }

    /// Records that streams answered.
    pub(crate) fn answered(&self) {
        *self.unavailable_until() = Duration::ZERO;
    }

    fn are_unavailable(&self) -> bool {
        let until = *self.unavailable_until();
        !until.is_zero() && self.shared.clock.monotonic() < until
    }

    fn unavailable_until(&self) -> MutexGuard<'_, Duration> {
        self.shared.unavailable_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for StreamWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamWait")
            .field("are_unavailable", &self.are_unavailable())
            .finish_non_exhaustive()
    }
}
