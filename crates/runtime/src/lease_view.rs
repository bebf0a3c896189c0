//! Checks by the local clock whether the lease of a run is still valid, for calls that run concurrently with its journal.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use helix_agents_core::clock::Clock;
use helix_agents_core::mutant;
use tokio::sync::Notify;

#[cfg(test)]
mod tests;

/// The limit of [`LeaseView::start_window`]. A call in doubt waits for this time in addition to its timeout.
pub(crate) const MAX_START_WINDOW: Duration = Duration::from_secs(5);

/// A view of a run's lease, shared by the keeper that extends it and the calls that depend on it. Cheap to clone
/// and to query.
///
/// The lease duration counts from the time when a renewal or an append was *sent*, by the process's monotonic clock.
/// In this view, the lease therefore expires no later than in the store, regardless of how long the response took or
/// how long the process was paused.
#[derive(Clone)]
pub struct LeaseView(Arc<Inner>);

struct Inner {
    clock: Arc<dyn Clock>,
    ttl: Duration,
    /// `ttl` in nanoseconds.
    ttl_ns: u64,
    /// The monotonic time at which the lease expires, in nanoseconds.
    until: AtomicU64,
    /// Notifies all waiting calls after the lease was extended.
    extended: Notify,
    /// Notified when a call waits for a renewal.
    wanted: Notify,
}

/// The fraction of the lease that must remain for an operation to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseMargin {
    /// A third. With less, another process may take over soon.
    Third,
    /// Half, for operations that must not run twice.
    Half,
}

impl LeaseView {
    /// Creates a view of a lease that expires at this monotonic time.
    pub(crate) fn new(clock: Arc<dyn Clock>, ttl: Duration, until: Duration) -> Self {
        let (ttl_ns, until) = (nanoseconds(ttl), AtomicU64::new(nanoseconds(until)));
        let (extended, wanted) = (Notify::new(), Notify::new());
        Self(Arc::new(Inner { clock, ttl, ttl_ns, until, extended, wanted }))
    }

    /// Extends the lease after an acknowledged renewal or append that was sent at this time.
    pub(crate) fn extend(&self, sent: Duration) {
        let sent = if mutant!("lease-from-answer") { self.0.clock.monotonic() } else { sent };
        let until = nanoseconds(sent.saturating_add(self.0.ttl));
        if self.0.until.fetch_max(until, Ordering::Relaxed) < until {
            self.0.extended.notify_waiters();
        }
    }

    /// Returns the time since the last extension of the lease.
    pub(crate) fn age(&self) -> Duration {
        let until = Duration::from_nanos(self.0.until.load(Ordering::Relaxed));
        let left = until.saturating_sub(self.0.clock.monotonic());
        self.0.ttl.saturating_sub(left)
    }

    /// Returns the maximum time between the request to record the start of an at-most-once call of a work item and the
    /// start itself.
    pub(crate) fn start_window(&self) -> Duration {
        (self.0.ttl / 4).min(MAX_START_WINDOW)
    }

    /// Returns `true` if this fraction of the lease remains.
    pub(crate) fn has(&self, margin: LeaseMargin) -> bool {
        if mutant!("lease-not-checked") {
            return true;
        }
        // Integers instead of `Duration`, because this runs at each poll of a run.
        let least = match margin {
            LeaseMargin::Third => self.0.ttl_ns / 3,
            LeaseMargin::Half => self.0.ttl_ns / 2,
        };
        let left = self.0.until.load(Ordering::Relaxed).checked_sub(self.now_ns());
        left.is_some_and(|left| left > least)
    }

    fn now_ns(&self) -> u64 {
        nanoseconds(self.0.clock.monotonic())
    }

    /// Waits until at least this fraction of the lease remains, and requests a renewal from the keeper if less does. If
    /// the lease is lost, the run stops in this process, and the waiting call is dropped.
    pub(crate) async fn wait_for_margin(&self, margin: LeaseMargin) {
        // Nearly every call finds enough of the lease left.
        while !self.has(margin) {
            // Registered before the next look at the lease, so that no extension is missed.
            let mut extended = pin!(self.0.extended.notified());
            extended.as_mut().enable();
            if self.has(margin) {
                return;
            }
            self.0.wanted.notify_one();
            extended.await;
        }
    }

    /// Waits until a call requests a renewal.
    pub(crate) async fn renewal_requested(&self) {
        loop {
            self.0.wanted.notified().await;
            if !self.has(LeaseMargin::Half) {
                return;
            }
        }
    }

    /// Polls `work` only while the run is owned. After a gap in which another process may have taken over, the
    /// work does not progress until the lease was renewed. The renewal does not wake this future: the caller has
    /// to poll it again, for example in a `select!` with the future that renews the lease.
    pub async fn while_owned<T>(&self, mut work: Pin<&mut (impl Future<Output = T> + Send)>) -> T {
        poll_fn(
            |cx| if self.has(LeaseMargin::Third) { work.as_mut().poll(cx) } else { Poll::Pending },
        )
        .await
    }
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(time.subsec_nanos().into())
}

impl fmt::Debug for LeaseView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseView").field("age", &self.age()).finish_non_exhaustive()
    }
}
