//! Names of tools that core reserves. `crates/macros/src/name/tests.rs` has the same list.

use helix_agents_core::tool::{FINISH_TOOL, SUB_AGENT_PREFIX, is_reserved};

#[test]
fn core_reserves_the_names_that_the_attribute_refuses() {
    assert_eq!((FINISH_TOOL, SUB_AGENT_PREFIX), ("__finish__", "subagent__"));
    for name in ["__finish__", "subagent__x", "companion__x", "workspace__x"] {
        assert!(is_reserved(name), "{name}");
    }
    for name in ["finish", "__finish", "subagent", "workspace_x", "a-B_9"] {
        assert!(!is_reserved(name), "{name}");
    }
}
