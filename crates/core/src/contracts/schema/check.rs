//! Checks that a schema is usable: it only refers to itself, has no reference cycle at the same
//! value, is not nested too deeply, and does not grow too large when all references are expanded.
//! The expanded size matters because a value that does not fit is checked against each part.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// The maximum nesting depth of a schema, and the maximum length of a reference chain.
const MAX_DEPTH: usize = 64;

/// The maximum number of schemas after expanding all references, and the maximum length of a path
/// into the schema.
const MAX_EXPANDED: usize = 10_000;
const MAX_EXPANDED_DEPTH: usize = 256;

/// Keywords whose schemas apply to the same value as the enclosing schema. A cycle through them
/// describes nothing.
pub(super) const SAME_VALUE: [&str; 4] = ["not", "if", "then", "else"];
pub(super) const SAME_VALUE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
pub(super) const SAME_VALUE_NAMED: [&str; 2] = ["dependencies", "dependentSchemas"];

/// Keywords that contain values, not schemas.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

/// Keywords that contain schemas by user-defined names.
const NAMED: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// Keywords that contain schemas for reference only.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// Other keywords that name a schema or refer to one.
const OTHER_NAMES: [&str; 6] =
    ["$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveRef", "id"];

/// Checks a schema. Returns a description of the problem, or whether the schema is recursive. For a
/// recursive schema the cost of validation depends on the value, see
/// [`weigh`](super::weight::weigh).
pub(super) fn check(schema: &Value) -> Result<bool, String> {
    let mut walk =
        Walk { root: schema, seen: HashMap::new(), sizes: HashMap::new(), returns: false };
    walk.visit(schema, 0)?;
    if walk.size(schema, 0)? > MAX_EXPANDED {
        return Err(format!(
            "expanding its references gives more than {MAX_EXPANDED} schemas; inline or simplify \
             the definitions that are referenced most and contain references themselves"
        ));
    }
    Ok(walk.returns)
}

struct Walk<'a> {
    root: &'a Value,
    /// The state of each visited schema, by address.
    seen: HashMap<*const Value, Followed>,
    /// The expanded number of schemas in each schema, by address. `None` while it is being
    /// computed.
    sizes: HashMap<*const Value, Option<usize>>,
    /// Whether a schema is recursive.
    returns: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Followed {
    UnderWay,
    Ends,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, schema: &'a Value, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} levels deep"));
        }
        match schema {
            Value::Array(items) => items.iter().try_for_each(|item| self.visit(item, depth + 1)),
            Value::Object(members) => {
                self.follow(schema, 0)?;
                if depth > 0
                    && let Some(name) = OTHER_NAMES
                        .iter()
                        .find(|name| members.get(**name).is_some_and(Value::is_string))
                {
                    return Err(format!(
                        "`{name}` is not supported; refer to `#/$defs/NAME` instead"
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

    /// Returns the number of schemas in `schema` after expanding references. A recursive reference
    /// counts once, because the value determines the depth.
    fn size(&mut self, schema: &'a Value, depth: usize) -> Result<usize, String> {
        if depth > MAX_EXPANDED_DEPTH {
            return Err(format!(
                "it refers to itself through more than {MAX_EXPANDED_DEPTH} levels"
            ));
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

    /// Follows all references and keywords that apply to the same value as `schema`.
    fn follow(&mut self, schema: &'a Value, depth: usize) -> Result<(), String> {
        let Value::Object(members) = schema else { return Ok(()) };
        match self.seen.insert(schema, Followed::UnderWay) {
            Some(Followed::UnderWay) => return Err("a `$ref` in it forms a cycle".to_owned()),
            Some(Followed::Ends) => {}
            None if depth > MAX_DEPTH => {
                return Err(format!("more than {MAX_DEPTH} references in a row"));
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

/// Resolves a reference, as far as its path determines the target. Compiling the schema detects
/// missing targets.
pub(super) fn target<'a>(root: &'a Value, reference: &str) -> Result<Option<&'a Value>, String> {
    match reference.strip_prefix('#') {
        Some("") => Ok(Some(root)),
        Some(pointer) if pointer.starts_with('/') && !pointer.contains('%') => {
            Ok(root.pointer(pointer))
        }
        Some(_) => Err(format!("`$ref` to `{reference}` is not a path such as `#/$defs/NAME`")),
        None => Err(format!(
            "`$ref` to `{reference}` points outside of it, and nothing is fetched; put that schema \
             under `$defs` and refer to it as `#/$defs/NAME`"
        )),
    }
}

/// Returns the members of a schema that are or contain schemas.
pub(super) fn parts(members: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value)> {
    let members = members.iter().map(|(key, part)| (key.as_str(), part));
    members.filter(|(key, _)| !DATA.contains(key))
}

#[cfg(test)]
mod tests;
