//! Schemas of the framework's own types, whose members the guide describes.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// An object with any members.
pub(crate) struct AnyObject;

impl JsonSchema for AnyObject {
    fn schema_name() -> Cow<'static, str> {
        "AnyObject".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

/// A chunk of a stream. Clients have to ignore types that they do not know.
pub(crate) struct StoredChunkSchema;

impl JsonSchema for StoredChunkSchema {
    fn schema_name() -> Cow<'static, str> {
        "StoredChunk".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "A chunk of a stream. The member `type` names the event; the other members depend on it.",
            "required": ["seq", "agent", "session", "run", "step", "at", "type"],
            "properties": {
                "seq": { "type": "integer", "minimum": 0, "description": "The position in the stream." },
                "attempt": { "type": "integer", "description": "The attempt, whose chunks may be discarded later." },
                "agent": { "type": "string" },
                "session": { "type": "string" },
                "run": { "type": "string" },
                "step": { "type": "integer", "minimum": 0 },
                "at": { "type": "integer", "description": "Milliseconds since 1970, by the writer's clock." },
                "type": { "type": "string" },
            },
        })
    }
}
