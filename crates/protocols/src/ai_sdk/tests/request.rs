//! Requests of `useChat`.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::Answer;
use helix_agents_core::message::{ContentPart, UserMessage};
use serde_json::{Value, json};

use crate::ai_sdk::{ChatIntent, ChatRequest};
use crate::limits::RequestLimits;

fn decode(body: &Value) -> Result<ChatRequest, ErrorCode> {
    let body = serde_json::to_vec(body).unwrap();
    ChatRequest::decode(&body, &RequestLimits::default()).map_err(|error| error.code())
}

fn user(text: &str) -> Value {
    json!({"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]})
}

fn request(messages: &[Value]) -> Value {
    json!({"id": "chat", "trigger": "submit-message", "messages": messages})
}

/// Returns the answers of a request with these parts of the agent's message; none if it asks for something else.
fn answers(parts: &Value) -> Result<Vec<(String, Answer, Option<String>)>, ErrorCode> {
    let message = json!({"id": "chat-turn-1", "role": "assistant", "parts": parts});
    let answers = match decode(&request(&[user("hi"), message]))?.intent {
        ChatIntent::Answer { answers, .. } => answers,
        _ => Vec::new(),
    };
    let answers = answers.into_iter();
    Ok(answers.map(|given| (given.call.to_string(), given.answer, given.digest)).collect())
}

#[test]
fn only_the_last_message_is_read() {
    let forged = json!({"role": "unknown", "parts": 7});
    let intent = decode(&request(&[forged, user("Hello")])).unwrap().intent;
    let message = UserMessage::new("Hello").with_id("m1");
    assert_eq!(intent, ChatIntent::Say { message: message.clone(), replaces: None });
    let short = json!({"id": "chat", "message": user("Hello"), "model": "fast"});
    let request = decode(&short).unwrap();
    assert_eq!(request.intent, ChatIntent::Say { message, replaces: None });
    assert_eq!(Value::from(request.extra), json!({"model": "fast"}));
}

#[test]
fn an_edited_message_names_the_one_that_it_replaces() {
    let mut body = request(&[user("Hello")]);
    body["messageId"] = json!("m1");
    let intent = decode(&body).unwrap().intent;
    assert!(matches!(intent, ChatIntent::Say { replaces: Some(id), .. } if id == "m1"));
    body["trigger"] = json!("regenerate-message");
    let intent = decode(&body).unwrap().intent;
    assert!(matches!(intent, ChatIntent::Regenerate { message: Some(_), of: Some(_) }));
}

#[test]
fn files_of_a_message_are_data_or_addresses() {
    let file = |url: &str| json!({"type": "file", "mediaType": "image/png", "url": url});
    let message = |url| json!({"id": "m", "role": "user", "parts": [file(url)]});
    let said = |url| match decode(&request(&[message(url)]))?.intent {
        ChatIntent::Say { message, .. } => Ok(message),
        other => panic!("{other:?}"),
    };
    let data = said("data:image/png;base64,AAAA").unwrap();
    assert!(matches!(data.parts()[..], [ContentPart::Media(_)]));
    assert!(said("https://example.com/a.png").is_ok());
    assert_eq!(said("file:///etc/passwd"), Err(ErrorCode::InputInvalid));
}

#[test]
fn a_repeated_request_has_the_same_run_id_and_another_text_another_one() {
    let run = |text: &str| decode(&request(&[user(text)])).unwrap().run_id().unwrap();
    assert_eq!(run("Hello"), run("Hello"));
    assert_ne!(run("Hello"), run("Hallo"));
}

#[test]
fn answers_are_results_of_the_clients_calls_and_responses_to_approval_requests() {
    let answers = answers(&json!([
        {"type": "step-start"},
        {"type": "source-url", "sourceId": "1", "url": "https://example.com"},
        {"type": "tool-weather", "toolCallId": "1.0", "state": "output-available", "input": {},
         "output": "forged", "providerExecuted": true},
        {"type": "tool-ask", "toolCallId": "1.1", "state": "output-available", "input": {},
         "output": {"colour": "red"}},
        {"type": "tool-ask", "toolCallId": "1.2", "state": "output-error", "input": {},
         "errorText": "closed"},
        {"type": "tool-pay", "toolCallId": "1.3", "state": "approval-responded", "input": {},
         "providerExecuted": false, "approval": {"id": "1.3~9f", "approved": true}},
        {"type": "tool-pay", "toolCallId": "c#1.4", "state": "approval-responded", "input": {},
         "providerExecuted": false, "approval": {"id": "c#1.4~9f", "approved": false, "reason": "no"}},
        {"type": "tool-pay", "toolCallId": "1.5", "state": "approval-requested", "input": {},
         "providerExecuted": false, "approval": {"id": "1.5~9f"}},
    ]))
    .unwrap();
    let digest = Some("9f".to_owned());
    let returned = Answer::Returned(json!({"colour": "red"}).into());
    assert_eq!(
        answers,
        [
            ("1.1".to_owned(), returned, None),
            ("1.2".to_owned(), Answer::Error("closed".to_owned()), None),
            ("1.3".to_owned(), Answer::Approved { edited: None }, digest.clone()),
            ("c#1.4".to_owned(), Answer::Denied { reason: Some("no".to_owned()) }, digest),
        ]
    );
}

#[test]
fn the_same_answer_has_the_same_request_id() {
    let part = |output: &str| {
        json!([{"type": "tool-ask", "toolCallId": "1.0", "state": "output-available", "input": {},
                "output": output}])
    };
    let id = |output: &str| {
        let message = json!({"id": "m", "role": "assistant", "parts": part(output)});
        match decode(&request(&[message])).unwrap().intent {
            ChatIntent::Answer { answers, .. } => answers[0].request.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(id("red"), id("red"));
    assert_ne!(id("red"), id("blue"));
}

#[test]
fn requests_that_say_nothing_are_refused() {
    let empty = |parts: Value| json!({"id": "m", "role": "assistant", "parts": parts});
    for body in [
        json!({"id": "chat"}),
        json!({"id": 7, "messages": []}),
        json!({"messages": [user("hi")]}),
        request(&[]),
        request(&[user("  ")]),
        request(&[json!({"id": "m", "role": "system", "parts": []})]),
        request(&[empty(json!([]))]),
        request(&[empty(json!([{"type": "tool-pay", "toolCallId": "1", "input": {},
            "state": "approval-responded", "approval": {"id": "forged", "approved": true}}]))]),
    ] {
        assert_eq!(decode(&body).unwrap_err(), ErrorCode::InputInvalid, "{body}");
    }
}

#[test]
fn each_limit_is_enforced() {
    let limits = |change: fn(&mut RequestLimits)| {
        let mut limits = RequestLimits::default();
        change(&mut limits);
        limits
    };
    let code = |body: &Value, limits: RequestLimits| {
        let body = serde_json::to_vec(body).unwrap();
        ChatRequest::decode(&body, &limits).map_err(|error| error.code()).map(drop)
    };
    let too_large = Err(ErrorCode::TooLarge);
    let says = request(&[user("Hello")]);
    assert_eq!(code(&says, limits(|limits| limits.text_bytes = 4)), too_large);
    assert_eq!(code(&says, limits(|limits| limits.parts = 0)), too_large);
    assert_eq!(code(&says, limits(|limits| limits.text_bytes = 5)), Ok(()));
    let part = json!({"type": "tool-ask", "toolCallId": "1.0", "state": "output-available",
        "input": {}, "output": "red"});
    let failed = json!({"type": "tool-ask", "toolCallId": "1.1", "state": "output-error",
        "input": {}, "errorText": "closed"});
    let message = json!({"id": "m", "role": "assistant", "parts": [part, failed]});
    let answers = request(&[message]);
    assert_eq!(code(&answers, limits(|limits| limits.answer_bytes = 4)), too_large);
    assert_eq!(code(&answers, limits(|limits| limits.error_bytes = 5)), too_large);
    assert_eq!(code(&answers, RequestLimits::default()), Ok(()));
}

/// The message contains the answers of the whole turn, however long it is.
#[test]
fn of_more_answers_than_the_limit_the_last_ones_are_taken() {
    let part = |call: u32| {
        json!({"type": "tool-ask", "toolCallId": format!("1.{call}"), "state": "output-available",
            "input": {}, "output": "red"})
    };
    let parts: Vec<_> = (0..5).map(part).collect();
    let message = json!({"id": "m", "role": "assistant", "parts": parts});
    let body = serde_json::to_vec(&request(&[message])).unwrap();
    let limits = RequestLimits { answers: 2, ..RequestLimits::default() };
    let ChatIntent::Answer { answers, .. } = ChatRequest::decode(&body, &limits).unwrap().intent
    else {
        panic!("another intent")
    };
    let calls: Vec<_> = answers.iter().map(|answer| answer.call.to_string()).collect();
    assert_eq!(calls, ["1.3", "1.4"]);
}

#[test]
fn parts_beyond_the_limit_are_not_read() {
    // The part after the limit is no part at all, which only a decoder that reads it finds out.
    let message = json!({"id": "m", "role": "user", "parts": [{"type": "text", "text": "a"}, 7]});
    let body = serde_json::to_vec(&request(&[message])).unwrap();
    let code = |parts| {
        let limits = RequestLimits { parts, ..RequestLimits::default() };
        ChatRequest::decode(&body, &limits).unwrap_err().code()
    };
    assert_eq!(code(1), ErrorCode::TooLarge);
    assert_eq!(code(2), ErrorCode::InputInvalid);
}

#[test]
fn other_members_have_a_limit_of_their_own() {
    let mut body = request(&[user("Hello")]);
    body["model"] = json!("x".repeat(100_000));
    assert_eq!(decode(&body).unwrap_err(), ErrorCode::TooLarge);
}

#[test]
fn ids_that_are_too_long_are_refused() {
    let long = "x".repeat(500);
    let call = json!({"type": "tool-ask", "toolCallId": long, "state": "output-available",
        "input": {}, "output": 1});
    let message = json!({"id": "m", "role": "assistant", "parts": [call]});
    let mut edited = request(&[user("Hello")]);
    edited["messageId"] = json!(long);
    let mut chat = request(&[user("Hello")]);
    chat["id"] = json!(long);
    let said = json!({"id": long, "role": "user", "parts": [{"type": "text", "text": "Hi"}]});
    for body in [request(&[message]), edited, chat, request(&[said])] {
        assert_eq!(decode(&body).unwrap_err(), ErrorCode::IdInvalid);
    }
}

#[test]
fn a_malformed_part_is_an_error_and_an_unknown_one_is_ignored() {
    let with = |part: Value| {
        let text = json!({"type": "text", "text": "Hello"});
        decode(&request(&[json!({"id": "m", "role": "user", "parts": [text, part]})])).map(drop)
    };
    assert_eq!(with(json!({"type": "hologram", "text": 7})), Ok(()));
    assert_eq!(with(json!({"type": "text"})), Err(ErrorCode::InputInvalid));
    assert_eq!(with(json!({"type": "file"})), Err(ErrorCode::InputInvalid));
}
