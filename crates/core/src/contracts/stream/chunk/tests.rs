//! Tests of the wire format of chunks.

use serde_json::{Value, json};

use super::ChunkKind;

fn written(kind: &ChunkKind) -> Value {
    serde_json::to_value(kind).unwrap()
}

fn read(text: Value) -> ChunkKind {
    serde_json::from_value(text).unwrap()
}

#[test]
fn chunks_of_earlier_builds_are_read() {
    assert_eq!(read(json!({"type": "run_started"})), ChunkKind::RunStarted { turn: 0 });
    let start = json!({"type": "tool_start", "call": "1.0", "tool": "t", "arguments": "{}"});
    let ChunkKind::ToolStart { client, .. } = read(start) else { panic!("another kind") };
    assert!(!client);
    let start = json!({"type": "subagent_start", "call": "1.0", "subagent": "a", "child": "c"});
    let ChunkKind::SubagentStart { arguments, .. } = read(start) else { panic!("another kind") };
    assert_eq!(arguments, "");
}

#[test]
fn additional_fields_are_only_written_with_a_value() {
    let (call, tool, arguments) = ("1.0".into(), "t".into(), "{}".to_owned());
    let start = ChunkKind::ToolStart { call, tool, arguments, client: false };
    let expected = json!({"type": "tool_start", "call": "1.0", "tool": "t", "arguments": "{}"});
    assert_eq!(written(&start), expected);
    assert_eq!(written(&ChunkKind::RunStarted { turn: 0 }), json!({"type": "run_started"}));
    let started = ChunkKind::RunStarted { turn: 2 };
    assert_eq!(written(&started), json!({"type": "run_started", "turn": 2}));
    assert_eq!(read(written(&started)), started);
}
