//! How errors are told: a sentence for people, or one JSON object for programs. Always on standard
//! error.

use helix_agents::error::Error;
use serde_json::{Map, Value, json};

use crate::agent_file;
use crate::exit::Exit;
use crate::screen;

/// Tells of an error that ended the command.
pub(crate) fn report(error: &anyhow::Error, json: bool) -> Exit {
    if json {
        screen::notice(&as_json(error).to_string());
    } else {
        screen::notice(&format!("helix: {error:#}"));
    }
    Exit::Failed
}

/// `{"error":{code,kind,message,context}}`, and of an agent file its `problems` one by one.
pub(crate) fn as_json(error: &anyhow::Error) -> Value {
    let ours = error.chain().find_map(|cause| cause.downcast_ref::<Error>());
    let Some(ours) = ours else {
        return object("internal", "internal", &format!("{error:#}"), &Map::new());
    };
    let mut context: Map<String, Value> =
        ours.context().map(|(key, value)| (key.to_owned(), value.into())).collect();
    let causes: Vec<String> = sources(ours).collect();
    if !causes.is_empty() {
        context.insert("causes".to_owned(), causes.into());
    }
    let kind = serde_json::to_value(ours.kind()).unwrap_or_default();
    let kind = kind.as_str().unwrap_or_default();
    let mut told = object(ours.code().as_str(), kind, ours.message(), &context);
    let error = told.get_mut("error").and_then(Value::as_object_mut);
    if let (Some(problems), Some(error)) = (agent_file::problems(ours), error) {
        error.insert("problems".to_owned(), problems.into());
    }
    told
}

/// The same for a command line that makes no sense.
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
