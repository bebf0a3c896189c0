//! Loops in the conversation of later turns.

use std::sync::Arc;

use helix_agents_core::id::CallId;
use helix_agents_core::message::{
    AssistantMessage, Message, SharedMessage, ToolCall, ToolResultMessage, UserMessage,
};
use serde_json::json;

use super::history;
use crate::command::Command;
use crate::plan::RecordedPlan;

fn user(text: &str) -> SharedMessage {
    Message::User(UserMessage::new(text)).into()
}

fn answer(text: &str) -> SharedMessage {
    let content = Some(text.to_owned());
    Message::Assistant(Arc::new(AssistantMessage { content, ..AssistantMessage::default() })).into()
}

/// Returns a round with one call and its result.
fn round() -> [SharedMessage; 2] {
    let call = CallId::new(1, 0);
    let command = Command { purpose: "p".to_owned(), ..Command::default() };
    let plan = RecordedPlan::execute(0, None, vec![command]);
    let message = AssistantMessage {
        content: Some(plan.content()),
        tool_calls: vec![ToolCall {
            id: call.clone(),
            provider_id: None,
            name: "t".into(),
            arguments: json!({}).into(),
        }],
        thinking: None,
        layout: None,
    };
    let result = ToolResultMessage {
        tool_call_id: call,
        provider_id: None,
        tool_name: "t".to_owned(),
        content: "7".to_owned(),
        attachments: Vec::new(),
        failed: false,
    };
    [Message::Assistant(Arc::new(message)).into(), Message::Tool(result).into()]
}

#[test]
fn an_answered_turn_is_included_without_its_loop() {
    let before = [&[user("a")], &round()[..], &[answer("b")]].concat();
    assert_eq!(history(&before, 100), [user("a"), answer("b")]);
}

#[test]
fn an_unanswered_turn_is_replaced_by_its_results() {
    let before = [&[user("a")], &round()[..]].concat();
    let messages = history(&before, 100);
    assert_eq!(messages.len(), 2);
    let Message::User(results) = &*messages[1] else { panic!("{:?}", messages[1]) };
    assert!(results.hidden && results.content.contains(r#"{"p":7}"#), "{}", results.content);
}
