//! Wakeups of a future that shares its task with other work.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tokio::sync::Notify;

use super::WakeFilter;

/// A future is polled at its start and after each wakeup of its own, and not when other work wakes the task.
#[tokio::test]
async fn a_future_is_polled_only_after_it_was_woken() {
    let (notify, polls, wake_filter) = (Notify::new(), AtomicU32::new(0), WakeFilter::new());
    let mut future = pin!(async {
        let mut inner = pin!(notify.notified());
        poll_fn(|cx| {
            polls.fetch_add(1, Ordering::Relaxed);
            inner.as_mut().poll(cx)
        })
        .await;
    });
    wake_filter.restart();
    let mut rounds = 0;
    poll_fn(|cx| {
        if wake_filter.poll(future.as_mut(), cx).is_ready() {
            return Poll::Ready(());
        }
        rounds += 1;
        match rounds {
            1..=9 => cx.waker().wake_by_ref(),
            // Nothing else wakes the task from here on.
            10 => notify.notify_one(),
            _ => panic!("polled without a wakeup"),
        }
        Poll::Pending
    })
    .await;
    assert_eq!((rounds, polls.load(Ordering::Relaxed)), (10, 2));
}

/// Counts the wakeups of a task.
#[derive(Default)]
struct Counter(AtomicU32);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A future that other work of the task wakes is polled after that work, and the task is not woken for it.
#[test]
fn work_that_precedes_the_future_does_not_wake_the_task() {
    let (counter, notify, wake_filter) =
        (Arc::<Counter>::default(), Notify::new(), WakeFilter::new());
    let waker = Waker::from(Arc::clone(&counter));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(async {
        notify.notified().await;
        notify.notified().await;
    });
    wake_filter.restart();
    let mut poll = |first: &dyn Fn()| {
        let is_ready = wake_filter.poll_after(|_| first(), future.as_mut(), &mut cx).is_ready();
        (is_ready, counter.0.load(Ordering::Relaxed))
    };
    assert_eq!(poll(&|| {}), (false, 0));
    assert_eq!(poll(&|| notify.notify_one()), (false, 0));
    assert_eq!(poll(&|| {}), (false, 0));
    notify.notify_one();
    assert_eq!(poll(&|| {}), (true, 1), "a wakeup from elsewhere wakes the task");
}
