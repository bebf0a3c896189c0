//! The text of a model as a plan.

use serde_json::{Deserializer, Value};

use crate::instant::Watch;
use crate::plan::Problem;

/// Reads the first JSON object of a text, with or without fences or words around it. A text without
/// one is no plan, which means: answer. `cut_off` says that the model was stopped at the token
/// limit; then only a plan that certainly says `response` counts.
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
