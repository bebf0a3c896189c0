//! Batches and how they are divided.

use super::{Batch, target};
use crate::event::{Event, ModelReply, ToolFinish, ToolOutcome, encode};
use crate::id::CallId;
use crate::llm::LlmResponse;
use crate::state::Patch;
use crate::testing::text;
use crate::usage::Usage;

const LIMIT: usize = 16_000;

fn finished(index: usize, bytes: usize) -> Event {
    let outcome = ToolOutcome::Success(serde_json::Value::from("x".repeat(bytes)).into());
    let finish = ToolFinish::without_run(CallId::new(1, index), outcome);
    Event::from(ToolFinish { attempts: 1, ..finish })
}

fn used(index: usize) -> Event {
    Event::UsageRecorded {
        source_type: "tool:t".to_owned(),
        source_name: "n".to_owned(),
        amount: 1.0,
        call: Some(CallId::new(1, index)),
        success: true,
    }
}

fn changed() -> Event {
    Event::StateChanged { patch: Patch::default(), by: "hook".to_owned() }
}

fn replied(bytes: usize) -> Event {
    let (usage, result) = (Usage::default(), text("x"));
    let response = LlmResponse { result, usage, model: None, raw_stop_reason: None };
    let mut reply = ModelReply::from_response(1, response, 0);
    reply.raw_stop_reason = Some("x".repeat(bytes));
    Event::from(reply)
}

fn batch(events: &[Event]) -> Batch {
    let mut batch = Batch::default();
    for event in events {
        batch.push(event).unwrap();
    }
    batch
}

/// The names of the events of each part, whose bodies are what `encode` writes.
fn parts(events: &[Event]) -> Vec<Vec<&'static str>> {
    let parts = batch(events).divide(LIMIT);
    let all: Vec<_> = parts.iter().flat_map(|part| part.events().to_vec()).collect();
    assert_eq!(all, events, "all of it, in order");
    let names = |mut part: Batch| {
        let body = encode(part.events()).unwrap();
        assert_eq!(part.bytes(), body.len());
        assert_eq!(part.take_body(), body);
        part.events().iter().map(Event::name).collect()
    };
    parts.into_iter().map(names).collect()
}

#[test]
fn a_body_is_what_encode_writes() {
    let events = [replied(10), used(0), finished(0, 3)];
    let mut whole = batch(&events);
    whole.push(&changed()).unwrap();
    whole.pop();
    assert_eq!(whole.bytes(), encode(&events).unwrap().len());
    assert_eq!(whole.take_body(), encode(&events).unwrap());
    let mut joined = batch(&events[..1]);
    joined.append(batch(&events[1..]));
    joined.push(&changed()).unwrap();
    joined.pop();
    assert_eq!(joined.take_body(), encode(&events).unwrap());
    let mut emptied = batch(&events[..1]);
    emptied.pop();
    emptied.push(&events[1]).unwrap();
    assert_eq!(emptied.take_body(), encode(&events[1..2]).unwrap());
}

#[test]
fn parts_are_as_large_as_the_target_allows() {
    let events: Vec<_> = (0..10).map(|index| finished(index, 900)).collect();
    assert_eq!(target(LIMIT), 2_000);
    assert_eq!(parts(&events), vec![vec!["tool_finished"; 2]; 5]);
}

#[test]
fn what_follows_from_a_fact_is_not_parted_from_it() {
    let closed = Event::StepClosed { step: 1 };
    let events = [finished(0, 1_500), used(1), used(1), finished(1, 1_500), closed, changed()];
    let last =
        ["usage_recorded", "usage_recorded", "tool_finished", "step_closed", "state_changed"];
    assert_eq!(parts(&events), [vec!["tool_finished"], last.to_vec()]);
    let refused = ToolFinish::without_run(CallId::new(1, 0), ToolOutcome::Acknowledged);
    assert_eq!(
        parts(&[replied(1_900), refused.into()]).len(),
        1,
        "an answer follows from the reply"
    );
    let events = [finished(0, 1_900), changed(), replied(10)];
    assert_eq!(parts(&events).len(), 1, "a change may be of either, and stays with both");
}

#[test]
fn what_no_append_holds_together_is_parted_anywhere() {
    let closed = Event::StepClosed { step: 1 };
    let events = [changed(), replied(9_000), finished(0, 9_000), closed];
    let names = parts(&events);
    assert_eq!(
        names,
        [vec!["state_changed", "model_replied"], vec!["tool_finished", "step_closed"]]
    );
    let events = [used(0), finished(0, 15_900)];
    assert_eq!(parts(&events), [["usage_recorded"], ["tool_finished"]]);
}
