//! The part of Chat Completions that the loop needs.

use std::borrow::Cow;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Serialize)]
pub(super) struct Request<'a> {
    model: &'static str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    messages: &'a [Message],
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

impl<'a> Request<'a> {
    pub(super) fn new(
        stream: bool,
        messages: &'a [Message],
        tools: Option<&'a RawValue>,
        response_format: Option<&'a RawValue>,
    ) -> Self {
        let stream_options = stream.then_some(StreamOptions { include_usage: true });
        Self { model: "bench", stream, stream_options, response_format, tools, messages }
    }
}

#[derive(Serialize)]
pub(super) struct Message {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
}

#[derive(Serialize)]
struct ToolCall {
    id: String,
    r#type: &'static str,
    function: Function,
}

#[derive(Serialize)]
struct Function {
    name: String,
    arguments: String,
}

impl Message {
    pub(super) fn text(role: &'static str, content: &str) -> Self {
        let content = Some(content.to_owned());
        Self { role, tool_call_id: None, content, tool_calls: Vec::new() }
    }

    pub(super) fn call(call: Call) -> Self {
        let function = Function { name: call.name, arguments: call.arguments };
        let call = ToolCall { id: call.id, r#type: "function", function };
        Self { role: "assistant", tool_call_id: None, content: None, tool_calls: vec![call] }
    }

    pub(super) fn result(id: String, content: String) -> Self {
        Self {
            role: "tool",
            tool_call_id: Some(id),
            content: Some(content),
            tool_calls: Vec::new(),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Completion<'a> {
    #[serde(borrow)]
    pub(super) choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow, alias = "delta")]
    pub(super) message: Delta<'a>,
}

/// A message, or a piece of a streamed one.
#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_calls: Vec<CallDelta<'a>>,
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    function: FunctionDelta<'a>,
}

#[derive(Deserialize)]
struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Option<Cow<'a, str>>,
}

/// The part of a reply that has been received.
#[derive(Default)]
pub(super) struct Reply {
    pub(super) content: String,
    pub(super) call: Option<Call>,
    /// `true` if the end of the stream was announced.
    pub(super) done: bool,
}

#[derive(Default)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl Reply {
    pub(super) fn event(&mut self, data: &[u8]) -> Result<()> {
        if data == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        let chunk: Completion<'_> = serde_json::from_slice(data)?;
        for choice in &chunk.choices {
            self.take(&choice.message);
        }
        Ok(())
    }

    pub(super) fn take(&mut self, delta: &Delta<'_>) {
        if let Some(content) = &delta.content {
            self.content.push_str(content);
        }
        for piece in &delta.tool_calls {
            let call = self.call.get_or_insert_default();
            call.id.push_str(piece.id.as_deref().unwrap_or_default());
            call.name.push_str(piece.function.name.as_deref().unwrap_or_default());
            call.arguments.push_str(piece.function.arguments.as_deref().unwrap_or_default());
        }
    }
}
