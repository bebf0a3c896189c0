//! Tests of suggestions.

use super::near;

#[track_caller]
fn check(given: &str, meant: Option<&str>) {
    let known = ["max_steps", "tool_timeout", "tool_concurrency"];
    assert_eq!(near(given, known.into_iter()), meant);
}

#[test]
fn a_similar_name_is_suggested() {
    check("max_step", Some("max_steps"));
    check("maxsteps", Some("max_steps"));
    check("Max-Steps", Some("max_steps"));
    check("tool_timout", Some("tool_timeout"));
}

#[test]
fn a_dissimilar_name_is_not_suggested() {
    check("color", None);
    assert_eq!(near("color", std::iter::empty()), None);
}
