//! Tests of batches and their division.

use super::{Batch, Origin, target};
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
    let response = LlmResponse::new(result, usage);
    let mut reply = ModelReply::from_response(1, response, 0);
    reply.raw_stop_reason = Some("x".repeat(bytes));
    Event::from(reply)
}

fn batch(events: &[Event]) -> Batch {
    let mut batch = Batch::default();
    for event in events {
        // In these tests, closed steps and results without an attempt are decisions.
        let is_decision = match event {
            Event::ToolFinished(finish) => finish.attempts == 0,
            event => matches!(event, Event::StepClosed { .. }),
        };
        let origin = if is_decision { Origin::Decision } else { Origin::Fact };
        batch.push(event, origin).unwrap();
    }
    batch
}

/// Returns the names of the events of each batch, after checking that the body equals the output of
/// `encode`.
fn batch_names(events: &[Event]) -> Vec<Vec<&'static str>> {
    let batches = batch(events).divide(LIMIT);
    let all: Vec<_> = batches.iter().flat_map(|batch| batch.events().to_vec()).collect();
    assert_eq!(all, events, "the batches contain all events in order");
    let names = |mut batch: Batch| {
        let body = encode(batch.events()).unwrap();
        assert_eq!(batch.bytes(), body.len());
        assert_eq!(batch.take_body(), body);
        batch.events().iter().map(Event::name).collect()
    };
    batches.into_iter().map(names).collect()
}

#[test]
fn a_body_equals_the_output_of_encode() {
    let events = [replied(10), used(0), finished(0, 3)];
    let mut whole = batch(&events);
    whole.push(&changed(), Origin::Fact).unwrap();
    whole.pop();
    assert_eq!(whole.bytes(), encode(&events).unwrap().len());
    assert_eq!(whole.take_body(), encode(&events).unwrap());
    let mut joined = batch(&events[..1]);
    joined.append(batch(&events[1..]));
    joined.push(&changed(), Origin::Fact).unwrap();
    joined.pop();
    assert_eq!(joined.take_body(), encode(&events).unwrap());
    let mut emptied = batch(&events[..1]);
    emptied.pop();
    emptied.push(&events[1], Origin::Fact).unwrap();
    assert_eq!(emptied.take_body(), encode(&events[1..2]).unwrap());
}

#[test]
fn batches_are_as_large_as_the_target_allows() {
    let events: Vec<_> = (0..10).map(|index| finished(index, 900)).collect();
    assert_eq!(target(LIMIT), 2_000);
    assert_eq!(batch_names(&events), vec![vec!["tool_finished"; 2]; 5]);
}

#[test]
fn decisions_stay_with_their_fact() {
    let closed = Event::StepClosed { step: 1 };
    let events = [finished(0, 1_500), used(1), used(1), finished(1, 1_500), closed, changed()];
    let last =
        ["usage_recorded", "usage_recorded", "tool_finished", "step_closed", "state_changed"];
    assert_eq!(batch_names(&events), [vec!["tool_finished"], last.to_vec()]);
    let refused = ToolFinish::without_run(CallId::new(1, 0), ToolOutcome::Acknowledged);
    assert_eq!(
        batch_names(&[replied(1_900), refused.into()]).len(),
        1,
        "a result that was decided stays with the reply"
    );
    let events = [finished(0, 1_900), changed(), replied(10)];
    assert_eq!(
        batch_names(&events).len(),
        1,
        "a state change stays with the events before and after it"
    );
}

#[test]
fn a_unit_over_the_limit_is_divided() {
    let closed = Event::StepClosed { step: 1 };
    let events = [changed(), replied(9_000), finished(0, 9_000), closed];
    let names = batch_names(&events);
    assert_eq!(
        names,
        [vec!["state_changed", "model_replied"], vec!["tool_finished", "step_closed"]]
    );
    let events = [used(0), finished(0, 15_900)];
    assert_eq!(batch_names(&events), [["usage_recorded"], ["tool_finished"]]);
}
