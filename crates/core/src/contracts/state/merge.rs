//! The fallback for state changes of concurrent tools that do not fit together. Usually they are
//! applied in call order, by `machine/session/patches.rs`.

use serde_json::Value;

use super::Patch;

/// Merges the patches of concurrent calls into a state that fits the state type. This is the
/// fallback for patches that, applied in call order as usual, give a state that does not fit.
///
/// The patches are merged in order. If a result does not fit, it is discarded, and the later patch's
/// whole value wins for what it changed: first per member of the state, otherwise for the whole
/// state. A patch that still does not fit is dropped.
pub(crate) fn merge_until_fits<'a>(
    base: &Value,
    patches: impl IntoIterator<Item = &'a Patch>,
    fits: impl Fn(&Value) -> bool,
) -> Value {
    let mut state = base.clone();
    for patch in patches {
        let mut memberwise = state.clone();
        patch.apply(&mut memberwise);
        if fits(&memberwise) {
            state = memberwise;
            continue;
        }
        let mut own = base.clone();
        patch.apply(&mut own);
        let candidates = [with_members_of(&state, base, &own), own];
        state = candidates.into_iter().find(|candidate| fits(candidate)).unwrap_or(state);
    }
    state
}

/// Returns `state` with every member that differs between `before` and `after` replaced by that of
/// `after`.
fn with_members_of(state: &Value, before: &Value, after: &Value) -> Value {
    let (Value::Object(members), Value::Object(before), Value::Object(after)) =
        (state, before, after)
    else {
        return after.clone();
    };
    let mut members = members.clone();
    members.retain(|name, _| after.contains_key(name) || !before.contains_key(name));
    for (name, value) in after.iter().filter(|(name, value)| before.get(*name) != Some(*value)) {
        members.insert(name.clone(), value.clone());
    }
    Value::Object(members)
}
