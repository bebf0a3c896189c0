//! Tests of the JSON that differs from the types of the core crate.

use helix_agents_core::message::Media;

use super::*;

#[derive(Deserialize)]
struct Document {
    #[serde(deserialize_with = "messages")]
    messages: Vec<Message>,
}

#[test]
fn messages_are_read_as_the_server_writes_them() {
    let call = json!({ "id": "1.0", "name": "pay", "arguments": { "json": { "to": "Bob" } } });
    let document = json!({ "messages": [
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "Pay Bob." },
        { "role": "assistant", "content": "I will.", "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "1.0", "tool_name": "pay", "content": "\"paid\"" },
    ]});
    let read: Document = serde_json::from_str(&document.to_string()).unwrap();
    assert_eq!(serde_json::to_value(&read.messages).unwrap(), document["messages"]);
    let unknown = json!({ "messages": [{ "role": "oracle", "content": "x" }] });
    assert!(serde_json::from_str::<Document>(&unknown.to_string()).is_err());
}

#[test]
fn a_message_is_written_as_text_or_with_its_files() {
    assert_eq!(message_body(&"Hello".into()).unwrap(), json!("Hello"));
    let chart = Media::from_url("image/png", "https://example.com/c.png").name("c.png");
    let body = message_body(&UserMessage::new("What?").attach(chart)).unwrap();
    let file = json!({ "type": "image/png", "url": "https://example.com/c.png", "name": "c.png" });
    assert_eq!(body, json!({ "content": "What?", "attachments": [file] }));
}

#[test]
fn what_the_api_has_no_place_for_is_refused() {
    let media = || Media::from_url("image/png", "https://example.com/c.png");
    let file = MediaSource::File { provider: "openai".into(), id: "f1".into() };
    for message in [
        UserMessage::hidden("x"),
        UserMessage::new("a").attach(media()).text("b"),
        UserMessage::new("a").attach(Media::new("image/png", file)),
    ] {
        assert!(message_body(&message).unwrap_err().is(ErrorCode::InputInvalid), "{message:?}");
    }
}

#[test]
fn each_answer_has_its_member() {
    let body = |submission: &Submission| {
        serde_json::to_value(AnswerBody::new("talk", submission, "r", true).unwrap()).unwrap()
    };
    let common = json!({ "sessionId": "talk", "call": "1.0", "requestId": "r", "resume": true });
    for (submission, members) in [
        (Submission::result("1.0", &Value::Null).unwrap(), json!({ "result": null })),
        (Submission::error("1.0", "broken"), json!({ "error": "broken" })),
        (Submission::approve("1.0").digest("d"), json!({ "approved": true, "digest": "d" })),
        (
            Submission::approve_edited("1.0", &json!({ "to": "Eve" })).unwrap(),
            json!({ "approved": true, "edited": { "to": "Eve" } }),
        ),
        (Submission::deny("1.0", None), json!({ "approved": false })),
        (Submission::deny("1.0", "no".to_owned()), json!({ "approved": false, "reason": "no" })),
    ] {
        let mut expected = common.clone();
        expected.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        assert_eq!(body(&submission), expected);
    }
}
