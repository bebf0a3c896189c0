//! Guesses help, and wild ones are not made.

use super::hint;

#[track_caller]
fn check(given: &str, told: &str) {
    let known = ["max_steps", "tool_timeout", "tool_concurrency"];
    assert_eq!(hint(given, known.into_iter()), told);
}

#[test]
fn a_near_key_is_named() {
    check("max_step", "did you mean `max_steps`?");
    check("maxsteps", "did you mean `max_steps`?");
    check("Max-Steps", "did you mean `max_steps`?");
    check("tool_timout", "did you mean `tool_timeout`?");
}

#[test]
fn without_a_near_one_all_are_listed() {
    check("color", "there are `max_steps`, `tool_timeout`, `tool_concurrency`");
    assert_eq!(hint("color", std::iter::empty()), "nothing may stand here");
}
