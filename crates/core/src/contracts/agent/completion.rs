//! The tools and the part of the prompt that let a model complete a turn with an output.

use std::sync::Arc;

use super::definition::Completion;
use crate::error::Result;
use crate::json::Json;
use crate::llm::LlmConfig;
use crate::schema::Schema;
use crate::tool::{FINISH_TOOL, Tool, ToolSet, ToolSpec};

/// Returns the tools that the model sees, in this order: the user's tools, the tools for children,
/// and `__finish__` if the turn is completed by it.
///
/// # Errors
/// Returns an error if the schema of a tool is not valid.
pub fn build_effective_tools(
    tools: &[Tool],
    children: Vec<ToolSpec>,
    output: Option<&Schema>,
    completion: &Completion,
    llm: &LlmConfig,
) -> Result<ToolSet> {
    let mut specs = Vec::with_capacity(tools.len() + children.len() + 1);
    for tool in tools {
        specs.push(
            ToolSpec::new(
                Arc::clone(&tool.name),
                Arc::clone(&tool.description),
                tool.input()?.json().clone(),
            )
            .strict(tool.strict),
        );
    }
    specs.extend(children);
    if let (Completion::Finish, Some(output)) = (completion, output) {
        specs.push(
            ToolSpec::new(
                FINISH_TOOL,
                "Hands in the final output and completes the task. Call it once, \
                          alone, when the work is done.",
                finish_schema(output),
            )
            .strict(llm.strict_output),
        );
    }
    Ok(ToolSet::new(specs))
}

/// Returns the input schema of `__finish__`. Providers require an object, so another output type is
/// wrapped as a member of one.
fn finish_schema(output: &Schema) -> Json {
    if is_object(output) {
        return output.json().clone();
    }
    let mut inner = output.value().clone();
    let mut outer = serde_json::json!({
        "type": "object",
        "properties": {},
        "required": [WRAPPED],
        "additionalProperties": false,
    });
    // References to definitions start at the root, so the definitions stay there.
    let definitions = inner.as_object_mut().and_then(|members| members.remove("$defs"));
    if let Some(members) = outer.as_object_mut() {
        members.insert("properties".into(), serde_json::json!({ WRAPPED: inner }));
        members.extend(definitions.map(|definitions| ("$defs".to_owned(), definitions)));
    }
    outer.into()
}

/// The member that holds an output that is not an object.
pub(crate) const WRAPPED: &str = "output";

/// Returns the arguments with which a call of `__finish__` hands in this output. `schema` is that of the
/// output type.
#[must_use]
pub fn finish_arguments(schema: &Schema, output: &Json) -> Json {
    if is_object(schema) {
        return output.clone();
    }
    serde_json::json!({ WRAPPED: output.to_value() }).into()
}

/// Returns `true` if the output type is an object, so that `__finish__` takes its members as
/// arguments.
pub(crate) fn is_object(output: &Schema) -> bool {
    output.value().get("type").and_then(|kind| kind.as_str()) == Some("object")
}

/// Returns the prompt section that tells the model how to return the output, or `None` if the agent
/// has no required output.
#[must_use]
pub fn output_requirement(completion: &Completion, has_output: bool) -> Option<String> {
    let how = match completion {
        Completion::Text => return None,
        Completion::FinishTools(_) if !has_output => return None,
        Completion::Native => {
            return Some(
                "## Output Requirement\n\nThe final answer has to be one JSON value that fits \
                 the given schema, without any text around it."
                    .to_owned(),
            );
        }
        Completion::Finish | Completion::FinishTools(_) => tool_names(completion),
    };
    Some(format!(
        "## Output Requirement\n\nThis task ends with structured output. Hand it in by calling \
         {how}: that is the only way to complete the task. An answer given as plain text does \
         not count."
    ))
}

/// Returns the name of the completion tool, or `one of` and all their names.
pub(crate) fn tool_names(completion: &Completion) -> String {
    match completion {
        Completion::FinishTools(names) => match names.as_slice() {
            [name] => format!("the `{name}` tool"),
            names => {
                let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
                format!("one of {}", names.join(", "))
            }
        },
        _ => format!("the `{FINISH_TOOL}` tool"),
    }
}
