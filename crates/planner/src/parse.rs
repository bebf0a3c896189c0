//! Parsing of a model's text as a plan.

use serde_json::{Deserializer, Value};

use crate::plan::Problem;
use crate::watch::Watch;

/// Parses the first JSON object of a text, with or without code fences or other text around it. A
/// text without an object is not a plan, which means that the agent answers. `cut_off` is `true` if
/// the model was stopped at the token limit. Then only a plan that certainly says `response` is
/// accepted.
pub(crate) fn parse(text: &str, cut_off: bool) -> Result<Value, Problem> {
    if Watch::default().feed(text) {
        return Ok(serde_json::json!({ "next_action": "response" }));
    }
    if cut_off {
        return Err(Problem::CutOff);
    }
    let Some((before, _)) = text.split_once('{') else { return Ok(Value::Null) };
    let object = text.get(before.len()..).unwrap_or_default();
    match Deserializer::from_str(object).into_iter().next() {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) if error.is_eof() => Err(Problem::CutOff),
        _ => Err(Problem::Malformed),
    }
}

#[cfg(test)]
mod tests;
