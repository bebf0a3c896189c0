//! Splitting of transcripts.

use std::sync::Arc;

use helix_agents_core::id::CallId;
use helix_agents_core::message::{
    AssistantMessage, Message, SharedMessage, ToolCall, ToolResultMessage, UserMessage,
};
use serde_json::json;

use super::{RoundState, Turn, tool_logs};
use crate::command::Command;
use crate::plan::{Problem, RecordedPlan, Stop};

fn user(text: &str) -> SharedMessage {
    Message::User(UserMessage::new(text)).into()
}

fn hidden(text: &str) -> SharedMessage {
    Message::User(UserMessage::hidden(text)).into()
}

fn assistant(content: &str, calls: &[&str]) -> SharedMessage {
    let tool_calls = calls.iter().map(|id| ToolCall {
        id: CallId::from(*id),
        provider_id: None,
        name: "t".into(),
        arguments: json!({}).into(),
    });
    let tool_calls = tool_calls.collect();
    let content = Some(content.to_owned());
    Message::Assistant(Arc::new(AssistantMessage {
        content,
        tool_calls,
        thinking: None,
        layout: None,
    }))
    .into()
}

fn result(call: &str, content: &str) -> SharedMessage {
    Message::Tool(ToolResultMessage {
        tool_call_id: CallId::from(call),
        provider_id: None,
        tool_name: "t".to_owned(),
        content: content.to_owned(),
        attachments: Vec::new(),
        failed: false,
    })
    .into()
}

fn round(number: u32, calls: &[&str]) -> SharedMessage {
    let command = Command { tool_name: "t".to_owned(), ..Command::default() };
    let plan = RecordedPlan::execute(number, None, vec![command; calls.len()]);
    assistant(&plan.content(), calls)
}

fn stop() -> SharedMessage {
    assistant(&RecordedPlan::stop(1, None, Stop::Response, Vec::new()).content(), &[])
}

#[test]
fn an_empty_transcript_has_no_rounds() {
    assert_eq!(RoundState::of(&[]), RoundState::default());
    assert_eq!(RoundState::of(&[user("go")]), RoundState::default());
}

#[test]
fn a_turn_starts_with_all_messages_that_arrived_together() {
    let transcript = [user("a"), assistant("b", &[]), hidden("c"), user("d"), round(0, &["1.0"])];
    let turn = Turn::of(&transcript);
    assert_eq!((turn.before.len(), turn.asked.len()), (2, 2));
    assert!(!turn.is_answered());
}

#[test]
fn results_are_found_by_their_calls() {
    let transcript =
        [user("go"), round(0, &["1.0", "1.1"]), result("1.1", "1"), result("1.0", "0")];
    let logs = tool_logs(&transcript);
    assert_eq!((logs[0].result.clone(), logs[1].result.clone()), (json!(0), json!(1)));
}

#[test]
fn a_missing_result_is_a_failure_and_plain_text_is_a_result() {
    let transcript = [user("go"), round(0, &["1.0", "1.1"]), result("1.1", "plain")];
    let logs = tool_logs(&transcript);
    assert_eq!(logs[0].error, "the call has no result");
    assert_eq!((logs[1].success, logs[1].result.clone()), (true, json!("plain")));
}

#[test]
fn a_turn_is_answered_by_a_message_that_is_not_a_plan() {
    let loops = [user("go"), round(0, &["1.0"]), result("1.0", "0"), stop()];
    assert!(!Turn::of(&loops).is_answered());
    let answered = [&loops[..], &[assistant("done", &[])]].concat();
    let turn = Turn::of(&answered);
    assert!(turn.is_answered());
    assert_eq!(turn.rounds.stopped, Some(Stop::Response));
    // The model called a tool itself, because the loop was disabled then.
    let called = [user("go"), assistant("", &["1.0"]), result("1.0", "0")];
    assert_eq!(Turn::of(&called).answers.len(), 2);
}

#[test]
fn a_usable_plan_clears_the_earlier_problems() {
    let problem = |problem| assistant(&RecordedPlan::unusable(0, None, problem).content(), &[]);
    let mut transcript = vec![user("go"), problem(Problem::CutOff), problem(Problem::Malformed)];
    let state = RoundState::of(&transcript);
    assert_eq!(state.problems, [Problem::CutOff, Problem::Malformed]);
    assert_eq!(state.round_index, 0);
    transcript.push(round(0, &[]));
    let state = RoundState::of(&transcript);
    assert_eq!((state.problems.len(), state.round_index), (0, 1));
}
