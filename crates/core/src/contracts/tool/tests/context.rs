//! Tests of the context of one attempt at a call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::error::ErrorCode;
use crate::stream::ChunkKind;
use crate::tool::{ToolContext, ToolContextConfig, ToolStream};

#[derive(Debug, Serialize, Deserialize)]
struct Notes {
    notes: Vec<String>,
}

#[derive(Default)]
struct Seen(Mutex<Vec<ChunkKind>>);

impl ToolStream for Seen {
    fn show(&self, kind: ChunkKind) {
        self.0.lock().unwrap().push(kind);
    }
}

fn parts() -> ToolContextConfig {
    ToolContextConfig {
        agent: "a".into(),
        session: "s".into(),
        run: "r1".into(),
        fencing_token: 7,
        step: 1,
        call: "1.0".into(),
        tool: "note".into(),
        arguments: r#"{"x":1}"#.to_owned(),
        attempt: 1,
        timeout: Some(Duration::from_secs(5)),
        cancel: CancellationToken::new(),
        state: Arc::new(json!({"notes": ["a"]})),
        stream: Arc::new(Seen::default()),
        trace: None,
    }
}

fn key(change: impl FnOnce(&mut ToolContextConfig)) -> String {
    let mut parts = parts();
    change(&mut parts);
    ToolContext::new(parts).idempotency_key()
}

#[test]
fn the_idempotency_key_is_the_same_for_every_attempt_in_every_run() {
    let first = key(|_| {});
    assert_eq!(key(|parts| parts.attempt = 7), first);
    assert_eq!(key(|parts| parts.run = "r2".into()), first);
    assert_eq!(key(|parts| parts.state = Arc::new(json!(null))), first);
    assert_eq!(key(|parts| parts.agent = "renamed".into()), first);
    assert_eq!(first, "s/1.0/note/5041bf1f713df204784353e82f6a4a53", "for good: services keep it");
}

#[test]
fn the_idempotency_key_differs_for_every_other_call() {
    let keys = [
        key(|_| {}),
        key(|parts| parts.call = "1.1".into()),
        key(|parts| parts.arguments = r#"{"x":2}"#.to_owned()),
        key(|parts| parts.tool = "other".into()),
        key(|parts| parts.session = "t".into()),
    ];
    let unique: std::collections::BTreeSet<_> = keys.iter().collect();
    assert_eq!(unique.len(), keys.len(), "{keys:?}");
}

#[test]
fn state_changes_are_seen_by_the_call_itself_and_reported_as_a_patch() {
    let cx = ToolContext::new(parts());
    cx.update_state(|state: &mut Notes| state.notes.push("b".to_owned())).unwrap();
    cx.clone().update_state(|state: &mut Notes| state.notes.push("c".to_owned())).unwrap();
    assert_eq!(cx.state::<Notes>().unwrap().notes, ["a", "b", "c"]);
    let patch = serde_json::to_value(cx.effects().state_patch).unwrap();
    let expected = json!([
        {"op": "add", "path": "/notes/-", "value": "b"},
        {"op": "add", "path": "/notes/-", "value": "c"},
    ]);
    assert_eq!(patch, expected, "appends, so that parallel tools merge");
}

#[test]
fn a_state_of_another_type_is_an_error_and_changes_nothing() {
    let cx = ToolContext::new(parts());
    assert!(cx.state::<u8>().is_err());
    let error = cx.update_state(|_: &mut u8| {}).unwrap_err();
    assert!(!error.is_retryable());
    assert!(cx.effects().state_patch.is_empty());
}

#[test]
fn a_state_too_deep_for_the_log_is_refused_and_changes_nothing() {
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let cx = ToolContext::new(parts());
    let error = cx.update_state(|state: &mut serde_json::Value| *state = deep).unwrap_err();
    assert!(error.message().contains("nested too deeply"), "{error}");
    assert!(cx.effects().state_patch.is_empty());
}

#[derive(Default, serde::Serialize, serde::Deserialize)]
struct Score {
    average: f64,
}

#[test]
fn a_state_that_does_not_read_back_is_refused_and_changes_nothing() {
    let state = Arc::new(json!({"average": 1.5}));
    let cx = ToolContext::new(ToolContextConfig { state, ..parts() });
    for bad in [f64::NAN, f64::INFINITY] {
        let error = cx.update_state(|score: &mut Score| score.average = bad).unwrap_err();
        assert_eq!(error.code(), ErrorCode::StateInvalid);
        assert!(error.message().contains("cannot be deserialized as `"), "{error}");
    }
    assert!(cx.effects().state_patch.is_empty());
    cx.update_state(|score: &mut Score| score.average = 0.1 + 0.2).unwrap();
    assert_eq!(cx.state::<Score>().unwrap().average, 0.1 + 0.2);
}

#[test]
fn usage_is_collected_and_non_finite_amounts_are_dropped() {
    let cx = ToolContext::new(parts());
    cx.record_usage("pages", 2.0);
    cx.record_usage("pages", f64::NAN);
    cx.record_usage("pages", f64::INFINITY);
    cx.record_usage("cents", 0.5);
    assert_eq!(cx.effects().usage, [("pages".to_owned(), 2.0), ("cents".to_owned(), 0.5)]);
}

#[test]
fn progress_and_custom_chunks_are_written() {
    let seen = Arc::new(Seen::default());
    let cx = ToolContext::new(ToolContextConfig { stream: Arc::<Seen>::clone(&seen), ..parts() });
    cx.progress("half", Some(0.5));
    cx.emit("found", &json!({"id": 1})).unwrap();
    let expected = [
        ChunkKind::ToolProgress {
            call: "1.0".into(),
            message: "half".to_owned(),
            fraction: Some(0.5),
        },
        ChunkKind::Custom { name: "found".to_owned(), data: r#"{"id":1}"#.to_owned() },
    ];
    assert_eq!(*seen.0.lock().unwrap(), expected);
}

#[test]
fn a_context_knows_its_call_and_cancellation() {
    let token = CancellationToken::new();
    let cx = ToolContext::new(ToolContextConfig { cancel: token.clone(), ..parts() });
    assert_eq!((cx.agent(), cx.session().as_str(), cx.run().as_str()), ("a", "s", "r1"));
    assert_eq!((cx.step(), cx.call().as_str(), cx.attempt()), (1, "1.0", 1));
    assert_eq!(cx.timeout(), Some(Duration::from_secs(5)));
    assert!(!cx.cancellation().is_cancelled());
    token.cancel();
    assert!(cx.cancellation().is_cancelled());
}
