//! The macro accepts the same names as core.

use helix_agents_core::tool::{FINISH_TOOL, SUB_AGENT_PREFIX, is_reserved};

use super::{MAX_LENGTH, problem};

#[test]
fn names_that_core_reserves_are_refused() {
    let sub_agent = format!("{SUB_AGENT_PREFIX}x");
    for name in [FINISH_TOOL, &sub_agent, "companion__x", "workspace__x"] {
        assert!(is_reserved(name), "{name} is not reserved in core");
        assert!(problem(name).is_some(), "{name} is accepted");
    }
}

#[test]
fn names_that_only_look_reserved_are_accepted() {
    for name in ["finish", "__finish", "subagent", "workspace_x", "a-B_9"] {
        assert!(!is_reserved(name), "{name} is reserved in core");
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
