//! Tests of the wire format of the log, and of model replies.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Event, ModelReply, ParentRef, RecordedEvent, SCHEMA, decode, encode};
use crate::clock::Timestamp;
use crate::error::{Error, ErrorCode};
use crate::llm::LlmResponse;
use crate::message::Thinking;
use crate::step::{ParsedSubAgentCall, ParsedToolCall, StepResult, StopReason};
use crate::store::StoredAppend;
use crate::testing::{calls, error_step, output, stopped, text};
use crate::usage::Usage;

fn append(schema: u16, count: u32, body: &str) -> StoredAppend {
    StoredAppend {
        first: 4,
        count,
        id: "a".into(),
        run: Some("r1".into()),
        schema,
        at: Timestamp(9),
        body: Bytes::from(body.to_owned()),
    }
}

fn refused(schema: u16, count: u32, body: &str) -> Error {
    decode(&"s".into(), &append(schema, count, body)).unwrap_err()
}

const CLOSED: &str = r#"[{"step_closed":{"step":2}}]"#;

#[test]
fn an_append_decodes_to_events_with_their_envelopes() {
    let events = decode(&"s".into(), &append(SCHEMA, 1, CLOSED)).unwrap();
    let event = Event::StepClosed { step: 2 };
    let run = Some("r1".into());
    assert_eq!(events, [RecordedEvent { seq: 4, at: Timestamp(9), run, schema: SCHEMA, event }]);
    assert_eq!(encode(&[Event::StepClosed { step: 2 }]).unwrap(), CLOSED);
}

#[test]
fn a_newer_log_is_distinguished_from_a_damaged_one() {
    assert_eq!(refused(SCHEMA + 1, 1, CLOSED).code(), ErrorCode::SchemaUnknown);
    let unknown = r#"[{"moon_rose":{"phase":2}}]"#;
    assert_eq!(refused(SCHEMA, 1, unknown).code(), ErrorCode::SchemaUnknown);
    for damaged in ["", "[", r#"[{"step_closed":{}}]"#, "{}", r#"[{"step_closed":{"step":"x"}}]"#] {
        assert_eq!(refused(SCHEMA, 1, damaged).code(), ErrorCode::LogInvalid, "{damaged}");
    }
    assert_eq!(refused(SCHEMA, 2, CLOSED).code(), ErrorCode::LogInvalid, "an event is missing");
}

#[test]
fn optional_fields_may_be_missing_and_unknown_ones_are_ignored() {
    let minimal = r#"[{"model_replied":{"step":1,"should_stop":true,"new_field":[1]}}]"#;
    let events = decode(&"s".into(), &append(SCHEMA, 1, minimal)).unwrap();
    let Event::ModelReplied(reply) = &events[0].event else { panic!("{events:?}") };
    assert_eq!((reply.step, reply.should_stop, reply.usage), (1, true, Usage::default()));
    let minimal = r#"[{"tool_finished":{"call":"1.0","outcome":"acknowledged"}}]"#;
    assert!(decode(&"s".into(), &append(SCHEMA, 1, minimal)).is_ok());
}

#[test]
fn the_name_of_an_event_is_its_tag() {
    let events = [
        Event::StepClosed { step: 1 },
        Event::HistoryHealed { results: Vec::new() },
        Event::UserMessages { messages: Vec::new() },
        Event::InterruptRequested { request: "q".into(), run: "r".into(), reason: None },
    ];
    for event in events {
        let value = serde_json::to_value(&event).unwrap();
        assert_eq!(value.as_object().unwrap().keys().collect::<Vec<_>>(), [event.name()]);
    }
}

fn response(result: StepResult) -> LlmResponse {
    let mut response = LlmResponse::new(result, Usage::new(3, 0));
    response.model = Some("m-1".into());
    response.raw_stop_reason = Some("raw".to_owned());
    response
}

fn reply(result: StepResult) -> ModelReply {
    ModelReply::from_response(7, response(result), 12)
}

fn reply_event(result: StepResult) -> Event {
    Event::from(reply(result))
}

