//! Property tests of state patches.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::event::{Event, ToolFinish, ToolOutcome, encode};
use crate::json::MAX_DEPTH;
use crate::state::{Patch, is_too_deep};

/// Generates JSON with few different keys, so that two values have much in common.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_i64).prop_map(Value::from),
        prop::sample::select(vec!["", "a", "-", "/~"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = prop::sample::select(vec!["a", "b", "0", "-", "a/b", "~1", ""]);
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(key, inner, 0..4).prop_map(|members| json!(members)),
        ]
    })
}

fn applied(patch: &Patch, state: &Value) -> Value {
    let mut state = state.clone();
    patch.apply(&mut state);
    state
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_patch_turns_the_first_state_into_the_second(before in value(), after in value()) {
        let patch = Patch::between(&before, &after);
        prop_assert_eq!(applied(&patch, &before), after.clone());
        prop_assert_eq!(patch.is_empty(), before == after);
    }

    #[test]
    fn a_patch_round_trips_through_the_log(before in value(), after in value()) {
        let patch = Patch::between(&before, &after);
        let events = [Event::StateChanged { patch, by: "h".to_owned() }];
        let back: Vec<Event> = serde_json::from_slice(&encode(&events).unwrap()).unwrap();
        prop_assert_eq!(back.as_slice(), events.as_slice());
    }

    #[test]
    fn every_patch_applies_to_every_state(before in value(), after in value(), other in value()) {
        let patch = Patch::between(&before, &after);
        let once = applied(&patch, &other);
        prop_assert_eq!(applied(&patch, &other), once, "the result is always the same");
    }

    #[test]
    fn two_consecutive_patches_combine_into_one(a in value(), b in value(), c in value()) {
        let both = Patch::between(&a, &b).then(Patch::between(&b, &c));
        prop_assert_eq!(applied(&both, &a), c);
    }
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn the_deepest_allowed_state_round_trips_through_the_log() {
    let deepest = json!({"doc": nested(MAX_DEPTH - 1)});
    assert!(!is_too_deep(&deepest));
    let state_patch = Patch::between(&json!({}), &deepest);
    let outcome = ToolOutcome::Acknowledged;
    let finish = ToolFinish { state_patch, ..ToolFinish::without_run("1.0".into(), outcome) };
    let events = [Event::from(finish)];
    let back: Vec<Event> = serde_json::from_slice(&encode(&events).unwrap()).unwrap();
    assert_eq!(back, events);
    assert!(is_too_deep(&json!({"doc": nested(MAX_DEPTH)})));
}
