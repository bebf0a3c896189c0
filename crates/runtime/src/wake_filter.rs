//! Polls a future only after it was woken.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// Polls one future at a time, and only after that future's own waker was called. Other wakeups of the task are
/// ignored.
///
/// Each piece of a model reply wakes the task of its run. Without this filter, each of these wakeups would also poll
/// the run's timers and notifications.
#[derive(Debug)]
pub(crate) struct WakeFilter {
    state: Arc<State>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct State {
    /// `true` if the future was woken since its last poll.
    is_woken: AtomicBool,
    /// The task that polls the future.
    task: AtomicWaker,
}

impl Wake for State {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl WakeFilter {
    pub(crate) fn new() -> Self {
        let state = Arc::<State>::default();
        let waker = Waker::from(Arc::clone(&state));
        Self { state, waker }
    }

    /// Prepares for a new future, so that its first poll is not skipped.
    pub(crate) fn restart(&self) {
        self.state.is_woken.store(true, Ordering::Release);
    }

    /// Polls the future if it was woken. The task is woken when the future is.
    pub(crate) fn poll<F: Future>(
        &self,
        future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<F::Output> {
        // Registered first, so that no wakeup is missed.
        self.state.task.register(cx.waker());
        if self.state.is_woken.swap(false, Ordering::AcqRel) {
            future.poll(&mut Context::from_waker(&self.waker))
        } else {
            Poll::Pending
        }
    }
}

#[cfg(test)]
mod tests;
