//! Reports errors on standard error: as a sentence for users, or as one JSON object for programs.

use helix_agents::agent_file;
use helix_agents::error::Error;
use helix_agents::terminal;
use serde_json::{Map, Value, json};

use crate::exit::Exit;

/// Reports an error that ended the command.
pub(crate) fn report(error: &anyhow::Error, json: bool) -> Exit {
    if json {
        terminal::notice(&as_json(error).to_string());
    } else {
        terminal::notice(&format!("helix: {error:#}"));
    }
    Exit::Failed
}

/// Formats an error as `{"error":{code,kind,message,context}}`, with `problems` for an agent file.
pub(crate) fn as_json(error: &anyhow::Error) -> Value {
    let known = error.chain().find_map(|cause| cause.downcast_ref::<Error>());
    let Some(known) = known else {
        return object("internal", "internal", &format!("{error:#}"), &Map::new());
    };
    let mut context: Map<String, Value> =
        known.context().map(|(key, value)| (key.to_owned(), value.into())).collect();
    let causes: Vec<String> = sources(known).collect();
    if !causes.is_empty() {
        context.insert("causes".to_owned(), causes.into());
    }
    let kind = serde_json::to_value(known.kind()).unwrap_or_default();
    let kind = kind.as_str().unwrap_or_default();
    let mut object = object(known.code().as_str(), kind, known.message(), &context);
    let error = object.get_mut("error").and_then(Value::as_object_mut);
    if let (Some(problems), Some(error)) = (agent_file::problems(known), error) {
        error.insert("problems".to_owned(), problems.into());
    }
    object
}

/// Formats an error for an invalid command line.
pub(crate) fn usage(message: &str) -> Value {
    object("usage", "invalid_input", message.trim_end(), &Map::new())
}

fn object(code: &str, kind: &str, message: &str, context: &Map<String, Value>) -> Value {
    json!({ "error": { "code": code, "kind": kind, "message": message, "context": context } })
}

fn sources(error: &Error) -> impl Iterator<Item = String> {
    let first = std::error::Error::source(error);
    std::iter::successors(first, |cause| cause.source()).map(ToString::to_string)
}
