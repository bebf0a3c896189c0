//! The schemas of OpenAI's requests.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Value, json};

/// The file with the schemas, below the folder of the cases.
const FILE: &str = "schemas/openai-requests.json";

/// Members that a definition requires although the server does not, as recorded requests show.
const OPTIONAL: [(&str, &str); 1] = [("OutputTextContent", "logprobs")];

/// The compiled schemas by API. They are large, so each is compiled once.
pub(crate) struct Schemas(Vec<(&'static str, Validator)>);

impl Schemas {
    /// Loads the schemas in a folder. Returns `None` if it has none.
    pub(crate) fn load(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let mut document: Value = serde_json::from_slice(&std::fs::read(&path)?)
            .with_context(|| path.display().to_string())?;
        for (definition, member) in OPTIONAL {
            let required = document.pointer_mut(&format!("/$defs/{definition}/required"));
            if let Some(required) = required.and_then(Value::as_array_mut) {
                required.retain(|name| name != member);
            }
        }
        let definitions = document.get("$defs").context("the schemas have no definitions")?;
        let compile = |api, name: &str| {
            let schema = json!({"$ref": format!("#/$defs/{name}"), "$defs": definitions});
            // Only this version of JSON Schema has the recursive references of the document.
            let validator = jsonschema::draft201909::new(&schema);
            let validator = validator.map_err(|error| anyhow!("the schema {name}: {error}"))?;
            anyhow::Ok((api, validator))
        };
        Ok(Some(Self(vec![
            compile("chat", "CreateChatCompletionRequest")?,
            compile("responses", "CreateResponse")?,
        ])))
    }

    /// Returns the differences between a request and the schema of its API, or `None` if the API has no schema.
    pub(crate) fn differences(&self, api: &str, body: &Value) -> Option<Vec<String>> {
        let (_, validator) = self.0.iter().find(|(name, _)| *name == api)?;
        let errors = validator.iter_errors(body);
        Some(errors.map(|error| describe(&error)).collect())
    }
}

/// Describes an error without the request. Of several alternatives, the one that fits best is described.
fn describe(error: &ValidationError<'_>) -> String {
    let mut deepest = error;
    while let ValidationErrorKind::AnyOf { context } = deepest.kind() {
        let errors = context.iter().filter_map(|errors| errors.first());
        let Some(best) = errors.max_by_key(|error| error.instance_path().as_str().len()) else {
            break;
        };
        deepest = best;
    }
    format!("{}: {}", deepest.instance_path(), deepest.masked())
}
