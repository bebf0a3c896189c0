//! Streams of the Responses API that lack a part of their events.

use helix_agents_core::llm::LlmResponse;
use helix_agents_core::step::{StepResult, StopReason};
use helix_agents_llm::ApiFormat;
use serde_json::{Value, json};

use crate::support::{Ask, Reply, Server, adapter_of, content, failure};

fn added(index: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn delta(kind: &str, index: u64, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": delta})
}

fn completed(output: &[Value]) -> Value {
    json!({"type": "response.completed",
        "response": {"model": "m", "status": "completed", "output": output, "usage": {"input_tokens": 1}}})
}

fn reasoning() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "enc",
        "summary": [{"type": "summary_text", "text": "Hm."}]})
}

fn message() -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Looking.", "annotations": []}]})
}

fn call(arguments: &str) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "lookup",
        "arguments": arguments})
}

/// Returns all events of a reply with reasoning, a text and a call.
fn all() -> Vec<Value> {
    vec![
        json!({"type": "response.created", "response": {"model": "m"}}),
        added(0, &json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        delta("reasoning_summary_text", 0, "Hm."),
        done(0, &reasoning()),
        added(1, &json!({"type": "message", "id": "msg_1", "content": []})),
        delta("output_text", 1, "Look"),
        delta("output_text", 1, "ing."),
        done(1, &message()),
        added(2, &call("")),
        delta("function_call_arguments", 2, "{\"key\":"),
        delta("function_call_arguments", 2, "1}"),
        done(2, &call("{\"key\":1}")),
        completed(&[reasoning(), message(), call("{\"key\":1}")]),
    ]
}

fn is(event: &Value, part: &str) -> bool {
    event["type"].as_str().unwrap().contains(part)
}

async fn play(events: &[Value]) -> (LlmResponse, Ask) {
    let pieces = events.iter().map(|event| format!("data: {event}\n\n"));
    let server = Server::start(vec![Reply::events(pieces)]).await;
    let format = ApiFormat::OpenAiResponses;
    let adapter = adapter_of(&server, format);
    let ask = Ask::default();
    (ask.answer(&adapter).await, ask)
}

/// Plays these events. The reply is the same as that of all events, and the sink
/// receives all of it once.
async fn check(name: &str, events: Vec<Value>) {
    let (whole, _) = play(&all()).await;
    let (response, ask) = play(&events).await;
    assert_eq!(response, whole, "{name}");
    assert_eq!(ask.sink.joined("text "), "Looking.", "{name}");
    let thinking = ask.sink.joined("thinking ") + &ask.sink.joined("thought ");
    assert_eq!(thinking, "Hm.", "{name}");
    let lines = ask.sink.lines();
    let calls: Vec<&String> = lines.iter().filter(|line| line.starts_with("call ")).collect();
    assert_eq!(calls, ["call call_1 lookup {\"key\":1}"], "{name}");
    let starts = lines.iter().filter(|line| line.starts_with("start ")).count();
    assert_eq!(starts, 1, "{name}");
}

fn without(parts: &[&str]) -> Vec<Value> {
    all().into_iter().filter(|event| !parts.iter().any(|part| is(event, part))).collect()
}

#[tokio::test]
async fn a_reply_is_built_from_the_completed_response_if_items_are_missing() {
    check("all events", all()).await;
    check("no ends of items", without(&["item.done"])).await;
    check("no pieces", without(&[".delta"])).await;
    check("no starts", without(&["item.added"])).await;
    check("ends only", without(&[".delta", "item.added"])).await;
    check("the last event only", without(&[".delta", "item."])).await;
    for index in 0..3 {
        let is_missing =
            |event: &Value| is(event, "item.done") && event["output_index"] == json!(index);
        let events = all().into_iter().filter(|event| !is_missing(event)).collect();
        check(&format!("no end of item {index}"), events).await;
    }
    for index in 0..3 {
        let is_missing = |event: &Value| event["output_index"] == json!(index);
        let events = all().into_iter().filter(|event| !is_missing(event)).collect();
        check(&format!("nothing of item {index}"), events).await;
    }
}

#[tokio::test]
async fn the_completed_response_may_lack_the_output() {
    let mut events = all();
    *events.last_mut().unwrap() = completed(&[]);
    check("an empty output", events.clone()).await;

    events.retain(|event| !is(event, "item.done"));
    let (response, ask) = play(&events).await;
    let StepResult::ToolCalls { content, tool_calls, thinking, .. } = response.result else {
        panic!("no calls: {response:?}");
    };
    assert_eq!(content.as_deref(), Some("Looking."));
    assert_eq!(thinking.unwrap().content, "Hm.");
    assert_eq!(tool_calls[0].id.as_str(), "call_1");
    assert_eq!(tool_calls[0].arguments, json!({"key": 1}).into());
    assert_eq!(ask.sink.joined("text "), "Looking.");
}

/// llama.cpp leaves out the index, and SGLang starts at 1.
#[tokio::test]
async fn the_index_of_an_item_may_be_missing_or_start_at_one() {
    let drop_index = |mut events: Vec<Value>| {
        for event in &mut events {
            event.as_object_mut().unwrap().remove("output_index");
        }
        events
    };
    check("no index", drop_index(all())).await;
    check("no index and no starts", drop_index(without(&["item.added"]))).await;
    let (mut ends_last, ends): (Vec<_>, Vec<_>) =
        all().into_iter().partition(|event| !is(event, "item.done"));
    let last = ends_last.pop().unwrap();
    ends_last.extend(ends);
    ends_last.push(last);
    check("no index and all ends at the end", drop_index(ends_last)).await;

    let mut from_one = all();
    for event in &mut from_one {
        if let Some(index) = event["output_index"].as_u64() {
            event["output_index"] = json!(index + 1);
        }
    }
    check("from one", from_one).await;
}

#[tokio::test]
async fn without_its_last_event_a_stream_is_cut() {
    let events = all();
    for end in 0..events.len() {
        let mut part = events[..end].to_vec();
        let (response, _) = play(&part).await;
        assert_eq!(failure(&response).0.code, "provider_stream_cut", "{end} events");
        // The end event of Chat Completions means nothing here.
        part.push(json!({"type": "response.in_progress"}));
        let pieces = part.iter().map(|event| format!("data: {event}\n\n"));
        let pieces = pieces.chain(["data: [DONE]\n\n".to_owned()]);
        let server = Server::start(vec![Reply::events(pieces)]).await;
        let format = ApiFormat::OpenAiResponses;
        let adapter = adapter_of(&server, format);
        let response = Ask::default().answer(&adapter).await;
        assert_eq!(failure(&response).0.code, "provider_stream_cut", "{end} events");
    }
}

#[tokio::test]
async fn a_refusal_that_was_not_streamed_is_delivered_once() {
    let item = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "refusal", "refusal": "I can't do that."}]});
    for events in [
        vec![completed(std::slice::from_ref(&item))],
        vec![delta("refusal", 0, "I can't "), done(0, &item), completed(&[])],
    ] {
        let (response, ask) = play(&events).await;
        assert_eq!(content(&response), "I can't do that.");
        assert_eq!(response.result.stop_reason(), Some(StopReason::Refusal));
        assert_eq!(ask.sink.joined("text "), "I can't do that.");
    }
}

#[tokio::test]
async fn every_error_in_a_stream_is_classified() {
    let table = [
        ("server_error", "provider_unavailable"),
        ("server_is_overloaded", "provider_unavailable"),
        ("vector_store_timeout", "provider_unavailable"),
        ("rate_limit_exceeded", "provider_rate_limited"),
        ("insufficient_quota", "provider_rate_limited"),
        ("invalid_prompt", "provider_rejected"),
        ("image_too_large", "media_unsupported"),
        ("image_content_policy_violation", "provider_rejected"),
        ("unsupported_image_media_type", "media_unsupported"),
        ("context_length_exceeded", "provider_rejected"),
    ];
    for (name, code) in table {
        let events = [
            json!({"type": "error", "code": name, "message": "Why.", "param": null}),
            json!({"type": "error", "error": {"type": "x", "code": name, "message": "Why."}}),
            json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": name, "message": "Why."}}}),
        ];
        for event in events {
            let (response, _) = play(std::slice::from_ref(&event)).await;
            let error = failure(&response).0;
            assert_eq!(error.code, code, "{event}");
            assert_eq!(error.detail.as_deref(), Some("Why."), "{event}");
        }
    }
}
