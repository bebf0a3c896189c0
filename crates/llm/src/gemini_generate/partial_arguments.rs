//! Arguments that arrive in pieces, each with the path of the value that it extends.

use serde_json::{Map, Value};

/// The maximum index of a list. A larger one would allocate memory that no piece fills.
const MAX_INDEX: usize = 10_000;

/// The maximum depth of a path. Deeper values could exhaust the stack.
const MAX_DEPTH: usize = 64;

/// Adds a piece to the arguments. A piece without a valid path is ignored.
pub(super) fn add(arguments: &mut Value, piece: &Value) {
    let Some(path) = piece.get("jsonPath").and_then(Value::as_str).and_then(parse) else { return };
    let Some(place) = place(arguments, &path) else { return };
    if let Some(Value::String(text)) = piece.get("stringValue") {
        match place {
            Value::String(before) => before.push_str(text),
            other => *other = Value::String(text.clone()),
        }
        return;
    }
    let value = ["numberValue", "boolValue"].into_iter().find_map(|name| piece.get(name));
    *place = value.cloned().unwrap_or_default();
}

#[derive(Debug, PartialEq)]
enum Step<'a> {
    Member(&'a str),
    Index(usize),
}

/// Parses a path such as `$.places[0].name`.
fn parse(path: &str) -> Option<Vec<Step<'_>>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() == MAX_DEPTH {
            return None;
        }
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (name, later) = after.split_at(end);
            steps.push(Step::Member(name));
            rest = later;
        } else {
            let (inner, later) = rest.strip_prefix('[')?.split_once(']')?;
            rest = later;
            match inner.parse() {
                Ok(index) if index <= MAX_INDEX => steps.push(Step::Index(index)),
                Ok(_) => return None,
                Err(_) => steps.push(Step::Member(inner.trim_matches(['\'', '"']))),
            }
        }
    }
    Some(steps)
}

/// Returns the value at a path, which is created if it does not exist.
fn place<'a>(root: &'a mut Value, path: &[Step<'_>]) -> Option<&'a mut Value> {
    let mut place = root;
    for step in path {
        match step {
            Step::Member(name) => {
                if !place.is_object() {
                    *place = Value::Object(Map::new());
                }
                place = place.as_object_mut()?.entry(*name).or_insert(Value::Null);
            }
            Step::Index(index) => {
                if !place.is_array() {
                    *place = Value::Array(Vec::new());
                }
                let list = place.as_array_mut()?;
                // Elements arrive in order.
                if list.len() == *index {
                    list.push(Value::Null);
                }
                place = list.get_mut(*index)?;
            }
        }
    }
    Some(place)
}
