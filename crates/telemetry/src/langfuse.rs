//! The attributes that [Langfuse](https://langfuse.com) reads.

use helix_agents_core::session::Session;
use serde_json::{Map, Value as Json};

use crate::conventions as names;
use crate::span::{Span, Value};

/// The settings of the preset.
#[derive(Debug, Clone, Default)]
pub(crate) struct Langfuse {
    pub(crate) environment: Option<String>,
    pub(crate) release: Option<String>,
}

/// Adds the attributes to a span. Each span has the fields of its trace, because Langfuse takes them from any span.
pub(crate) fn decorate(span: &mut Span, session: &Session, settings: &Langfuse) {
    let operation = span.text(names::OPERATION).unwrap_or_default().to_owned();
    let kind = match operation.as_str() {
        "invoke_agent" => "agent",
        "chat" => "generation",
        "execute_tool" => "tool",
        _ => "span",
    };
    span.set("langfuse.observation.type", kind);
    span.set("langfuse.session.id", session.root().as_str());
    if session.parent().is_none() {
        span.set("langfuse.trace.name", &**session.agent());
        for (name, value) in session.tags() {
            match name.as_str() {
                "user" => span.set("langfuse.user.id", value.as_str()),
                // The settings below have a value of their own.
                "environment" => {}
                _ => span.set(format!("langfuse.trace.metadata.{name}"), value.as_str()),
            }
        }
    }
    let of_session = session.tags().get("environment").or(settings.environment.as_ref());
    span.set_some("langfuse.environment", of_session.map(String::as_str));
    span.set_some("langfuse.release", settings.release.as_deref());
    if let Some(error) = span.error.clone() {
        let level = match span.text(names::ERROR_TYPE) {
            Some("tool_outcome_unknown" | names::LOST) => "WARNING",
            _ => "ERROR",
        };
        span.set("langfuse.observation.level", level);
        span.set("langfuse.observation.status_message", error);
    }
    if operation == "chat" {
        generation(span);
    }
    for (from, to) in [
        (names::INPUT_MESSAGES, "langfuse.observation.input"),
        (names::TOOL_ARGUMENTS, "langfuse.observation.input"),
        (names::OUTPUT_MESSAGES, "langfuse.observation.output"),
        (names::TOOL_RESULT, "langfuse.observation.output"),
    ] {
        if let Some(value) = span.text(from).map(str::to_owned) {
            span.set(to, value);
        }
    }
}

/// Adds the model, and usage whose parts do not overlap: Langfuse adds them up.
fn generation(span: &mut Span) {
    if let Some(model) = span
        .text(names::RESPONSE_MODEL)
        .or_else(|| span.text(names::REQUEST_MODEL))
        .map(str::to_owned)
    {
        span.set("langfuse.observation.model.name", model);
    }
    let [input, output, cached, reasoning] = [
        names::INPUT_TOKENS,
        names::OUTPUT_TOKENS,
        names::CACHE_READ_TOKENS,
        names::REASONING_TOKENS,
    ]
    .map(|name| number(span, name));
    if input + output > 0 {
        let parts = [
            ("input", input - cached.min(input)),
            ("input_cached_tokens", cached),
            ("output", output - reasoning.min(output)),
            ("output_reasoning_tokens", reasoning),
        ];
        let used = parts.into_iter().filter(|(_, tokens)| *tokens > 0);
        let details: Map<_, _> =
            used.map(|(name, tokens)| (name.to_owned(), Json::from(tokens))).collect();
        span.set("langfuse.observation.usage_details", Json::Object(details).to_string());
    }
    if let Some(Value::Float(cost)) = span.attribute(names::COST) {
        let details = serde_json::json!({ "total": cost }).to_string();
        span.set("langfuse.observation.cost_details", details);
    }
}

fn number(span: &Span, name: &str) -> i64 {
    match span.attribute(name) {
        Some(Value::Int(number)) => *number,
        _ => 0,
    }
}
