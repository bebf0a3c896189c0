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
    /// `true` while `poll_after` polls other work of the task; the future is polled directly afterwards.
    will_be_polled: AtomicBool,
    /// The task that polls the future.
    task: AtomicWaker,
}

impl Wake for State {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Sequentially consistent with `poll_after`: either that sees `is_woken`, or this sees `will_be_polled` unset.
        self.is_woken.store(true, Ordering::SeqCst);
        if !self.will_be_polled.load(Ordering::SeqCst) {
            self.task.wake();
        }
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

    /// Polls other work of the task, and then the future if it was woken. If the other work wakes the future, the task
    /// is not woken again, because the future is polled at once.
    pub(crate) fn poll_after<F: Future>(
        &self,
        first: impl FnOnce(&mut Context<'_>),
        future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<F::Output> {
        self.state.will_be_polled.store(true, Ordering::SeqCst);
        first(cx);
        self.state.will_be_polled.store(false, Ordering::SeqCst);
        self.poll(future, cx)
    }

    /// Polls the future if it was woken. The task is woken when the future is.
    pub(crate) fn poll<F: Future>(
        &self,
        future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<F::Output> {
        // Registered first, so that no wakeup is missed.
        self.state.task.register(cx.waker());
        if self.state.is_woken.swap(false, Ordering::SeqCst) {
            future.poll(&mut Context::from_waker(&self.waker))
        } else {
            Poll::Pending
        }
    }
}

#[cfg(test)]
mod tests;
