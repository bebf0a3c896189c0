//! Tests of the hook context.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{HookContext, HookDecision, HookScope, log_failure, refused};
use crate::error::ErrorCode;
use crate::tool::ToolError;

#[derive(Serialize, Deserialize)]
struct Count {
    n: u32,
}

fn place() -> HookScope {
    HookScope { agent: "a".into(), session: "s".into(), run: "r1".into(), turn: 2, step: 3 }
}

fn context() -> HookContext {
    HookContext::new(&place(), "llm_call", Arc::new(json!({"n": 1})))
}

#[test]
fn a_context_knows_its_place() {
    let cx = context();
    assert_eq!((&*cx.agent, cx.session.as_str(), cx.run.as_str()), ("a", "s", "r1"));
    assert_eq!((cx.turn, cx.step), (2, 3));
}

#[test]
fn the_key_is_the_same_in_every_run_and_differs_at_every_point() {
    let key = |place: &HookScope, point| {
        HookContext::new(place, point, Arc::new(json!(null))).key().to_owned()
    };
    let here = key(&place(), "llm_call");
    assert_eq!(here, "s/2.3/llm_call");
    assert_eq!(key(&HookScope { run: "r2".into(), ..place() }, "llm_call"), here);
    let others = [
        key(&place(), "tool/3.0"),
        key(&HookScope { step: 4, ..place() }, "llm_call"),
        key(&HookScope { turn: 3, ..place() }, "llm_call"),
        key(&HookScope { session: "t".into(), ..place() }, "llm_call"),
    ];
    assert!(others.iter().all(|other| *other != here), "{others:?}");
}

#[test]
fn state_changes_are_reported_as_a_patch() {
    let cx = context();
    assert!(cx.changes().is_empty());
    cx.update_state(|count: &mut Count| count.n += 1).unwrap();
    cx.update_state(|count: &mut Count| count.n += 1).unwrap();
    assert_eq!(cx.state::<Count>().unwrap().n, 3);
    let patch = serde_json::to_value(cx.changes()).unwrap();
    assert_eq!(patch, json!([{"op": "add", "path": "/n", "value": 3}]));
}

#[test]
fn an_invalid_state_is_an_error_and_changes_nothing() {
    let cx = context();
    assert!(cx.state::<Vec<u8>>().is_err());
    assert!(cx.update_state(|_: &mut Vec<u8>| {}).is_err());
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    assert!(cx.update_state(|state: &mut serde_json::Value| *state = deep).is_err());
    assert!(cx.changes().is_empty());
}

#[test]
fn the_default_is_to_continue_and_a_refusal_is_a_run_error() {
    assert_eq!(HookDecision::<()>::default(), HookDecision::Continue);
    let error = refused("not today");
    assert_eq!(error.code(), ErrorCode::HookRefused);
    assert_eq!(error.message(), "a hook refused the model call");
    assert_eq!(error.detail(), Some("not today"));
    log_failure(&context(), "on_message", Err(ToolError::new("logged, not raised")));
}