#[test]
fn calls_get_framework_ids_and_keep_provider_ids() {
    let step = StepResult::ToolCalls {
        content: Some("Both.".to_owned()),
        tool_calls: vec![ParsedToolCall::new("call_a", "search", json!({}).into())],
        sub_agent_calls: vec![ParsedSubAgentCall {
            id: "call_b".into(),
            provider_id: None,
            agent_type: "subagent__odd".to_owned(),
            input: json!({}).into(),
        }],
        thinking: None,
        stop_reason: Some(StopReason::ToolUse),
    };
    let reply = reply(step);
    let message = reply.message.clone().unwrap();
    let ids: Vec<_> =
        message.tool_calls.iter().map(|call| (call.id.as_str(), call.wire_id())).collect();
    assert_eq!(ids, [("7.0", "call_a"), ("7.1", "call_b")]);
    assert_eq!(&*message.tool_calls[1].name, "subagent__subagent__odd");
    let StepResult::ToolCalls { sub_agent_calls, tool_calls, content, .. } = reply.to_step_result()
    else {
        panic!("{reply:?}")
    };
    assert_eq!(sub_agent_calls[0].agent_type, "subagent__odd", "one prefix is ours");
    assert_eq!(tool_calls[0].provider_id.as_deref(), Some("call_a"));
    assert_eq!(content.as_deref(), Some("Both."));
}

#[test]
fn a_reply_round_trips_to_its_step_result() {
    let results =
        [text("Hi."), output(json!({"a": 1})), error_step(ErrorCode::ModelError, true), text("")];
    for result in results {
        assert_eq!(reply(result.clone()).to_step_result(), result);
    }
}

#[test]
fn only_text_and_calls_produce_a_message() {
    assert!(reply(text("x")).message.is_some());
    assert!(reply(calls([("t", json!({}))])).message.is_some());
    assert!(reply(output(json!(1))).message.is_none());
    assert!(reply(error_step(ErrorCode::ModelError, false)).message.is_none());
    assert_eq!(reply(text("")).message.unwrap().content, None, "no empty text");
}

#[test]
fn thinking_stays_with_the_message() {
    let thinking = Some(Thinking::new("Hm."));
    let mut result = text("x");
    if let StepResult::Text { thinking: slot, .. } = &mut result {
        slot.clone_from(&thinking);
    }
    let event = reply_event(result);
    let back: Event = serde_json::from_slice(&serde_json::to_vec(&event).unwrap()).unwrap();
    let Event::ModelReplied(reply) = back else { panic!("{back:?}") };
    assert_eq!(reply.message.as_ref().unwrap().thinking, thinking);
}

#[test]
fn an_output_that_is_null_is_read_back() {
    let event = reply_event(output(json!(null)));
    let back: Event = serde_json::from_slice(&serde_json::to_vec(&event).unwrap()).unwrap();
    assert_eq!(back, event);
}

#[test]
fn the_raw_stop_reason_is_kept_if_the_normalised_one_is_unknown() {
    assert_eq!(reply(text("x")).raw_stop_reason, None);
    let unknown = reply(stopped(text("x"), StopReason::Unknown));
    assert_eq!(unknown.raw_stop_reason.as_deref(), Some("raw"));
    let written: Value = serde_json::to_value(reply_event(text("x"))).unwrap();
    assert_eq!(written["model_replied"]["took_ms"], 12);
    assert_eq!(written["model_replied"]["model"], "m-1");
}

/// A log of an older version names no trace.
#[test]
fn the_trace_of_a_parent_does_not_distinguish_calls() {
    let parent = |call: &str, trace: Option<&str>| ParentRef {
        session: "talk".into(),
        call: call.into(),
        root: "talk".into(),
        companion: None,
        trace: trace.map(|trace| trace.parse().unwrap()),
        is_trace_given: trace.is_some(),
    };
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    assert!(parent("1.0", None).is_same_call(&parent("1.0", Some(trace))));
    assert!(!parent("1.0", Some(trace)).is_same_call(&parent("1.1", Some(trace))));
}
