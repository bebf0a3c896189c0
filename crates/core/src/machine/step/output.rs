//! Repair of outputs that almost fit their schema.

use serde_json::Value;

use crate::agent::completion::{WRAPPED, is_object};
use crate::schema::Schema;

/// Repairs a model's output so that it fits the schema, if the repair is unambiguous: JSON in code
/// fences, JSON as a string (the whole output or a member), or a single value instead of an array.
///
/// # Errors
/// Returns the schema violations, one sentence each, for a model to read.
pub fn repair_output(output: &Value, schema: &Schema) -> Result<Value, Vec<String>> {
    let Some(inner) = unwrapped(output, schema) else {
        return mended(output, schema);
    };
    // Only one layer is unwrapped: the output may have its own member of that name.
    mended(inner, schema).or_else(|violations| match schema.validate(output) {
        Ok(()) => Ok(output.clone()),
        Err(_) => Err(violations),
    })
}

fn mended(output: &Value, schema: &Schema) -> Result<Value, Vec<String>> {
    let violations = match schema.validate(output) {
        Ok(()) => return Ok(output.clone()),
        Err(violations) => violations,
    };
    let candidates = [
        parsed_text(output),
        parsed_text(output).map(|value| with_members_mended(&value, schema)),
        Some(with_members_mended(output, schema)),
        Some(Value::Array(vec![output.clone()])),
    ];
    candidates
        .into_iter()
        .flatten()
        .find(|candidate| schema.validate(candidate).is_ok())
        .ok_or(violations)
}

/// Returns the output inside the wrapper: `__finish__` takes an output that is not an object as its
/// only argument.
fn unwrapped<'a>(output: &'a Value, schema: &Schema) -> Option<&'a Value> {
    let members = output.as_object().filter(|members| members.len() == 1 && !is_object(schema))?;
    members.get(WRAPPED)
}

/// Returns the JSON in a string, with or without code fences around it.
fn parsed_text(value: &Value) -> Option<Value> {
    let text = value.as_str()?.trim();
    let inner = match text.strip_prefix("```") {
        Some(rest) => {
            let rest = rest.split_once('\n').map_or(rest, |(_language, body)| body);
            rest.rsplit_once("```").map_or(rest, |(body, _)| body)
        }
        None => text,
    };
    serde_json::from_str(inner.trim()).ok()
}

/// Repairs each member that does not fit, independently of the others.
fn with_members_mended(value: &Value, schema: &Schema) -> Value {
    let Value::Object(members) = value else {
        return value.clone();
    };
    let mut mended = value.clone();
    for (name, member) in members {
        let Some(wanted) = schema.value().pointer("/properties").and_then(|all| all.get(name))
        else {
            continue;
        };
        let better = mended_member(member, wanted, schema.value());
        if let (Some(better), Some(members)) = (better, mended.as_object_mut()) {
            members.insert(name.clone(), better);
        }
    }
    mended
}

fn mended_member(member: &Value, wanted: &Value, root: &Value) -> Option<Value> {
    // The schema of a member may refer to definitions of the whole schema.
    let mut own = wanted.as_object()?.clone();
    if let Some(definitions) = root.get("$defs") {
        own.insert("$defs".into(), definitions.clone());
    }
    let schema = Schema::from_value(Value::Object(own)).ok()?;
    if schema.validate(member).is_ok() {
        return None;
    }
    let candidates = [parsed_text(member), Some(Value::Array(vec![member.clone()]))];
    candidates.into_iter().flatten().find(|candidate| schema.validate(candidate).is_ok())
}
