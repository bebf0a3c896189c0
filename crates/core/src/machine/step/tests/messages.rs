//! The message constructors, example by example.

use serde_json::{Value, json};

use crate::agent::AnyAgent;
use crate::id::CallId;
use crate::json::Json;
use crate::message::{AssistantMessage, Message, SharedMessage, ToolCall, UserMessage};
use crate::session::result_message;
use crate::step::{
    AssistantMessageParts, ParsedSubAgentCall, ParsedToolCall, SubAgentResultInput,
    ToolResultInput, build_messages_for_llm, create_assistant_message,
    create_sub_agent_result_message, create_tool_result_message, find_unpaired_finish_call_id,
    synthesize_finish_tool_result,
};
use crate::testing::{builder, built, result_schema};

#[test]
fn sub_agent_calls_follow_under_their_prefixed_name() {
    let message = create_assistant_message(AssistantMessageParts {
        content: Some("text".to_owned()),
        tool_calls: ["subagent__critic", "search"]
            .map(|name| ParsedToolCall::new(name, name, json!({}).into()))
            .into(),
        sub_agent_calls: vec![ParsedSubAgentCall {
            id: "s1".into(),
            provider_id: None,
            agent_type: "summarizer".to_owned(),
            input: json!({}).into(),
        }],
        thinking: None,
    });
    let calls: Vec<_> =
        message.tool_calls.iter().map(|call| (call.id.as_str(), &*call.name)).collect();
    let expected = [
        ("search", "search"),
        ("subagent__critic", "subagent__critic"),
        ("s1", "subagent__summarizer"),
    ];
    assert_eq!(calls, expected);
    assert_eq!(message.tool_calls[1].arguments, json!({}).into());
    assert_eq!(message.content.as_deref(), Some("text"));
}

#[test]
fn a_result_is_json_text() {
    let result = Json::from(json!({"items": ["a", "b"]}));
    let message = create_tool_result_message(ToolResultInput {
        tool_call_id: &"tc1".into(),
        provider_id: None,
        tool_name: "search",
        outcome: Ok(&result),
    });
    let expected = json!({
        "role": "tool",
        "tool_call_id": "tc1",
        "tool_name": "search",
        "content": r#"{"items":["a","b"]}"#,
    });
    assert_eq!(serde_json::to_value(Message::Tool(message)).unwrap(), expected);
}

#[test]
fn a_failure_is_an_object_with_the_error() {
    let message = create_tool_result_message(ToolResultInput {
        tool_call_id: &"tc1".into(),
        provider_id: Some(&"call_9".into()),
        tool_name: "search",
        outcome: Err("no \"index\""),
    });
    assert_eq!(message.content, r#"{"error":"no \"index\""}"#);
    assert!(message.failed);
    assert_eq!(message.wire_id(), "call_9");
}

#[test]
fn a_sub_agents_result_has_the_prefix() {
    let result = Json::from(json!({"summary": "..."}));
    let message = create_sub_agent_result_message(SubAgentResultInput {
        tool_call_id: &"s1".into(),
        provider_id: None,
        agent_type: "summarizer",
        outcome: Ok(&result),
    });
    assert_eq!(message.tool_name, "subagent__summarizer");
    assert_eq!(message.content, r#"{"summary":"..."}"#);
    assert_eq!(message.wire_id(), "s1", "without a provider id, the framework's id");
}

fn system(agent: &AnyAgent, state: &Value) -> String {
    let transcript = [SharedMessage::new(Message::User(UserMessage::new("hi")))];
    let messages = build_messages_for_llm(&transcript, agent, state).unwrap();
    let all: Vec<_> = messages.iter().collect();
    assert_eq!(all.len(), 2, "exactly one system message");
    assert_eq!(*all[1], transcript[0]);
    match &**all[0] {
        Message::System { content } => content.clone(),
        other => panic!("{other:?}"),
    }
}

#[derive(Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Notes {
    notes: Vec<String>,
}

#[test]
fn a_prompt_of_the_state_is_resolved_and_put_in_front() {
    let notes = |state: Notes| format!("You have {} notes.", state.notes.len());
    let agent = built(builder().state::<Notes>().system_prompt_of(notes));
    let state = json!({"notes": ["a", "b", "c", "d", "e"]});
    assert_eq!(system(&agent, &state), "You have 5 notes.");
    assert_eq!(system(&agent, &json!({"notes": []})), "You have 0 notes.");
}

#[test]
fn a_fixed_prompt_is_put_in_front_as_it_is() {
    assert_eq!(system(&built(builder()), &json!(null)), "Be brief.");
}

#[test]
fn a_prompt_of_the_state_is_followed_by_the_output_requirement_too() {
    let prompt = |_: Notes| "Hi.".to_owned();
    let agent =
        built(builder().state::<Notes>().system_prompt_of(prompt).output_schema(result_schema()));
    let text = system(&agent, &json!({"notes": []}));
    assert!(text.starts_with("Hi.\n\n## Output Requirement\n\n"), "{text}");
}

#[test]
fn a_state_that_does_not_fit_the_prompt_is_an_error() {
    let agent = built(builder().state::<Notes>().system_prompt_of(|_: Notes| String::new()));
    let error = build_messages_for_llm(&[], &agent, &json!({"notes": 1})).unwrap_err();
    assert_eq!(error.code(), crate::error::ErrorCode::StateInvalid);
}

fn assistant(calls: &[(&str, &str)]) -> SharedMessage {
    let tool_calls = calls
        .iter()
        .map(|(id, name)| ToolCall {
            id: CallId::from(*id),
            provider_id: None,
            name: (*name).into(),
            arguments: json!({}).into(),
        })
        .collect();
    Message::Assistant(AssistantMessage { tool_calls, ..AssistantMessage::default() }.into()).into()
}

/// Returns the message of the synthetic result of this `__finish__` call.
fn acknowledged(id: &str) -> SharedMessage {
    let finish = synthesize_finish_tool_result(CallId::from(id));
    let call = ToolCall {
        id: CallId::from(id),
        provider_id: Some("tc1".into()),
        name: "__finish__".into(),
        arguments: json!({"result": "done"}).into(),
    };
    Message::Tool(result_message(&call, &finish.outcome)).into()
}

#[test]
fn the_finish_result_is_a_fixed_sentinel_not_an_echo() {
    let message = acknowledged("1.0");
    let expected = json!({
        "role": "tool",
        "tool_call_id": "1.0",
        "provider_id": "tc1",
        "tool_name": "__finish__",
        "content": r#"{"acknowledged":true}"#,
    });
    assert_eq!(serde_json::to_value(&*message).unwrap(), expected);
}

#[test]
fn an_unpaired_finish_call_is_found_and_a_paired_one_is_not() {
    let paired = [assistant(&[("1.0", "__finish__")]), acknowledged("1.0")];
    assert_eq!(find_unpaired_finish_call_id(&paired), None);
    assert_eq!(find_unpaired_finish_call_id(&paired[..1]), Some("1.0".into()));
    let later = [&paired[..], &[assistant(&[("2.0", "search"), ("2.1", "__finish__")])]].concat();
    assert_eq!(find_unpaired_finish_call_id(&later), Some("2.1".into()));
    assert_eq!(find_unpaired_finish_call_id(&[assistant(&[("1.0", "search")])]), None);
    assert_eq!(find_unpaired_finish_call_id(&[]), None);
}
