//! Patches merge as two tools of one step need it.

use serde_json::{Value, json};

use super::Patch;

fn merged(base: &Value, sides: &[Value]) -> Value {
    let patches: Vec<_> = sides.iter().map(|side| Patch::between(base, side)).collect();
    let mut state = base.clone();
    for patch in &patches {
        patch.apply(&mut state);
    }
    state
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
fn a_change_below_a_removed_place_is_left_out() {
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
