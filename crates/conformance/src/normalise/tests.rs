//! Tests of normalisation: it hides timing and crashes, and shows swapped, lost and duplicated data.

use std::sync::Arc;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::event::{
    Event, ModelReply, RecordedEvent, ToolFinish, ToolOutcome, Trigger,
};
use helix_agents_core::id::{CallId, RunId, SessionId};
use helix_agents_core::json::Json;
use helix_agents_core::llm::{LlmResponse, ReplyBuilder};
use helix_agents_core::message::{Media, UserMessage};
use helix_agents_core::step::StopReason;
use helix_agents_core::stream::{Attempt, Chunk, ChunkKind, StoredChunk};
use helix_agents_core::usage::Usage;
use serde_json::json;

use super::{log, stream};

fn recorded(events: Vec<Event>) -> Vec<RecordedEvent> {
    let envelope = |(seq, event)| RecordedEvent {
        seq,
        at: Timestamp(i64::try_from(seq).unwrap_or(0)),
        run: None,
        schema: 1,
        event,
    };
    (1..).zip(events).map(envelope).collect()
}

fn finished(index: usize, result: i64) -> Event {
    let outcome = ToolOutcome::Success(Json::from(json!(result)));
    Event::from(ToolFinish::without_run(CallId::new(1, index), outcome))
}

fn closed() -> Event {
    Event::StepClosed { step: 1 }
}

#[test]
fn results_stand_in_call_order_and_takeovers_leave_no_trace() {
    let takeover = Event::RunStarted {
        run: RunId::from("r2"),
        after: Some(RunId::from("r1")),
        trigger: Trigger::Recover,
        runtime: "local".into(),
        stream_from: 7,
        budget: None,
        clears: None,
        trace: None,
    };
    let plain = log(&recorded(vec![finished(0, 1), finished(1, 2), closed()]));
    let normalised = log(&recorded(vec![finished(1, 2), takeover, finished(0, 1), closed()]));
    assert_eq!(plain, normalised);
}

#[test]
fn a_swapped_lost_or_doubled_result_still_shows() {
    let plain = log(&recorded(vec![finished(0, 1), finished(1, 2), closed()]));
    let swapped = log(&recorded(vec![finished(0, 2), finished(1, 1), closed()]));
    let lost = log(&recorded(vec![finished(0, 1), closed()]));
    let doubled = log(&recorded(vec![finished(0, 1), finished(0, 1), finished(1, 2), closed()]));
    assert!(plain != swapped && plain != lost && plain != doubled);
}

/// Returns a reply whose reasoning has this data.
fn signed(data: &str) -> Event {
    let mut reply = ReplyBuilder::default();
    reply.thinking("Hm.", Some(Json::parse(data).unwrap()));
    let layout = reply.layout("api", "model");
    let result = reply.into_result(Some(StopReason::EndTurn), false);
    let mut response = LlmResponse::new(result, Usage::default());
    response.layout = layout;
    Event::from(ModelReply::from_response(1, response, 0))
}

#[test]
fn data_of_a_provider_that_was_written_anew_shows() {
    let plain = log(&recorded(vec![signed(r#"{"s":"a"}"#)]));
    for changed in [r#"{"s":"b"}"#, r#"{"s": "a"}"#, r#"{"s":"\u0061"}"#] {
        assert_ne!(log(&recorded(vec![signed(changed)])), plain);
    }
}

#[test]
fn a_lost_file_shows() {
    let message = UserMessage::new("Look.");
    let with_file = message.clone().attach(Media::from_bytes("image/png", b"a"));
    let said = |message| log(&recorded(vec![Event::UserMessages { messages: vec![message] }]));
    assert_ne!(said(message), said(with_file));
    let outcome = ToolOutcome::Success(Json::from(json!("drawn")));
    let mut finish = ToolFinish::without_run(CallId::new(1, 0), outcome);
    let plain = log(&recorded(vec![finish.clone().into(), closed()]));
    finish.attachments.push(Media::from_bytes("image/png", b"a"));
    assert_ne!(log(&recorded(vec![finish.into(), closed()])), plain);
}

fn chunks(kinds: Vec<(Option<u64>, ChunkKind)>) -> Vec<StoredChunk> {
    let stored = |(seq, (attempt, kind)): (u64, (Option<u64>, ChunkKind))| StoredChunk {
        seq,
        attempt: attempt.map(Attempt),
        chunk: Arc::new(Chunk {
            agent: "a".into(),
            session: SessionId::from("s"),
            run: RunId::from("r"),
            step: 1,
            at: Timestamp(0),
            kind,
        }),
    };
    (1..).zip(kinds).map(stored).collect()
}

fn text(delta: &str) -> ChunkKind {
    ChunkKind::TextDelta { delta: delta.to_owned() }
}

#[test]
fn deltas_are_joined_and_discarded_attempts_are_gone() {
    let plain = stream(&chunks(vec![(Some(1), text("hello"))]));
    let normalised = stream(&chunks(vec![
        (Some(1), text("he")),
        (None, ChunkKind::StepDiscarded { attempts: vec![Attempt(1)] }),
        (Some(2), text("hel")),
        (Some(2), text("lo")),
    ]));
    assert_eq!(plain, normalised);
}

#[test]
fn doubled_lost_or_swapped_text_still_shows() {
    let plain = stream(&chunks(vec![(Some(1), text("ab")), (Some(1), text("c"))]));
    let doubled = stream(&chunks(vec![(Some(1), text("ab")), (Some(1), text("ab"))]));
    let lost = stream(&chunks(vec![(Some(1), text("ab"))]));
    let swapped = stream(&chunks(vec![(Some(1), text("c")), (Some(1), text("ab"))]));
    assert!(plain != doubled && plain != lost && plain != swapped);
}
