//! Schemas in the subset that strict decoding takes.
//!
//! Providers that constrain decoding to a schema want every object closed and every property
//! required, and know few keywords. A schema is put into that form only if everything the form
//! admits fits the original too as far as objects and their properties go: a property may be left
//! out of the original only if it may be `null` there as well. What merely narrows a value further
//! (lengths, unknown formats) is left out; whoever asked checks the result against the original
//! anyway. A schema that cannot be said so is sent as it is, without `strict`.

use serde_json::{Map, Value};

#[cfg(test)]
mod tests;

/// Formats of strings that strict decoding knows.
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// A chain of references longer than this is a circle.
const MOST_REFERENCES: usize = 16;

/// The schema in the strict subset, or `None` if it cannot be said there.
pub(crate) fn strict(schema: &Value) -> Option<Value> {
    let root = schema.as_object()?;
    if root.get("type")? != "object" || root.contains_key("anyOf") || root.contains_key("oneOf") {
        return None;
    }
    Converter { root: schema }.schema(schema).map(Value::Object)
}

struct Converter<'a> {
    root: &'a Value,
}

impl Converter<'_> {
    fn schema(&self, schema: &Value) -> Option<Map<String, Value>> {
        let members = schema.as_object()?;
        let mut out = Map::new();
        if let Some(reference) = members.get("$ref") {
            self.resolve(schema)?;
            // Nothing may stand beside a reference, not even a description.
            let is_alone = members.keys().all(|it| it == "$ref" || is_annotation(it));
            out.insert("$ref".to_owned(), reference.clone());
            return is_alone.then_some(out);
        }
        let says_something = ["type", "anyOf", "oneOf", "enum", "const"];
        if !says_something.iter().any(|it| members.contains_key(*it)) {
            return None;
        }
        for (key, value) in members {
            self.member(key, value, members, &mut out)?;
        }
        if allows_type(members, "object") {
            let names = out.get("properties").and_then(Value::as_object);
            let names = names.into_iter().flat_map(Map::keys).cloned();
            let required = names.map(Value::String).collect();
            out.entry("properties").or_insert_with(|| Map::new().into());
            out.insert("required".to_owned(), Value::Array(required));
            out.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        if allows_type(members, "array") && !members.contains_key("items") {
            return None;
        }
        Some(out)
    }

    /// Converts one keyword. `None` means that it cannot be said.
    fn member(
        &self,
        key: &str,
        value: &Value,
        siblings: &Map<String, Value>,
        out: &mut Map<String, Value>,
    ) -> Option<()> {
        let converted = match key {
            "type" | "description" | "enum" | "const" | "pattern" | "multipleOf" | "minimum"
            | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "minItems" | "maxItems" => {
                value.clone()
            }
            "format" if FORMATS.iter().any(|it| value == it) => value.clone(),
            "items" => Value::Object(self.schema(value)?),
            // Of the alternatives of `oneOf`, more than one may fit now; it is checked later.
            "anyOf" | "oneOf" => {
                let choices = value.as_array()?.iter().map(|it| self.schema(it));
                let choices: Option<Vec<_>> = choices.map(|it| it.map(Value::Object)).collect();
                out.insert("anyOf".to_owned(), Value::Array(choices?));
                return Some(());
            }
            "$defs" | "definitions" => self.all(value, |_, _| true)?,
            "properties" => self.all(value, |name, schema| {
                is_required(siblings, name) || self.may_be_null(schema, 0)
            })?,
            "additionalProperties" if *value == Value::Bool(false) => return Some(()),
            // Told anew, for all properties.
            "required" => return Some(()),
            "format" | "minLength" | "maxLength" | "uniqueItems" => return Some(()),
            _ if is_annotation(key) => return Some(()),
            _ => return None,
        };
        out.insert(key.to_owned(), converted);
        Some(())
    }

    /// Converts every schema of a table, if all of them pass.
    fn all(&self, table: &Value, passes: impl Fn(&str, &Value) -> bool) -> Option<Value> {
        let mut out = Map::new();
        for (name, schema) in table.as_object()? {
            if !passes(name, schema) {
                return None;
            }
            out.insert(name.clone(), Value::Object(self.schema(schema)?));
        }
        Some(Value::Object(out))
    }

    fn may_be_null(&self, schema: &Value, depth: usize) -> bool {
        if depth > MOST_REFERENCES {
            return false;
        }
        if schema.get("$ref").is_some() {
            let target = self.resolve(schema);
            return target.is_some_and(|it| self.may_be_null(it, depth + 1));
        }
        let is_null = match schema.get("type") {
            Some(Value::String(name)) => name == "null",
            Some(Value::Array(names)) => names.iter().any(|it| it == "null"),
            _ => false,
        };
        let choices = schema.get("anyOf").or_else(|| schema.get("oneOf"));
        let choices = choices.and_then(Value::as_array).into_iter().flatten();
        is_null || choices.into_iter().any(|it| self.may_be_null(it, depth + 1))
    }

    /// What a local reference stands for.
    fn resolve(&self, schema: &Value) -> Option<&Value> {
        let reference = schema.get("$ref")?.as_str()?;
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

/// Keywords that say nothing about values.
fn is_annotation(key: &str) -> bool {
    matches!(
        key,
        "$schema"
            | "$id"
            | "$comment"
            | "title"
            | "description"
            | "default"
            | "examples"
            | "deprecated"
            | "readOnly"
            | "writeOnly"
    )
}

fn is_required(schema: &Map<String, Value>, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|it| it.iter().any(|it| it == name))
}

fn allows_type(schema: &Map<String, Value>, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == name,
        Some(Value::Array(names)) => names.iter().any(|it| it == name),
        _ => false,
    }
}
