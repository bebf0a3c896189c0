//! Whether a schema can be worked with: it refers to nothing but itself, not to itself in a
//! circle, is not nested without end, and is not endless once every reference in it is replaced by
//! what it refers to: a value that does not fit is held against each of the parts.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// The deepest nesting of a schema, and the longest chain of references in it.
const MOST_DEPTH: usize = 64;

/// The most schemas in a schema if each reference counts as what it refers to, and the longest way
/// into it.
const MOST_EXPANDED: usize = 10_000;
const MOST_EXPANDED_DEPTH: usize = 256;

/// What holds a schema for the value that the schema around it describes. One that leads back to
/// itself this way says nothing.
pub(super) const SAME_VALUE: [&str; 4] = ["not", "if", "then", "else"];
pub(super) const SAME_VALUE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
pub(super) const SAME_VALUE_NAMED: [&str; 2] = ["dependencies", "dependentSchemas"];

/// What holds values, not schemas.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

/// What holds schemas by names of people's choice, which are no keywords.
const NAMED: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// What is only there to be referred to.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// Other ways to name a schema or to refer to one.
const OTHER_NAMES: [&str; 6] =
    ["$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveRef", "id"];

/// Checks a schema, and says what is wrong with it, or whether it refers to itself: then it is for
/// each value to find out how much work it is to [`weigh`](super::weight::weigh).
pub(super) fn check(schema: &Value) -> Result<bool, String> {
    let mut walk =
        Walk { root: schema, seen: HashMap::new(), sizes: HashMap::new(), returns: false };
    walk.visit(schema, 0)?;
    if walk.size(schema, 0)? > MOST_EXPANDED {
        return Err(format!(
            "its references multiply to more than {MOST_EXPANDED} schemas; refer less often to \
             what refers to other schemas itself"
        ));
    }
    Ok(walk.returns)
}

struct Walk<'a> {
    root: &'a Value,
    /// By address: what is being followed, and what was found to end.
    seen: HashMap<*const Value, Followed>,
    /// By address: how many schemas there are in it, references and all. None as long as they are
    /// being counted.
    sizes: HashMap<*const Value, Option<usize>>,
    /// Whether one leads back into itself.
    returns: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Followed {
    UnderWay,
    Ends,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, schema: &'a Value, depth: usize) -> Result<(), String> {
        if depth > MOST_DEPTH {
            return Err(format!("it is nested more than {MOST_DEPTH} levels deep"));
        }
        match schema {
            Value::Array(items) => items.iter().try_for_each(|it| self.visit(it, depth + 1)),
            Value::Object(members) => {
                self.follow(schema, 0)?;
                if depth > 0
                    && let Some(name) = OTHER_NAMES
                        .iter()
                        .find(|name| members.get(**name).is_some_and(Value::is_string))
                {
                    return Err(format!(
                        "`{name}` in it is not understood; refer to `#/$defs/NAME` instead"
                    ));
                }
                parts(members).try_for_each(|(key, part)| match part {
                    Value::Object(named) if NAMED.contains(&key) => {
                        named.values().try_for_each(|part| self.visit(part, depth + 2))
                    }
                    part => self.visit(part, depth + 1),
                })
            }
            _ => Ok(()),
        }
    }

    /// How many schemas there are in one if each reference counts as what it refers to. Where one
    /// leads back into itself, values decide how often it counts.
    fn size(&mut self, schema: &'a Value, depth: usize) -> Result<usize, String> {
        if depth > MOST_EXPANDED_DEPTH {
            return Err(format!("it refers to itself over more than {MOST_EXPANDED_DEPTH} levels"));
        }
        if let Some(size) = self.sizes.get(&std::ptr::from_ref(schema)) {
            self.returns |= size.is_none();
            return Ok(size.unwrap_or(1));
        }
        let mut size = 1_usize;
        match schema {
            Value::Array(items) => {
                for item in items {
                    size = size.saturating_add(self.size(item, depth + 1)?);
                }
            }
            Value::Object(members) => {
                self.sizes.insert(schema, None);
                if let Some(Value::String(reference)) = members.get("$ref")
                    && let Some(target) = target(self.root, reference)?
                {
                    size = size.saturating_add(self.size(target, depth + 1)?);
                }
                for (key, part) in parts(members).filter(|(key, _)| !DEFINITIONS.contains(key)) {
                    let named = part.as_object().filter(|_| NAMED.contains(&key));
                    let single = named.is_none().then_some(part);
                    for part in named.into_iter().flat_map(Map::values).chain(single) {
                        size = size.saturating_add(self.size(part, depth + 1)?);
                    }
                }
                self.sizes.insert(schema, Some(size));
            }
            _ => size = 0,
        }
        Ok(size)
    }

    /// Follows everything that describes the same value as `schema` does.
    fn follow(&mut self, schema: &'a Value, depth: usize) -> Result<(), String> {
        let Value::Object(members) = schema else { return Ok(()) };
        match self.seen.insert(schema, Followed::UnderWay) {
            Some(Followed::UnderWay) => return Err("a `$ref` in it leads in a circle".to_owned()),
            Some(Followed::Ends) => {}
            None if depth > MOST_DEPTH => {
                return Err(format!("more than {MOST_DEPTH} references in a row"));
            }
            None => {
                if let Some(Value::String(reference)) = members.get("$ref")
                    && let Some(target) = target(self.root, reference)?
                {
                    self.follow(target, depth + 1)?;
                }
                let lists = SAME_VALUE_LISTS.iter().filter_map(|key| members.get(*key)?.as_array());
                let single = SAME_VALUE.iter().filter_map(|key| members.get(*key));
                let named =
                    SAME_VALUE_NAMED.iter().filter_map(|key| members.get(*key)?.as_object());
                for next in single.chain(lists.flatten()).chain(named.flat_map(Map::values)) {
                    self.follow(next, depth + 1)?;
                }
            }
        }
        self.seen.insert(schema, Followed::Ends);
        Ok(())
    }
}

/// What a reference leads to, as far as that is told by a path. Whether the rest exists is found
/// out when the schema is compiled.
pub(super) fn target<'a>(root: &'a Value, reference: &str) -> Result<Option<&'a Value>, String> {
    match reference.strip_prefix('#') {
        Some("") => Ok(Some(root)),
        Some(pointer) if pointer.starts_with('/') && !pointer.contains('%') => {
            Ok(root.pointer(pointer))
        }
        Some(_) => Err(format!("`$ref` to `{reference}` is no path such as `#/$defs/NAME`")),
        None => Err(format!(
            "`$ref` to `{reference}` leads out of it, and nothing is fetched; put that schema \
             under `$defs` and refer to it as `#/$defs/NAME`"
        )),
    }
}

/// The members of a schema that are schemas, or hold some.
pub(super) fn parts(members: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value)> {
    let members = members.iter().map(|(key, part)| (key.as_str(), part));
    members.filter(|(key, _)| !DATA.contains(key))
}

#[cfg(test)]
mod tests;
