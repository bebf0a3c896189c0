//! Conversion of schemas into the subset that strict decoding accepts.
//!
//! Providers that constrain decoding to a schema require every object to be closed, and they know
//! few keywords. A schema is converted only if every object of the converted schema also fits the
//! original, as far as its properties are concerned. Keywords that only narrow a value (lengths,
//! unknown formats) are dropped, because the result is checked against the original later. A schema
//! that cannot be converted is sent unchanged, without `strict`.

use serde_json::{Map, Value};

#[cfg(test)]
mod tests;

/// The string formats that strict decoding knows.
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// A provider's subset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subset {
    /// Every property is required, so an optional property must accept `null` in the original.
    OpenAi,
    /// Properties can be optional. Schemas must not refer to themselves, and numbers, texts and
    /// lists cannot be limited.
    Anthropic,
}

/// The maximum length of a chain of references. A longer one is a cycle.
const MAX_REFERENCES: usize = 16;

/// Returns the schema in the strict subset, or `None` if it cannot be converted.
pub(crate) fn strict(schema: &Value, subset: Subset) -> Option<Value> {
    let root = schema.as_object()?;
    if root.get("type")? != "object" || root.contains_key("anyOf") || root.contains_key("oneOf") {
        return None;
    }
    let converter = Converter { root: schema, subset };
    if subset == Subset::Anthropic && converter.is_recursive(schema, &mut Vec::new()) {
        return None;
    }
    converter.schema(schema).map(Value::Object)
}

struct Converter<'a> {
    root: &'a Value,
    subset: Subset,
}

impl Converter<'_> {
    fn schema(&self, schema: &Value) -> Option<Map<String, Value>> {
        let members = schema.as_object()?;
        let mut out = Map::new();
        if let Some(reference) = members.get("$ref") {
            self.resolve(schema)?;
            // A reference may not have siblings, not even a description.
            let is_alone = members.keys().all(|key| key == "$ref" || is_annotation(key));
            out.insert("$ref".to_owned(), reference.clone());
            return is_alone.then_some(out);
        }
        let constraints = ["type", "anyOf", "oneOf", "enum", "const"];
        if !constraints.iter().any(|key| members.contains_key(*key)) {
            return None;
        }
        for (key, value) in members {
            self.member(key, value, members, &mut out)?;
        }
        if allows_type(members, "object") {
            let names = out.get("properties").and_then(Value::as_object);
            let names = names.into_iter().flat_map(Map::keys);
            let is_listed =
                |name: &str| self.subset == Subset::OpenAi || is_required(members, name);
            let required =
                names.filter(|name| is_listed(name)).cloned().map(Value::String).collect();
            out.entry("properties").or_insert_with(|| Map::new().into());
            out.insert("required".to_owned(), Value::Array(required));
            out.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        if allows_type(members, "array") && !members.contains_key("items") {
            return None;
        }
        Some(out)
    }

    /// Converts one keyword. Returns `None` if it cannot be converted.
    fn member(
        &self,
        key: &str,
        value: &Value,
        siblings: &Map<String, Value>,
        out: &mut Map<String, Value>,
    ) -> Option<()> {
        let is_anthropic = self.subset == Subset::Anthropic;
        let converted = match key {
            "pattern" | "multipleOf" | "minimum" | "maximum" | "exclusiveMinimum"
            | "exclusiveMaximum" | "maxItems"
                if is_anthropic =>
            {
                return Some(());
            }
            "minItems" if is_anthropic && value.as_u64().is_none_or(|least| least > 1) => {
                return Some(());
            }
            "format" if is_anthropic && value == "uri" => value.clone(),
            "type" | "description" | "enum" | "const" | "pattern" | "multipleOf" | "minimum"
            | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "minItems" | "maxItems" => {
                value.clone()
            }
            "format" if FORMATS.iter().any(|format| value == format) => value.clone(),
            "items" => Value::Object(self.schema(value)?),
            // The result uses `anyOf` instead of `oneOf`, so several alternatives may match. The
            // output is checked against the original later.
            "anyOf" | "oneOf" => {
                let choices = value.as_array()?.iter().map(|choice| self.schema(choice));
                let choices: Option<Vec<_>> =
                    choices.map(|choice| choice.map(Value::Object)).collect();
                out.insert("anyOf".to_owned(), Value::Array(choices?));
                return Some(());
            }
            "$defs" | "definitions" => self.all(value, |_, _| true)?,
            "properties" => self.all(value, |name, schema| {
                is_anthropic || is_required(siblings, name) || self.may_be_null(schema, 0)
            })?,
            "additionalProperties" if *value == Value::Bool(false) => return Some(()),
            // Written separately, for all properties.
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

    /// Returns `true` if a schema contains itself. `path` has the references that lead to it.
    fn is_recursive<'s>(&'s self, schema: &'s Value, path: &mut Vec<&'s str>) -> bool {
        let nested = match schema {
            Value::Array(items) => items.iter().any(|item| self.is_recursive(item, path)),
            Value::Object(members) => {
                members.values().any(|member| self.is_recursive(member, path))
            }
            _ => false,
        };
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return nested };
        if nested || path.contains(&reference) || path.len() > MAX_REFERENCES {
            return true;
        }
        let Some(target) = self.resolve(schema) else { return false };
        path.push(reference);
        let found = self.is_recursive(target, path);
        path.pop();
        found
    }

    fn may_be_null(&self, schema: &Value, depth: usize) -> bool {
        if depth > MAX_REFERENCES {
            return false;
        }
        if schema.get("$ref").is_some() {
            let target = self.resolve(schema);
            return target.is_some_and(|target| self.may_be_null(target, depth + 1));
        }
        let is_null = match schema.get("type") {
            Some(Value::String(name)) => name == "null",
            Some(Value::Array(names)) => names.iter().any(|name| name == "null"),
            _ => false,
        };
        let choices = schema.get("anyOf").or_else(|| schema.get("oneOf"));
        let choices = choices.and_then(Value::as_array).into_iter().flatten();
        is_null || choices.into_iter().any(|choice| self.may_be_null(choice, depth + 1))
    }

    /// Returns the target of a local reference.
    fn resolve(&self, schema: &Value) -> Option<&Value> {
        let reference = schema.get("$ref")?.as_str()?;
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

/// Returns `true` for keywords that do not constrain values.
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
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

fn allows_type(schema: &Map<String, Value>, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == name,
        Some(Value::Array(names)) => names.iter().any(|allowed| allowed == name),
        _ => false,
    }
}
