//! Tests of the line prefixes of sub-agents.

use helix_agents_core::stream::ChunkKind;

use super::*;
use crate::live::shown_by;

fn margin_of(session: &str) -> String {
    margin(&shown_by(session, ChunkKind::RunStarted { turn: 1 }))
}

#[test]
fn a_child_is_named_by_its_call_and_a_companion_by_its_name() {
    assert_eq!(margin_of("story"), "");
    assert_eq!(margin_of("story-sub-1.0"), "    [helper 1.0] ");
    assert_eq!(margin_of("story-agent-rex"), "    [rex] ");
}

#[test]
fn each_level_is_indented_further() {
    assert_eq!(margin_of("story-agent-rex-sub-2.1"), "      [helper 2.1] ");
    assert_eq!(margin_of("story-sub-2.1-agent-rex"), "      [rex] ");
    let deep = format!("story{}", "-sub-1.0".repeat(20));
    assert_eq!(margin_of(&deep), format!("{}[helper 1.0] ", "  ".repeat(9)));
}
