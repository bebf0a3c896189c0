//! Changes of an agent's custom state as RFC 6902 patches that can be merged.
//!
//! Two tools of one step start from the same state and change it concurrently. Their patches are
//! applied in call order, so a patch must make sense on a state that another patch has changed.
//! Pushes onto an array are recorded as appends, and both are kept; otherwise the later call wins.
//! Merging member by member may produce a value that does not fit the agent's state type (an enum
//! with data is an object with one member, and would get two). Then the later call's whole value
//! wins.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::ErrorCode;
use crate::json::MAX_DEPTH;
use crate::tool::ToolError;

mod merge;

pub(crate) use merge::merge_until_fits;

/// An RFC 6902 patch with `add` and `remove` operations only.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Patch(Vec<PatchOperation>);

impl Patch {
    /// Returns the patch that turns `before` into `after`.
    #[must_use]
    pub fn between(before: &Value, after: &Value) -> Self {
        let mut operations = Vec::new();
        compare(&mut PointerBuf::new(), before, after, &mut operations);
        Self(operations)
    }

    /// Returns this patch followed by `next`.
    #[must_use]
    pub fn then(mut self, next: Self) -> Self {
        self.0.extend(next.0);
        self
    }

    /// Returns `true` if the patch changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the operations in order.
    #[must_use]
    pub fn operations(&self) -> &[PatchOperation] {
        &self.0
    }

    /// Returns the approximate size in bytes.
    pub(crate) fn weight(&self) -> usize {
        let weigh = |operation: &PatchOperation| match operation {
            PatchOperation::Add(add) => add.path.as_str().len() + weight(&add.value),
            operation => operation.path().as_str().len(),
        };
        self.0.iter().map(weigh).sum()
    }

    /// Applies the patch. An operation whose target does not exist is skipped, for example because
    /// another patch removed the target. Applying a patch therefore never fails.
    pub fn apply(&self, state: &mut Value) {
        for operation in &self.0 {
            // The only possible failure is a missing target; such an operation is skipped.
            drop(json_patch::patch(state, std::slice::from_ref(operation)));
        }
    }
}

/// Returns the approximate size of a value in bytes.
pub(crate) fn weight(value: &Value) -> usize {
    let below = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| name.len() + weight(member)).sum()
        }
        _ => 0,
    };
    size_of::<Value>() + below
}

/// Returns `true` if a state is nested more deeply than a log can hold.
pub(crate) fn is_too_deep(state: &Value) -> bool {
    fn exceeds(value: &Value, left: usize) -> bool {
        match value {
            Value::Array(items) => left == 0 || items.iter().any(|item| exceeds(item, left - 1)),
            Value::Object(members) => {
                left == 0 || members.values().any(|member| exceeds(member, left - 1))
            }
            _ => false,
        }
    }
    exceeds(state, MAX_DEPTH)
}

/// Applies a change of a tool or a hook to a state that is read as an `S`. Errors contain no
/// content of the state.
///
/// # Errors
/// Returns [`ErrorCode::StateInvalid`] if the state before does not read as an `S`, or if the state
/// after is not JSON, is nested too deeply, or does not read back.
pub(crate) fn changed<S>(before: &Value, change: impl FnOnce(&mut S)) -> Result<Value, ToolError>
where
    S: DeserializeOwned + Serialize,
{
    let name = std::any::type_name::<S>();
    let invalid = |problem: String| Err(ToolError::new(problem).with_code(ErrorCode::StateInvalid));
    let Ok(mut typed) = S::deserialize(before) else {
        return invalid(format!("the state does not fit `{name}`"));
    };
    change(&mut typed);
    let Ok(after) = serde_json::to_value(&typed) else {
        return invalid(format!("the new state is not JSON: `{name}` cannot be written"));
    };
    if is_too_deep(&after) {
        return invalid(format!(
            "the new state is nested too deeply: {MAX_DEPTH} levels are the limit"
        ));
    }
    if S::deserialize(&after).is_err() {
        return invalid(format!(
            "the new state was rejected, because it cannot be deserialized as `{name}`; for example, \
             NaN and infinity are serialized as null"
        ));
    }
    Ok(after)
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
        // `add` replaces an existing value, and restores one that another patch removed.
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
