//! Wakeups of a future that shares its task with other work.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

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
