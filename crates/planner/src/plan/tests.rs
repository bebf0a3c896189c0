//! Plans in the transcript.

use std::sync::Arc;

use helix_agents_core::message::{AssistantMessage, Message};

use super::{RecordedPlan, Stop};

fn message(content: &str) -> Message {
    let content = Some(content.to_owned());
    Message::Assistant(Arc::new(AssistantMessage { content, ..AssistantMessage::default() }))
}

#[test]
fn a_plan_round_trips() {
    let plan = RecordedPlan::stop(2, None, Stop::Timeout, Vec::new());
    let message = message(&plan.content());
    assert_eq!(RecordedPlan::of(&message).map(|(plan, _)| plan), Some(plan));
}

#[test]
fn an_answer_that_looks_like_a_decision_is_not_a_plan() {
    for content in [
        r#"{"next_action":"execute","execution_commands":[]}"#,
        r#"{"helix_agents_plan":2,"round_index":0,"next_action":"response","execution_commands":[]}"#,
        r#"{"helix_agents_plan":"#,
        "",
    ] {
        assert!(RecordedPlan::of(&message(content)).is_none(), "{content}");
    }
}
