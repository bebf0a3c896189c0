//! Messages as bytes, each encoded once per session.

use helix_agents_core::message::{
    AssistantMessage, ContentPart, Media, MediaSource, Message, ToolCall, ToolResultMessage,
    UserMessage,
};

use super::{ServerProfile, details};
use crate::arguments;
use crate::json_writer::{Object, write_json};

/// Writes a message for a server of this profile. `keeps_data` is `false` if the data of the provider has to be left out.
pub(super) fn encode(
    message: &Message,
    profile: &ServerProfile,
    keeps_data: bool,
    out: &mut Vec<u8>,
) {
    let mut object = Object::begin(out);
    match message {
        Message::System { content } => {
            object.member("role", "system");
            object.member("content", content);
        }
        Message::User(user) => {
            object.member("role", "user");
            encode_user(user, &mut object);
        }
        Message::Assistant(assistant) => {
            encode_assistant(assistant, profile, &mut object);
            if keeps_data && assistant.layout.is_some() {
                details::encode(assistant, &mut object);
            }
        }
        Message::Tool(result) => {
            object.member("role", "tool");
            object.member("tool_call_id", result.wire_id());
            encode_result(result, &mut object);
        }
    }
    object.end();
}

fn encode_user(message: &UserMessage, object: &mut Object<'_>) {
    if message.attachments.is_empty() {
        return object.member("content", &message.content);
    }
    let out = object.value("content");
    out.push(b'[');
    for (index, part) in message.parts().into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match part {
            ContentPart::Media(media) => encode_media(media, out),
            ContentPart::Text(text) => encode_text(text, out),
            _ => encode_text("", out),
        }
    }
    out.push(b']');
}

/// The result of a tool consists of text. Files cannot be part of it, so the model reads that there were some.
fn encode_result(result: &ToolResultMessage, object: &mut Object<'_>) {
    if result.attachments.is_empty() {
        return object.member("content", &result.content);
    }
    let out = object.value("content");
    out.push(b'[');
    encode_text(&result.content, out);
    for media in &result.attachments {
        out.push(b',');
        encode_text(&not_shown(media), out);
    }
    out.push(b']');
}

fn encode_text(text: &str, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    object.member("type", "text");
    object.member("text", text);
    object.end();
}

/// Returns `true` if the API takes the file: images by address, and other files by id.
pub(super) fn sends(media: &Media) -> bool {
    match media.source {
        MediaSource::Url(_) => media.is_image(),
        MediaSource::File { .. } => !media.is_image(),
        _ => true,
    }
}

/// Writes an image or another file. The model reads that there was a file that the API cannot take.
fn encode_media(media: &Media, out: &mut Vec<u8>) {
    let url = match &media.source {
        MediaSource::Base64(bytes) => Some(format!("data:{};base64,{bytes}", media.media_type)),
        MediaSource::Url(url) => Some(url.to_string()).filter(|_| media.is_image()),
        _ => None,
    };
    match (&media.source, url) {
        (_, Some(url)) if media.is_image() => {
            let mut object = Object::begin(out);
            object.member("type", "image_url");
            let mut image = Object::begin(object.value("image_url"));
            image.member("url", &url);
            image.end();
            object.end();
        }
        (_, Some(url)) => encode_file(media, "file_data", &url, out),
        (MediaSource::File { id, .. }, None) if !media.is_image() => {
            encode_file(media, "file_id", id, out);
        }
        _ => encode_text(&not_shown(media), out),
    }
}

fn encode_file(media: &Media, member: &str, value: &str, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    object.member("type", "file");
    let mut file = Object::begin(object.value("file"));
    if member == "file_data" {
        file.member("filename", media.name.as_deref().unwrap_or("file"));
    }
    file.member(member, value);
    file.end();
    object.end();
}

fn not_shown(media: &Media) -> String {
    format!("(a file of type {} that cannot be shown here)", media.media_type)
}

fn encode_assistant(message: &AssistantMessage, profile: &ServerProfile, object: &mut Object<'_>) {
    object.member("role", "assistant");
    if profile.reasoning_content {
        let thinking = message.thinking.as_ref().map_or("", |thinking| &*thinking.content);
        object.member("reasoning_content", thinking);
    }
    match &message.content {
        Some(content) => object.member("content", content),
        // Only messages with calls may have no content.
        None if profile.empty_content || message.tool_calls.is_empty() => {
            object.member("content", "")
        }
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
    write_json(out, arguments::object(&call.arguments));
    out.extend_from_slice(b"}}");
}
