//! Whether this process still owns a run, as the calls see it that run beside its journal.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use helix_agents_core::clock::Clock;
use helix_agents_core::mutant;
use tokio::sync::{Notify, watch};

#[cfg(test)]
mod tests;

/// A view of a run's lease, shared by the keeper that extends it and the calls that depend on it. Cheap to clone
/// and to ask.
///
/// It is counted from when a renewal or an append was *sent*, by the process's monotonic clock. So it runs out
/// no later than the lease in the store, however long the answer took and however long the process stood
/// still.
#[derive(Clone)]
pub struct Ownership(Arc<Inner>);

struct Inner {
    clock: Arc<dyn Clock>,
    ttl: Duration,
    /// Until when the lease is good.
    until: watch::Sender<Duration>,
    /// A call waits for a renewal.
    wanted: Notify,
}

/// How much of the lease has to be left for something to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// A third: from then on another process may soon take over.
    Some,
    /// Half, for what must not run twice.
    Half,
}

impl Ownership {
    /// Ownership that lasts until the clock is there.
    pub(crate) fn new(clock: Arc<dyn Clock>, ttl: Duration, until: Duration) -> Self {
        let (until, _) = watch::channel(until);
        Self(Arc::new(Inner { clock, ttl, until, wanted: Notify::new() }))
    }

    /// Notes a renewal or an append that was acknowledged, and was sent then.
    pub(crate) fn extend(&self, sent: Duration) {
        let sent = if mutant!("lease-from-answer") { self.0.clock.monotonic() } else { sent };
        let until = sent.saturating_add(self.0.ttl);
        self.0.until.send_if_modified(|known| {
            let later = until > *known;
            *known = until.max(*known);
            later
        });
    }

    /// The time since the lease was extended last.
    pub(crate) fn age(&self) -> Duration {
        let left = self.0.until.borrow().saturating_sub(self.0.clock.monotonic());
        self.0.ttl.saturating_sub(left)
    }

    /// Whether so much of the lease is left.
    pub(crate) fn has(&self, left: Left) -> bool {
        if mutant!("lease-not-checked") {
            return true;
        }
        let age = self.age();
        match left {
            Left::Some => age < self.0.ttl * 2 / 3,
            Left::Half => age < self.0.ttl / 2,
        }
    }

    /// Waits until so much of the lease is left, and asks the keeper to renew it. A run that is not owned
    /// any more ends meanwhile, and the call that waits with it.
    pub(crate) async fn holds(&self, left: Left) {
        let mut until = self.0.until.subscribe();
        while !self.has(left) {
            self.0.wanted.notify_one();
            if until.changed().await.is_err() {
                // The sender is in `self`.
                return;
            }
        }
    }

    /// Waits until a call asks for a renewal.
    pub(crate) async fn wanted(&self) {
        loop {
            self.0.wanted.notified().await;
            if !self.has(Left::Half) {
                return;
            }
        }
    }

    /// Polls `work` only while the run is owned: after a gap in which another process may have taken over,
    /// nothing of it moves before the lease was renewed.
    pub async fn while_owned<T>(&self, mut work: Pin<&mut (impl Future<Output = T> + Send)>) -> T {
        poll_fn(|cx| if self.has(Left::Some) { work.as_mut().poll(cx) } else { Poll::Pending })
            .await
    }
}

impl fmt::Debug for Ownership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ownership").field("age", &self.age()).finish_non_exhaustive()
    }
}
