//! The items of a reply, and their conversion into parts.

use helix_agents_core::json::Json;
use helix_agents_core::llm::ReplyBuilder;
use helix_agents_core::message::Arguments;
use helix_agents_core::step::ParsedToolCall;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// A complete item of a reply.
#[derive(Debug)]
pub(super) enum Item {
    /// Reasoning: its summary, and the members that are sent back.
    Reasoning { summary: Vec<String>, members: Map<String, Value> },
    /// A message: its text, its refusal, and the members that are sent back.
    Message { text: String, refusal: String, members: Map<String, Value> },
    /// A call of a function, and the members that are sent back.
    Call { id: String, name: String, arguments: String, members: Map<String, Value> },
    /// An item that only the provider reads, such as the result of a tool that it ran.
    Opaque(Json),
}

impl Item {
    pub(super) fn parse(raw: &RawValue) -> serde_json::Result<Self> {
        let mut members: Map<String, Value> = serde_json::from_str(raw.get())?;
        let kind = match members.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            _ => String::new(),
        };
        if kind == "custom_tool_call" {
            return Ok(Self::custom_call(&members));
        }
        if !matches!(kind.as_str(), "reasoning" | "message" | "function_call") {
            return Ok(Self::Opaque(Json::parse(raw.get())?));
        }
        for member in ["type", "role"] {
            members.remove(member);
        }
        // Only messages are sent back with a status, which is usually this one.
        if kind != "message" || members.get("status").is_some_and(|status| status == "completed") {
            members.remove("status");
        }
        members.retain(|_, value| !value.is_null());
        let mut text = |name: &str| match members.remove(name) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        Ok(match kind.as_str() {
            "reasoning" => {
                let summary = texts(members.remove("summary"), "text");
                if members.get("content").is_some_and(is_empty_list) {
                    members.remove("content");
                }
                Self::Reasoning { summary, members }
            }
            "message" => {
                let content = members.remove("content");
                let refusal = texts(content.clone(), "refusal").concat();
                Self::Message { text: texts(content, "text").concat(), refusal, members }
            }
            _ => Self::Call {
                id: text("call_id"),
                name: text("name"),
                arguments: text("arguments"),
                members,
            },
        })
    }

    /// Returns the call of a tool whose input is text. The library offers no such tools, so the call is recorded and sent
    /// back like that of a function with one argument.
    fn custom_call(members: &Map<String, Value>) -> Self {
        let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
        Self::Call {
            id: text("call_id").to_owned(),
            name: text("name").to_owned(),
            arguments: json!({ "input": text("input") }).to_string(),
            members: Map::default(),
        }
    }

    /// Adds the item to the parts of the reply.
    pub(super) fn add_to(self, parts: &mut ReplyBuilder) {
        match self {
            Self::Reasoning { summary, members } => {
                let mut summary = summary.into_iter();
                // The first part of the summary has the data of the whole item. Empty data separates the others.
                let data = (!members.is_empty()).then(|| Value::Object(members).into());
                parts.thinking(&summary.next().unwrap_or_default(), data);
                summary.for_each(|text| parts.thinking(&text, Some(Json::empty_object())));
            }
            Self::Message { text, refusal, members } => {
                parts.text(&(text + &refusal), Some(Value::Object(members).into()));
            }
            Self::Call { id, name, arguments, members } => {
                let call = ParsedToolCall::new(&*id, &*name, Arguments::parse(&arguments));
                parts.call(call, Some(Value::Object(members).into()));
            }
            Self::Opaque(json) => parts.opaque(json),
        }
    }
}

/// Returns a member of each object of a list, where it is a text that is not empty.
fn texts(list: Option<Value>, member: &str) -> Vec<String> {
    let Some(Value::Array(items)) = list else { return Vec::new() };
    let texts = items.into_iter().filter_map(|mut item| match item.get_mut(member)?.take() {
        Value::String(text) => Some(text).filter(|text| !text.is_empty()),
        _ => None,
    });
    texts.collect()
}

fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}
