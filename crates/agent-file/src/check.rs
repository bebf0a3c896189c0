//! Validates an agent file against its schema and words the problems for users.

use helix_agents_core::error::{Error, ErrorCode, Result};
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use crate::schema::schema;
use crate::similar_name::near;
use crate::source_map::{Problem, SourceMap};

/// Returns every violation of the schema.
///
/// # Errors
/// Returns an error if the schema itself is invalid, which is a bug.
pub(crate) fn problems(document: &Value, source_map: &SourceMap) -> Result<Vec<Problem>> {
    let schema = schema();
    let validator = jsonschema::validator_for(&schema).map_err(|error| {
        Error::new(ErrorCode::Internal, format!("the schema of agent files: {error}"))
    })?;
    let describe = |error: ValidationError<'_>| describe(&error, &schema, source_map);
    Ok(validator.iter_errors(document).flat_map(describe).collect())
}

fn describe(error: &ValidationError<'_>, schema: &Value, source_map: &SourceMap) -> Vec<Problem> {
    let pointer = error.instance_path().to_string();
    let rule = error.schema_path().to_string();
    let rules = rule.rfind('/').and_then(|end| schema.pointer(rule.get(..end)?));
    let key = dotted(&pointer);
    let one = |message: String| vec![source_map.problem(&pointer, message)];
    match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            let unknown = |name: &String| {
                let known =
                    rules.and_then(|rules| rules.get("properties")).and_then(Value::as_object);
                let hint =
                    hint(name, known.into_iter().flat_map(|keys| keys.keys().map(String::as_str)));
                let place = format!("{pointer}/{name}");
                source_map.problem(&place, format!("unknown key `{}`; {hint}", dotted(&place)))
            };
            unexpected.iter().map(unknown).collect()
        }
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            one(format!("`{}` is missing", dotted(&format!("{pointer}/{name}"))))
        }
        Kind::OneOfNotValid { .. } => one(format!("{} is missing", choices(rules, &pointer))),
        Kind::OneOfMultipleValid { .. } => {
            one(format!("only one of {} may be given", choices(rules, &pointer)))
        }
        Kind::Type { kind } => {
            let found = found(error.instance());
            one(format!("`{key}` must be {}, not {found}", expected(kind)))
        }
        Kind::Pattern { .. } => {
            let examples = rules.and_then(|rules| rules.get("examples")).and_then(Value::as_array);
            let examples = examples.into_iter().flatten().filter_map(Value::as_str);
            let examples: Vec<_> = examples.map(|example| format!("`{example}`")).collect();
            one(format!("`{key}` must look like {}", examples.join(" or ")))
        }
        Kind::Minimum { limit } => one(format!("`{key}` must be at least {limit}")),
        Kind::Maximum { limit } => one(format!("`{key}` must be at most {limit}")),
        Kind::MinLength { .. } | Kind::MinItems { .. } => one(format!("`{key}` must not be empty")),
        Kind::MaxLength { limit } => {
            one(format!("`{key}` must not be longer than {limit} characters"))
        }
        Kind::MaxItems { limit } => one(format!("`{key}` must not have more than {limit} items")),
        _ => one(format!("`{key}`: {error}")),
    }
}

/// The hint after an unknown key: the most similar known key, or all known keys.
fn hint<'a>(given: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    if let Some(key) = near(given, known.clone()) {
        return format!("did you mean `{key}`?");
    }
    match known.map(|key| format!("`{key}`")).collect::<Vec<_>>() {
        keys if keys.is_empty() => "no keys are allowed here".to_owned(),
        keys => format!("the known keys are {}", keys.join(", ")),
    }
}

/// The keys of which exactly one is required.
fn choices(rules: Option<&Value>, pointer: &str) -> String {
    let choices = rules.and_then(|rules| rules.get("oneOf")).and_then(Value::as_array);
    let required = choices.into_iter().flatten().filter_map(|choice| choice.pointer("/required/0"));
    let names: Vec<_> = required
        .filter_map(Value::as_str)
        .map(|name| format!("`{}`", dotted(&format!("{pointer}/{name}"))))
        .collect();
    names.join(" or ")
}

/// Converts a JSON pointer to a dotted TOML key.
fn dotted(pointer: &str) -> String {
    let pointer = pointer.trim_start_matches('/').replace('/', ".");
    pointer.replace("~1", "/").replace("~0", "~")
}

fn expected(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => name(*kind).to_owned(),
        TypeKind::Multiple(kinds) => kinds.iter().map(name).collect::<Vec<_>>().join(" or "),
    }
}

fn name(kind: JsonType) -> &'static str {
    match kind {
        JsonType::String => "a string in quotes",
        JsonType::Integer => "an integer",
        JsonType::Number => "a number",
        JsonType::Boolean => "`true` or `false`",
        JsonType::Array => "a list",
        JsonType::Object => "a table",
        JsonType::Null => "nothing",
    }
}

fn found(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "`true` or `false`",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}
