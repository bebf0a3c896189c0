//! The macro accepts the same names as core. `crates/helix-agents/tests/it/macros/names.rs` has the same list.

use super::{MAX_LENGTH, problem};

#[test]
fn names_that_core_reserves_are_refused() {
    for name in ["__finish__", "subagent__x", "companion__x", "workspace__x"] {
        assert!(problem(name).is_some(), "{name} is accepted");
    }
}

#[test]
fn names_that_only_look_reserved_are_accepted() {
    for name in ["finish", "__finish", "subagent", "workspace_x", "a-B_9"] {
        assert_eq!(problem(name), None);
    }
}

#[test]
fn names_that_providers_refuse_are_refused() {
    assert_eq!(problem(&"x".repeat(MAX_LENGTH)), None);
    for name in ["", &"x".repeat(MAX_LENGTH + 1), "größe", "a b", "a.b"] {
        assert!(problem(name).is_some(), "{name} is accepted");
    }
}
