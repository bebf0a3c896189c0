//! Tests of which runs are notified of a request.

use futures_util::FutureExt as _;

use super::Wakeups;

#[test]
fn only_runs_of_the_session_are_notified_of_a_request() {
    let wakeups = Wakeups::default();
    let (here, there) = (wakeups.subscribe(&"here".into()), wakeups.subscribe(&"there".into()));
    wakeups.notify(&"here".into());
    assert_eq!(here.notified().now_or_never(), Some(()));
    assert_eq!(here.notified().now_or_never(), None, "the notification is delivered once");
    assert_eq!(there.notified().now_or_never(), None);
}

#[test]
fn a_session_without_runs_is_removed() {
    let wakeups = Wakeups::default();
    let (first, second) = (wakeups.subscribe(&"s".into()), wakeups.subscribe(&"s".into()));
    drop(first);
    wakeups.notify(&"s".into());
    assert_eq!(second.notified().now_or_never(), Some(()));
    drop(second);
    assert!(wakeups.lock().is_empty());
}

#[test]
fn every_receiver_of_a_session_is_notified() {
    let wakeups = Wakeups::default();
    let receivers = [wakeups.subscribe(&"s".into()), wakeups.subscribe(&"s".into())];
    wakeups.notify(&"s".into());
    for receiver in &receivers {
        assert_eq!(receiver.notified().now_or_never(), Some(()));
    }
}
