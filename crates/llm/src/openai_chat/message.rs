//! Messages as bytes, each encoded once per session.

use helix_agents_core::message::{Arguments, AssistantMessage, Message, ToolCall};

use super::object::{Object, write_json};

/// Writes a message. With `empty_content`, a message without text has the content `""`.
pub(super) fn encode(message: &Message, empty_content: bool, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    match message {
        Message::System { content } => {
            object.member("role", "system");
            object.member("content", content);
        }
        Message::User(user) => {
            object.member("role", "user");
            object.member("content", &user.content);
        }
        Message::Assistant(assistant) => encode_assistant(assistant, empty_content, &mut object),
        Message::Tool(result) => {
            object.member("role", "tool");
            object.member("tool_call_id", result.wire_id());
            object.member("content", &result.content);
        }
    }
    object.end();
}

fn encode_assistant(message: &AssistantMessage, empty_content: bool, object: &mut Object<'_>) {
    object.member("role", "assistant");
    match &message.content {
        Some(content) => object.member("content", content),
        // Only messages with calls may have no content.
        None if empty_content || message.tool_calls.is_empty() => object.member("content", ""),
        None => object.raw("content", b"null"),
    }
    if message.tool_calls.is_empty() {
        return;
    }
    let out = object.value("tool_calls");
    out.push(b'[');
    for (index, call) in message.tool_calls.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        encode_call(call, out);
    }
    out.push(b']');
}

fn encode_call(call: &ToolCall, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"id\":");
    write_json(out, call.wire_id());
    out.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
    write_json(out, &call.name);
    out.extend_from_slice(b",\"arguments\":");
    match &call.arguments {
        Arguments::Json(json) => write_json(out, json.text()),
        // Servers parse the arguments again and reject the whole conversation if they cannot. The
        // result of such a call describes the problem.
        Arguments::Malformed(_) => write_json(out, "{}"),
    }
    out.extend_from_slice(b"}}");
}
