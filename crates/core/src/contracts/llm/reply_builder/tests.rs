//! Tests of layouts: the parts of a stored message are those that the model produced.

use expect_test::expect;
use serde_json::json;

use super::ReplyBuilder;
use crate::event::{Event, ModelReply};
use crate::json::Json;
use crate::llm::LlmResponse;
use crate::llm::reply::{ParsedToolCall, StepResult, StopReason};
use crate::message::{Arguments, AssistantMessage, ReplyPart};
use crate::usage::Usage;

fn data(text: &str) -> Option<Json> {
    Some(json!({ "sig": text }).into())
}

fn call(name: &str) -> ParsedToolCall {
    ParsedToolCall::new(format!("p-{name}").as_str(), name, Arguments::from(json!({})))
}

/// Returns the message of a reply after it was written to a log and read back.
fn recorded(reply: ReplyBuilder, stop_reason: StopReason) -> AssistantMessage {
    let layout = reply.layout("api", "model-1");
    let result = reply.into_result(Some(stop_reason), false);
    let response = LlmResponse { layout, ..LlmResponse::new(result, Usage::default()) };
    let event = Event::from(ModelReply::from_response(3, response, 0));
    let text = serde_json::to_string(&event).unwrap();
    let Event::ModelReplied(reply) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
    AssistantMessage::clone(reply.message.as_ref().unwrap())
}

/// Returns the parts as text, one per line.
fn shown(message: &AssistantMessage) -> String {
    let line = |part: ReplyPart<'_>| {
        let (part, data) = match part {
            ReplyPart::Thinking { text, data } => (format!("thinking {text:?}"), data),
            ReplyPart::Text { text, data } => (format!("text {text:?}"), data),
            ReplyPart::Call { call, data } => (format!("call {} {}", call.id, call.name), data),
            ReplyPart::Opaque { data } => ("opaque".to_owned(), Some(data)),
        };
        let data = data.map_or_else(String::new, |data| format!(" {}", data.text()));
        format!("{part}{data}\n")
    };
    message.parts().map(line).collect()
}

#[test]
fn a_plain_reply_has_no_layout() {
    let mut reply = ReplyBuilder::default();
    reply.thinking("Hm", None);
    reply.thinking(".", None);
    reply.text("", None);
    reply.text("Sear", None);
    reply.text("ching.", None);
    reply.call(call("search"), None);
    reply.call(call("subagent__helper"), None);
    let message = recorded(reply, StopReason::ToolUse);
    assert_eq!(message.layout, None);
    expect![[r#"
        thinking "Hm."
        text "Searching."
        call 3.0 search
        call 3.1 subagent__helper
    "#]]
    .assert_eq(&shown(&message));
}

#[test]
fn parts_keep_their_order_and_their_data() {
    let mut reply = ReplyBuilder::default();
    reply.thinking("Für", data("a"));
    reply.text("One ", None);
    reply.text("text.", None);
    reply.opaque(json!({"type": "server_tool_use"}).into());
    reply.thinking("", data("b"));
    reply.call(call("subagent__helper"), data("c"));
    reply.call(call("search"), None);
    reply.text("", data("d"));
    let message = recorded(reply, StopReason::ToolUse);
    expect![[r#"
        thinking "Für" {"sig":"a"}
        text "One text."
        opaque {"type":"server_tool_use"}
        thinking "" {"sig":"b"}
        call 3.1 subagent__helper {"sig":"c"}
        call 3.0 search
        text "" {"sig":"d"}
    "#]]
    .assert_eq(&shown(&message));
    let layout = message.layout.unwrap();
    assert_eq!((&*layout.provider, &*layout.model), ("api", "model-1"));
}

#[test]
fn text_that_surrounds_calls_keeps_its_place() {
    let mut reply = ReplyBuilder::default();
    reply.call(call("search"), None);
    reply.text("Searching.", None);
    assert_eq!(reply.calls().len(), 1);
    let message = recorded(reply, StopReason::ToolUse);
    expect![[r#"
        call 3.0 search
        text "Searching."
    "#]]
    .assert_eq(&shown(&message));
}

/// Another program may write a log whose layout does not match the message.
#[test]
fn a_layout_that_does_not_match_is_read_without_a_panic() {
    let text = r#"{"content":"ü","layout":{"provider":"a","model":"m","parts":[
        {"text":{"bytes":1}},{"text":{"bytes":2}},{"call":{"index":4}},{"thinking":{"bytes":9}}]}}"#;
    let message: AssistantMessage = serde_json::from_str(text).unwrap();
    assert_eq!(shown(&message), "text \"ü\"\n");
}

#[test]
fn the_result_follows_from_the_parts() {
    let text = |content: &str| {
        let mut reply = ReplyBuilder::default();
        reply.text(content, None);
        reply
    };
    let stops = |reason| match text("x").into_result(reason, false) {
        StepResult::Text { should_stop, .. } => should_stop,
        other => panic!("{other:?}"),
    };
    assert!(stops(Some(StopReason::EndTurn)) && stops(None));
    assert!(!stops(Some(StopReason::Pause)) && !stops(Some(StopReason::ToolUse)));
    let result = text("{}").into_result(Some(StopReason::EndTurn), true);
    assert!(matches!(result, StepResult::StructuredOutput { .. }));
    let cut = text("{}").into_result(Some(StopReason::MaxTokens), true);
    assert!(matches!(cut, StepResult::Text { .. }), "cut-off text may still be JSON");
    assert!(ReplyBuilder::default().is_empty() && !text("x").is_empty());
}

#[test]
fn calls_without_an_id_of_their_own_get_one() {
    let mut reply = ReplyBuilder::after_messages(7);
    for id in ["a", "", "a", "call_7_4", "", "call_7_4"] {
        reply.call(ParsedToolCall::new(id, "search", Arguments::from(json!({}))), None);
    }
    let ids: Vec<&str> = reply.calls().iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["a", "call_7_1", "call_7_2", "call_7_4", "call_7_5", "call_7_6"]);
}
