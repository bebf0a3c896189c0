//! The tool definitions that models see.

use helix_agents::tool;
use helix_agents_core::schema::Schema;
use helix_agents_core::tool::{NoInput, Tool, ToolContext, ToolError, ToolFunction};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize, JsonSchema)]
struct Query {
    /// The text to search for.
    text: String,
    limit: Option<u32>,
}

/// Search the product catalogue
/// by name.
///
/// Use it before answering.
#[tool]
async fn search(input: Query, cx: &ToolContext) -> Result<Vec<String>, ToolError> {
    cx.progress("searching", None);
    let limit = input.limit.unwrap_or(1);
    Ok((0..limit).map(|_| input.text.clone()).collect())
}

/// Documented for developers.
#[tool(
    crate = helix_agents_core,
    name = "companion-list",
    description = "  Lists what else could be bought.  ",
)]
async fn list_companions() -> Result<(), ToolError> {
    Ok(())
}

/// Is named like a keyword.
#[tool(crate = ::helix_agents_core)]
async fn r#match(_input: Query) -> Result<(), ToolError> {
    Ok(())
}

fn input_schema<T: ToolFunction>(_tool: T) -> Value {
    let schema = Schema::of::<T::Input>();
    schema.map_or(Value::Null, |schema| schema.value().clone())
}

fn described<T: ToolFunction>(_tool: T) -> (&'static str, &'static str) {
    (T::NAME, T::DESCRIPTION)
}

#[test]
fn name_and_description_are_those_of_the_function() {
    assert_eq!(
        described(search),
        ("search", "Search the product catalogue by name.\n\nUse it before answering.")
    );
}

#[test]
fn name_and_description_can_be_given() {
    assert_eq!(described(list_companions), ("companion-list", "Lists what else could be bought."));
}

#[test]
fn a_raw_name_loses_its_prefix() {
    assert_eq!(described(r#match).0, "match");
}

#[test]
fn the_schema_is_that_of_the_input() {
    assert_eq!(
        input_schema(search),
        json!({
            "type": "object",
            "properties": {
                "text": { "type": "string", "description": "The text to search for." },
                "limit": { "type": ["integer", "null"], "format": "uint32", "minimum": 0 },
            },
            "required": ["text"],
        })
    );
}

#[test]
fn a_tool_without_input_takes_any_object() {
    assert_eq!(input_schema(list_companions), json!({ "type": "object" }));
    let schema = Schema::of::<NoInput>().unwrap();
    for value in [json!({}), json!({ "reason": "models are generous" })] {
        assert_eq!(schema.validate(&value), Ok(()));
        assert!(serde_json::from_value::<NoInput>(value).is_ok());
    }
    assert!(schema.validate(&json!("nothing")).is_err());
}

#[test]
fn the_erased_tool_has_the_name() {
    assert_eq!(Tool::from(search).name(), "search");
    assert_eq!(search.into_tool().strict().name(), "search");
}
