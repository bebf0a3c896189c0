//! Whether an output schema can be worked with: it refers to nothing but itself, not to itself in a
//! circle, and is not nested without end.

use std::collections::HashMap;

use serde_json::Value;

/// The deepest nesting of a schema, and the longest chain of references in it.
const MOST_DEPTH: usize = 64;

/// What holds a schema for the value that the schema around it describes. One that leads back to
/// itself this way says nothing.
const SAME_VALUE: [&str; 4] = ["not", "if", "then", "else"];
const SAME_VALUE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// What holds values, not schemas.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

/// Checks a schema, and says what is wrong with it.
pub(super) fn check(schema: &Value) -> Result<(), String> {
    if !schema.is_object() {
        return Err("it must be a table".to_owned());
    }
    let mut walk = Walk { root: schema, seen: HashMap::new() };
    walk.visit(schema, 0)
}

struct Walk<'a> {
    root: &'a Value,
    /// By address: what is being followed, and what was found to end.
    seen: HashMap<*const Value, Followed>,
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
                let mut parts = members.iter().filter(|(key, _)| !DATA.contains(&key.as_str()));
                parts.try_for_each(|(_, part)| self.visit(part, depth + 1))
            }
            _ => Ok(()),
        }
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
                    && let Some(target) = self.target(reference)?
                {
                    self.follow(target, depth + 1)?;
                }
                let lists = SAME_VALUE_LISTS.iter().filter_map(|key| members.get(*key)?.as_array());
                let single = SAME_VALUE.iter().filter_map(|key| members.get(*key));
                for next in single.chain(lists.flatten()) {
                    self.follow(next, depth + 1)?;
                }
            }
        }
        self.seen.insert(schema, Followed::Ends);
        Ok(())
    }

    /// What a reference leads to, as far as that is told by a path. Whether the rest exists is
    /// found out when the schema is compiled.
    fn target(&self, reference: &str) -> Result<Option<&'a Value>, String> {
        match reference.strip_prefix('#') {
            Some("") => Ok(Some(self.root)),
            Some(pointer) => Ok(self.root.pointer(pointer)),
            None => Err(format!(
                "`$ref` to `{reference}` leads out of it, and nothing is fetched; put that schema \
                 under `$defs` and refer to it as `#/$defs/NAME`"
            )),
        }
    }
}

#[cfg(test)]
mod tests;
