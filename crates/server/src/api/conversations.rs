//! The JSON of the chat and AG-UI routes. Their protocols are described by their own documents, so the schemas name only
//! what the server reads.

use std::borrow::Cow;
use std::marker::PhantomData;

use helix_agents_protocols::ai_sdk::UiMessage;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;

use super::schema::AnyObject;

/// The messages of a chat.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessagesBody {
    /// The session.
    pub(crate) session_id: String,
    /// The messages as `UIMessage`s of the AI SDK, oldest first.
    #[schemars(with = "Vec<AnyObject>")]
    pub(crate) messages: Vec<UiMessage>,
}

/// The body of a route whose path names the session: that of the route without it.
pub(crate) struct OfPath<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for OfPath<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}OfPath", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.remove("sessionId");
        }
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| name != "sessionId");
        }
        schema
    }
}

/// The body that `useChat` posts.
pub(crate) struct ChatBodySchema;

impl JsonSchema for ChatBodySchema {
    fn schema_name() -> Cow<'static, str> {
        "ChatRequest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "The body that `useChat` posts. Of the messages, only the last one is read.",
            "required": ["id"],
            "properties": {
                "id": { "type": "string", "description": "The id of the chat, which is the session's id." },
                "messages": { "type": "array", "items": { "type": "object" } },
                "message": { "type": "object", "description": "The last message, in place of `messages`." },
                "trigger": { "enum": ["submit-message", "regenerate-message"] },
                "messageId": { "type": "string" },
                "agentType": {
                    "type": "string",
                    "description": "The agent of a new session. Default: the only one of the server.",
                },
            },
        })
    }
}

/// A chunk of the AI SDK's UI message stream.
pub(crate) struct UiChunkSchema;

impl JsonSchema for UiChunkSchema {
    fn schema_name() -> Cow<'static, str> {
        "UIMessageChunk".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "A chunk of the UI message stream, version 1, of the AI SDK.",
            "required": ["type"],
            "properties": { "type": { "type": "string" } },
        })
    }
}

/// The body that clients of AG-UI post.
pub(crate) struct RunAgentInputSchema;

impl JsonSchema for RunAgentInputSchema {
    fn schema_name() -> Cow<'static, str> {
        "RunAgentInput".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "The input of AG-UI 1.0. Of the messages, only the last ones are read.",
            "required": ["threadId", "runId"],
            "properties": {
                "threadId": { "type": "string", "description": "The session's id." },
                "runId": { "type": "string" },
                "messages": { "type": "array", "items": { "type": "object" } },
                "resume": { "type": "array", "items": { "type": "object" } },
            },
        })
    }
}

/// An event of AG-UI.
pub(crate) struct AguiEventSchema;

impl JsonSchema for AguiEventSchema {
    fn schema_name() -> Cow<'static, str> {
        "AGUIEvent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "An event of AG-UI 1.0.",
            "required": ["type"],
            "properties": { "type": { "type": "string" } },
        })
    }
}
