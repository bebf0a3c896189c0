//! Who is told of a request.

use futures_util::FutureExt as _;

use super::Wakeups;

#[test]
fn a_request_is_told_to_the_runs_of_its_session_alone() {
    let wakeups = Wakeups::default();
    let (mut here, mut there) = (wakeups.of(&"here".into()), wakeups.of(&"there".into()));
    wakeups.tell(&"here".into());
    assert_eq!(here.told().now_or_never(), Some(()));
    assert_eq!(here.told().now_or_never(), None, "once");
    assert_eq!(there.told().now_or_never(), None);
}

#[test]
fn a_session_without_runs_is_forgotten() {
    let wakeups = Wakeups::default();
    let (first, mut second) = (wakeups.of(&"s".into()), wakeups.of(&"s".into()));
    drop(first);
    wakeups.tell(&"s".into());
    assert_eq!(second.told().now_or_never(), Some(()));
    drop(second);
    assert!(wakeups.lock().is_empty());
}
