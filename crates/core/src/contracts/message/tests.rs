//! Tests of arguments, wire ids and encoding.

use std::cell::Cell;
use std::sync::Arc;

use expect_test::expect;
use serde_json::json;

use super::{
    Arguments, AssistantMessage, ContentPart, Media, Message, SharedMessage, ToolCall, UserMessage,
};

#[test]
fn arguments_are_json_or_malformed_text() {
    assert_eq!(Arguments::parse(r#"{"a": 1}"#), json!({"a": 1}).into());
    assert_eq!(Arguments::parse("7"), json!(7).into(), "judged by the schema, not here");
    for nothing in ["", "  ", "\n"] {
        assert_eq!(Arguments::parse(nothing), json!({}).into(), "no arguments at all");
    }
    let cut = r#"{"a": "b"#;
    assert_eq!(Arguments::parse(cut), Arguments::Malformed(cut.to_owned()));
    assert_eq!(Arguments::parse(cut).as_json(), None);
}

#[test]
fn arguments_keep_the_models_own_text() {
    let arguments = Arguments::parse(r#"{"z":1.0,"a":[ ]}"#);
    assert_eq!(arguments.as_json().unwrap().text(), r#"{"z":1.0,"a":[ ]}"#);
}

#[test]
fn the_wire_id_is_the_providers_if_it_gave_one() {
    let mut call = ToolCall {
        id: "1.0".into(),
        provider_id: None,
        name: "t".into(),
        arguments: json!({}).into(),
    };
    assert_eq!(call.wire_id(), "1.0");
    call.provider_id = Some("call_1".into());
    assert_eq!(call.wire_id(), "call_1");
}

#[test]
fn empty_parts_of_a_message_are_omitted() {
    let assistant = Message::Assistant(Arc::new(AssistantMessage::default()));
    assert_eq!(serde_json::to_value(assistant).unwrap(), json!({"role": "assistant"}));
    let user = Message::User(UserMessage::new("hi"));
    assert_eq!(serde_json::to_value(user).unwrap(), json!({"role": "user", "content": "hi"}));
    let hidden = UserMessage::hidden("psst");
    let text = serde_json::to_string(&hidden).unwrap();
    assert_eq!(serde_json::from_str::<UserMessage>(&text).unwrap(), hidden);
    assert!(!serde_json::from_str::<UserMessage>(r#"{"content":"x"}"#).unwrap().hidden);
}

#[test]
fn the_clients_id_of_a_message_is_only_written_if_there_is_one() {
    let text = serde_json::to_string(&UserMessage::new("hi")).unwrap();
    assert_eq!(text, r#"{"content":"hi"}"#);
    let message = UserMessage::new("hi").with_id("msg-1");
    let text = serde_json::to_string(&message).unwrap();
    assert_eq!(text, r#"{"id":"msg-1","content":"hi"}"#);
    assert_eq!(serde_json::from_str::<UserMessage>(&text).unwrap(), message);
}

#[test]
fn a_message_is_encoded_once_per_encoding_and_shared_by_clones() {
    let encoded = Cell::new(0);
    let message = SharedMessage::new(Message::User(UserMessage::new("hi")));
    let bytes = |message: &SharedMessage, encoding| {
        let encode = |message: &Message, out: &mut Vec<u8>| {
            encoded.set(encoded.get() + 1);
            serde_json::to_writer(out, message).unwrap();
        };
        message.encoded(encoding, encode).into_owned()
    };
    let first = bytes(&message, "a");
    assert_eq!(bytes(&message.clone(), "a"), first);
    assert_eq!(encoded.get(), 1);
    assert_eq!(bytes(&message, "b"), first, "another provider gets its own bytes");
    assert_eq!(bytes(&message, "a"), first);
    assert_eq!(encoded.get(), 2, "the first encoding stays cached");
}

#[test]
fn unescaped_control_characters_in_strings_are_accepted() {
    let parsed = Arguments::parse("{ \"a\": \"one\ntwo\tthree\",\n \"b\": \"q\\\"\n\" }");
    let wanted = serde_json::json!({"a": "one\ntwo\tthree", "b": "q\"\n"});
    assert_eq!(parsed, Arguments::from(wanted));
    let broken = "{ \"a\": \"one\ntwo";
    assert_eq!(Arguments::parse(broken), Arguments::Malformed(broken.to_owned()));
}

#[test]
fn files_of_a_user_message_keep_their_place() {
    let image = Media::from_bytes("image/png", b"PNG");
    let file = Media::from_url("application/pdf", "https://example.com/a.pdf").name("a.pdf");
    let message =
        UserMessage::new("Compare ").attach(image.clone()).text(" with ").attach(file.clone());
    let text = serde_json::to_string(&message).unwrap();
    expect![[r#"{"content":"Compare  with ","attachments":[{"at":8,"type":"image/png","base64":"UE5H"},{"at":14,"type":"application/pdf","url":"https://example.com/a.pdf","name":"a.pdf"}]}"#]].assert_eq(&text);
    let read: UserMessage = serde_json::from_str(&text).unwrap();
    assert_eq!(read, message);
    let parts = [
        ContentPart::Text("Compare "),
        ContentPart::Media(&image),
        ContentPart::Text(" with "),
        ContentPart::Media(&file),
    ];
    assert_eq!(read.parts(), parts);
    assert_eq!(UserMessage::new("").parts(), [ContentPart::Text("")]);
    assert_eq!(UserMessage::new("").attach(file.clone()).parts(), [ContentPart::Media(&file)]);
    assert!(!format!("{image:?}").contains("UE5H"), "bytes do not belong in a process log");
}

/// Another program may write a position that is not in the text or between two characters.
#[test]
fn invalid_positions_of_files_are_read_without_a_panic() {
    for at in [1, 99] {
        let mut message = UserMessage::new("üx").attach(Media::from_bytes("image/png", b""));
        message.attachments[0].at = at;
        let media = &message.attachments[0].media;
        assert_eq!(message.parts(), [ContentPart::Media(media), ContentPart::Text("üx")]);
    }
}
