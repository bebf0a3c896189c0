//! Changes of an agent's custom state: RFC 6902 patches that merge.
//!
//! Two tools of one step start from the same state and change it side by side. Their patches are
//! applied in call order, so a patch must make sense on a state that another one changed
//! meanwhile: pushes onto an array are recorded as appends and both stay; otherwise the later call
//! wins.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An RFC 6902 patch, of `add` and `remove` operations only.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Patch(Vec<PatchOperation>);

impl Patch {
    /// What makes `after` of `before`.
    #[must_use]
    pub fn between(before: &Value, after: &Value) -> Self {
        let mut operations = Vec::new();
        compare(&mut PointerBuf::new(), before, after, &mut operations);
        Self(operations)
    }

    /// This patch, and then another one.
    #[must_use]
    pub fn then(mut self, next: Self) -> Self {
        self.0.extend(next.0);
        self
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The operations, in order.
    #[must_use]
    pub fn operations(&self) -> &[PatchOperation] {
        &self.0
    }

    /// Applies the patch. An operation whose place is gone, because a patch applied before took it
    /// away, is left out: every patch applies to every state, with one result.
    pub fn apply(&self, state: &mut Value) {
        for operation in &self.0 {
            // The only failure is a missing place, and leaving it out is the rule for that.
            drop(json_patch::patch(state, std::slice::from_ref(operation)));
        }
    }
}

/// The most arrays and objects inside of each other that a state may have. A log cannot be read
/// back beyond 127, the envelope of an event included.
pub const MAX_STATE_DEPTH: usize = 100;

/// Whether a state is nested more deeply than a log can hold.
pub(crate) fn is_too_deep(state: &Value) -> bool {
    fn exceeds(value: &Value, left: usize) -> bool {
        match value {
            Value::Array(items) => left == 0 || items.iter().any(|it| exceeds(it, left - 1)),
            Value::Object(members) => left == 0 || members.values().any(|it| exceeds(it, left - 1)),
            _ => false,
        }
    }
    exceeds(state, MAX_STATE_DEPTH)
}

fn compare(path: &mut PointerBuf, before: &Value, after: &Value, out: &mut Vec<PatchOperation>) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(before), Value::Object(after)) => compare_objects(path, before, after, out),
        (Value::Array(before), Value::Array(after)) if after.starts_with(before) => {
            for value in after.iter().skip(before.len()) {
                let mut end = path.clone();
                end.push_back("-");
                out.push(add(end, value));
            }
        }
        // `add` replaces what is there, and puts it back if another patch removed it.
        _ => out.push(add(path.clone(), after)),
    }
}

fn compare_objects(
    path: &mut PointerBuf,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    out: &mut Vec<PatchOperation>,
) {
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        let mut place = path.clone();
        place.push_back(key.as_str());
        out.push(PatchOperation::Remove(RemoveOperation { path: place }));
    }
    for (key, value) in after {
        path.push_back(key.as_str());
        match before.get(key) {
            Some(old) => compare(path, old, value, out),
            None => out.push(add(path.clone(), value)),
        }
        path.pop_back();
    }
}

fn add(path: PointerBuf, value: &Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path, value: value.clone() })
}

#[cfg(test)]
mod tests;
