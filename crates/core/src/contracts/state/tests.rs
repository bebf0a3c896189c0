//! Tests of merging the patches of concurrent tools.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Patch;

fn merged(base: &Value, sides: &[Value]) -> Value {
    merged_if(base, sides, |_| true)
}

fn merged_if(base: &Value, sides: &[Value], fits: impl Fn(&Value) -> bool) -> Value {
    let patches: Vec<_> = sides.iter().map(|side| Patch::between(base, side)).collect();
    super::merge_until_fits(base, &patches, fits)
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only read back")]
enum Phase {
    Draft { words: u32 },
    Review { by: String },
    Done { at: u32 },
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read back")]
struct Doc {
    phase: Phase,
    notes: Vec<String>,
}

fn is_doc(state: &Value) -> bool {
    Doc::deserialize(state).is_ok()
}

#[test]
fn for_an_enum_the_later_calls_whole_value_wins_and_other_members_merge() {
    let doc = |phase: Value, notes: &[&str]| json!({"phase": phase, "notes": notes});
    let base = doc(json!({"draft": {"words": 0}}), &["a"]);
    let review = doc(json!({"review": {"by": "me"}}), &["a", "b"]);
    let done = doc(json!({"done": {"at": 1}}), &["a", "c"]);
    assert!(!is_doc(&merged(&base, &[review.clone(), done.clone()])), "member by member");
    let merged = merged_if(&base, &[review, done], is_doc);
    assert_eq!(merged, doc(json!({"done": {"at": 1}}), &["a", "c"]));
}

#[test]
fn if_the_members_do_not_fit_together_the_later_calls_whole_state_wins() {
    let base = json!({"low": 1, "high": 2});
    let ordered = |state: &Value| state["low"].as_i64() < state["high"].as_i64();
    let sides = [json!({"low": 1, "high": 9}), json!({"low": 0, "high": 2})];
    assert_eq!(merged_if(&base, &sides, ordered), json!({"low": 0, "high": 9}), "both");
    let sides = [json!({"low": -9, "high": -8}), json!({"low": 5, "high": 6})];
    assert_eq!(merged_if(&base, &sides, ordered), json!({"low": 5, "high": 6}));
    let sides = [json!({"low": 1, "high": 9}), json!({"low": 3, "high": 2})];
    assert_eq!(merged_if(&base, &sides, ordered), json!({"low": 3, "high": 9}));
    let sides = [json!({"low": -9, "high": -8}), json!({"low": 1, "high": -10})];
    let merged = merged_if(&base, &sides, ordered);
    assert_eq!(merged, json!({"low": -9, "high": -8}), "a patch that never fits is dropped");
}

#[test]
fn a_member_that_the_later_call_removed_stays_removed() {
    let base = json!({"a": 1, "b": 1, "c": 1});
    let fits = |state: &Value| state.as_object().is_some_and(|members| members.len() != 3);
    let sides = [json!({"a": 1, "b": 1, "c": 1, "d": 1}), json!({"b": {"x": 1}, "c": 1})];
    assert_eq!(merged_if(&base, &sides, fits), json!({"b": {"x": 1}, "c": 1}));
}

#[test]
fn pushes_of_two_tools_both_stay_in_call_order() {
    let base = json!({"notes": ["a"]});
    let sides = [json!({"notes": ["a", "b"]}), json!({"notes": ["a", "c", "d"]})];
    assert_eq!(merged(&base, &sides), json!({"notes": ["a", "b", "c", "d"]}));
}

#[test]
fn the_later_call_wins_a_scalar_and_other_keys_stay() {
    let base = json!({"n": 1, "x": {"y": 1}});
    let sides = [json!({"n": 2, "x": {"y": 1, "z": 3}}), json!({"n": 5, "x": {"y": 2}})];
    assert_eq!(merged(&base, &sides), json!({"n": 5, "x": {"y": 2, "z": 3}}));
}

#[test]
fn a_change_below_a_removed_target_is_skipped() {
    let base = json!({"x": {"y": 1}, "k": 0});
    let sides = [json!({"k": 0}), json!({"x": {"y": 2}, "k": 7})];
    assert_eq!(merged(&base, &sides), json!({"k": 7}));
}

#[test]
fn a_whole_new_state_replaces_the_old_one() {
    assert_eq!(merged(&json!(null), &[json!({"a": 1})]), json!({"a": 1}));
    assert_eq!(merged(&json!([1, 2]), &[json!([2])]), json!([2]));
}

#[test]
fn keys_with_slashes_and_tildes_are_escaped() {
    let base = json!({});
    let side = json!({"a/b": 1, "c~d": [1]});
    assert_eq!(merged(&base, std::slice::from_ref(&side)), side);
}

#[test]
fn no_change_is_an_empty_patch() {
    assert!(Patch::between(&json!({"a": [1]}), &json!({"a": [1]})).is_empty());
}
