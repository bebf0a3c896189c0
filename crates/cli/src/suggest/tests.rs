//! Guesses help, and wild ones are not made.

use super::near;

#[track_caller]
fn check(given: &str, meant: Option<&str>) {
    let known = ["max_steps", "tool_timeout", "tool_concurrency"];
    assert_eq!(near(given, known.into_iter()), meant);
}

#[test]
fn a_near_name_is_told() {
    check("max_step", Some("max_steps"));
    check("maxsteps", Some("max_steps"));
    check("Max-Steps", Some("max_steps"));
    check("tool_timout", Some("tool_timeout"));
}

#[test]
fn far_ones_are_not() {
    check("color", None);
    assert_eq!(near("color", std::iter::empty()), None);
}
