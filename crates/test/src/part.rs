//! The parts of a scripted reply, with the data that a provider needs back.

use helix_agents_core::json::Json;
use helix_agents_core::llm::ReplyBuilder;
use helix_agents_core::message::Arguments;
use helix_agents_core::step::ParsedToolCall;
use serde_json::Value;

/// One part of a reply that is [made of parts](crate::Reply::of_parts).
#[derive(Debug, Clone)]
pub struct Part {
    pub(crate) kind: PartKind,
    data: Option<Json>,
}

#[derive(Debug, Clone)]
pub(crate) enum PartKind {
    Thinking(String),
    Text(String),
    Call { name: String, arguments: Arguments },
    Opaque(Json),
}

impl Part {
    fn new(kind: PartKind) -> Self {
        Self { kind, data: None }
    }

    /// Creates reasoning. The text may be empty, as with encrypted reasoning.
    pub fn thinking(text: impl Into<String>) -> Self {
        Self::new(PartKind::Thinking(text.into()))
    }

    /// Creates text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(PartKind::Text(text.into()))
    }

    /// Creates a tool call.
    #[must_use]
    pub fn call(name: &str, arguments: Value) -> Self {
        Self::new(PartKind::Call { name: name.to_owned(), arguments: arguments.into() })
    }

    /// Creates a part that only the provider reads, such as the result of a tool that it ran.
    pub fn opaque(data: impl Into<Json>) -> Self {
        Self::new(PartKind::Opaque(data.into()))
    }

    /// Adds data that the provider needs back with the part, such as a signature. Has no effect on an opaque part.
    #[must_use]
    pub fn with_data(mut self, data: impl Into<Json>) -> Self {
        self.data = Some(data.into());
        self
    }
}

/// Assembles a reply from its parts. `answers` is the number of answers in the history.
pub(crate) fn assemble(parts: &[Part], answers: usize) -> ReplyBuilder {
    let mut reply = ReplyBuilder::default();
    for Part { kind, data } in parts {
        let data = data.clone();
        match kind {
            PartKind::Thinking(text) => reply.thinking(text, data),
            PartKind::Text(text) => reply.text(text, data),
            PartKind::Call { name, arguments } => {
                let index = reply.calls().len();
                reply.call(parsed_call(answers, index, name, arguments.clone()), data);
            }
            PartKind::Opaque(data) => reply.opaque(data.clone()),
        }
    }
    reply
}

/// Returns a call with the id that derives from its place in the history.
pub(crate) fn parsed_call(
    answers: usize,
    index: usize,
    name: &str,
    arguments: Arguments,
) -> ParsedToolCall {
    let id = format!("script_{answers}_{index}");
    ParsedToolCall::new(id.as_str(), name, arguments)
}
