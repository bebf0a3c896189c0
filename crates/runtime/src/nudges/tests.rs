//! Who is told of a request.

use futures_util::FutureExt as _;

use super::Nudges;

#[test]
fn a_request_is_told_to_the_runs_of_its_session_alone() {
    let nudges = Nudges::default();
    let (mut here, mut there) = (nudges.of(&"here".into()), nudges.of(&"there".into()));
    nudges.tell(&"here".into());
    assert_eq!(here.told().now_or_never(), Some(()));
    assert_eq!(here.told().now_or_never(), None, "once");
    assert_eq!(there.told().now_or_never(), None);
}

#[test]
fn a_session_without_runs_is_forgotten() {
    let nudges = Nudges::default();
    let (first, mut second) = (nudges.of(&"s".into()), nudges.of(&"s".into()));
    drop(first);
    nudges.tell(&"s".into());
    assert_eq!(second.told().now_or_never(), Some(()));
    drop(second);
    assert!(nudges.lock().is_empty());
}
