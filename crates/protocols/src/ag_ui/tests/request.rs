//! Requests of AG-UI clients.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::Answer;
use helix_agents_core::message::ContentPart;
use serde_json::{Value, json};

use crate::ag_ui::{RunAgentInput, RunIntent};
use crate::limits::RequestLimits;

fn decode(body: &Value) -> Result<RunAgentInput, ErrorCode> {
    let body = serde_json::to_vec(body).unwrap();
    RunAgentInput::decode(&body, &RequestLimits::default()).map_err(|error| error.code())
}

fn input(messages: &[Value], resume: &Value) -> Value {
    json!({"threadId": "chat", "runId": "r1", "messages": messages, "resume": resume})
}

fn answers(messages: &[Value], resume: &Value) -> Vec<(String, Answer, Option<String>)> {
    let RunIntent::Answer { answers } = decode(&input(messages, resume)).unwrap().intent else {
        panic!("another intent")
    };
    let answers = answers.into_iter();
    answers.map(|given| (given.call.to_string(), given.answer, given.digest)).collect()
}

#[test]
fn only_the_last_messages_are_read() {
    let forged = json!({"role": "unknown", "parts": 7});
    let user = json!({"id": "m1", "role": "user", "content": "Hello"});
    let mut body = input(&[forged, user], &json!([]));
    body["state"] = json!({"a": 1});
    body["forwardedProps"] = json!({"b": 2});
    let decoded = decode(&body).unwrap();
    let RunIntent::Say { message } = decoded.intent else { panic!("another intent") };
    assert_eq!(message.content, "Hello");
    assert_eq!(message.id.unwrap().as_str(), "m1");
    assert_eq!(
        (decoded.state, decoded.forwarded_props),
        (Some(json!({"a": 1})), Some(json!({"b": 2})))
    );
}

#[test]
fn a_request_without_news_joins_the_run() {
    let assistant = json!({"id": "a1", "role": "assistant", "content": "Hello"});
    assert_eq!(decode(&input(&[], &json!([]))).unwrap().intent, RunIntent::Join);
    assert_eq!(decode(&input(&[assistant], &json!([]))).unwrap().intent, RunIntent::Join);
}

#[test]
fn parts_of_a_message_are_texts_and_files() {
    let message = |source: Value| {
        let image = json!({"type": "image", "source": source});
        let content = json!([{"type": "text", "text": "Look"}, image, {"type": "hologram"}]);
        json!({"id": "m1", "role": "user", "content": content})
    };
    let said = |source| match decode(&input(&[message(source)], &json!([])))?.intent {
        RunIntent::Say { message } => Ok(message),
        other => panic!("{other:?}"),
    };
    let data = said(json!({"type": "data", "value": "AAAA", "mimeType": "image/png"})).unwrap();
    assert!(matches!(data.parts()[..], [ContentPart::Text("Look"), ContentPart::Media(_)]));
    assert!(said(json!({"type": "url", "value": "https://example.com/a.png"})).is_ok());
    let local = said(json!({"type": "url", "value": "file:///etc/passwd"}));
    assert_eq!(local, Err(ErrorCode::InputInvalid));
}

#[test]
fn results_of_the_clients_tools_follow_the_agents_messages() {
    let assistant = json!({"id": "a1", "role": "assistant", "toolCalls": []});
    let tool = |call: &str, content: &str| json!({"id": "x", "role": "tool", "toolCallId": call, "content": content});
    let failed =
        json!({"id": "y", "role": "tool", "toolCallId": "1.2", "content": "", "error": "closed"});
    let messages =
        [tool("0.0", "\"old\""), assistant, tool("1.0", "{\"a\":1}"), tool("1.1", "red"), failed];
    let returned = |value: Value| Answer::Returned(value.into());
    assert_eq!(
        answers(&messages, &json!([])),
        [
            ("1.2".to_owned(), Answer::Error("closed".to_owned()), None),
            ("1.1".to_owned(), returned(json!("red")), None),
            ("1.0".to_owned(), returned(json!({"a": 1})), None),
        ]
    );
}

/// The client posts the results of the server's tools as well, which are in its messages.
#[test]
fn results_of_the_server_are_no_answers() {
    let assistant = json!({"id": "a1", "role": "assistant", "toolCalls": []});
    let tool = |id: &str, call: &str| json!({"id": id, "role": "tool", "toolCallId": call, "content": "x"});
    let own = || tool("t-1.0", "1.0");
    let intent = |messages: &[Value]| decode(&input(messages, &json!([]))).unwrap().intent;
    assert_eq!(intent(&[assistant.clone(), own()]), RunIntent::Join);
    let both = answers(&[assistant.clone(), own(), tool("x", "1.1")], &json!([]));
    assert_eq!(both.len(), 1);
    assert_eq!(both[0].0, "1.1");
    let user = json!({"id": "m2", "role": "user", "content": "Next"});
    assert!(matches!(intent(&[assistant, own(), user]), RunIntent::Say { .. }));
}

#[test]
fn an_answer_that_is_given_twice_counts_once() {
    let tool = json!({"id": "x", "role": "tool", "toolCallId": "1.0", "content": "late"});
    let resume = json!([{"interruptId": "1.0", "status": "resolved", "payload": "red"}]);
    let returned = Answer::Returned(json!("red").into());
    assert_eq!(answers(&[tool], &resume), [("1.0".to_owned(), returned, None)]);
}

#[test]
fn messages_of_other_roles_after_that_of_the_user_do_not_hide_it() {
    let user = json!({"id": "m1", "role": "user", "content": "Hello"});
    for role in ["system", "developer", "activity", "narrator"] {
        let other = json!({"id": "o", "role": role, "content": {"any": "thing"}});
        let intent = decode(&input(&[user.clone(), other], &json!([]))).unwrap().intent;
        let RunIntent::Say { message } = intent else { panic!("{role}: {intent:?}") };
        assert_eq!(message.content, "Hello");
    }
}

#[test]
fn a_malformed_message_is_an_error_only_among_the_last_ones() {
    let user = |content: Value| json!({"id": "m1", "role": "user", "content": content});
    let hello = || user(json!("Hello"));
    let text = |text: Value| user(json!([{"type": "text", "text": text}]));
    for malformed in [
        user(json!(7)),
        json!({"id": "m1", "role": "user"}),
        text(json!(7)),
        json!("Hi"),
        json!({"id": "m1"}),
    ] {
        let last = decode(&input(&[hello(), malformed.clone()], &json!([])));
        assert_eq!(last.unwrap_err(), ErrorCode::InputInvalid, "{malformed}");
        assert!(decode(&input(&[malformed, hello()], &json!([]))).is_ok());
    }
}

#[test]
fn the_result_of_a_tool_keeps_its_type() {
    let result = |content: &str, schema: Option<Value>| {
        let tool = json!({"id": "x", "role": "tool", "toolCallId": "1.0", "content": content});
        let RunIntent::Answer { answers } = decode(&input(&[tool], &json!([]))).unwrap().intent
        else {
            panic!("another intent")
        };
        let answer = answers[0].clone();
        let before = answer.request.clone();
        let answer = answer.for_schema(schema.map(Into::into).as_ref());
        assert_eq!(answer.request, before);
        match answer.answer {
            Answer::Returned(json) => json.to_value(),
            other => panic!("{other:?}"),
        }
    };
    for text in ["42", "true", "null", "red", "", "{broken"] {
        assert_eq!(result(text, None), json!(text));
    }
    assert_eq!(result(r#"{"a":1}"#, None), json!({"a": 1}));
    assert_eq!(result("[1]", None), json!([1]));
    assert_eq!(result(r#""red""#, None), json!("red"));
    let is = |kind: &str| Some(json!({ "type": kind }));
    assert_eq!(result("42", is("integer")), json!(42));
    assert_eq!(result("42", is("string")), json!("42"));
    assert_eq!(result("true", is("boolean")), json!(true));
    assert_eq!(result(r#"{"a":1}"#, is("string")), json!(r#"{"a":1}"#));
    assert_eq!(result("red", is("integer")), json!("red"), "the submission explains the violation");
}

#[test]
fn the_reasoning_that_the_client_has_is_known() {
    let reasoning = |id: &str| json!({"id": id, "role": "reasoning", "content": "Hm"});
    let user = json!({"id": "m1", "role": "user", "content": "Hello"});
    let decoded = decode(&input(&[user, reasoning("r-a1"), reasoning("r-a2")], &json!([])));
    let decoded = decoded.unwrap();
    assert_eq!(
        (decoded.intent, decoded.reasoning),
        (RunIntent::Join, vec!["r-a1".to_owned(), "r-a2".to_owned()])
    );
    let many: Vec<_> = (0..100).map(|step| reasoning(&format!("r-a{step}"))).collect();
    assert_eq!(decode(&input(&many, &json!([]))).unwrap().reasoning.len(), 64);
}

#[test]
fn ids_that_are_too_long_are_refused() {
    let long = "x".repeat(500);
    let tool = json!({"id": "x", "role": "tool", "toolCallId": long, "content": "red"});
    let user = json!({"id": long, "role": "user", "content": "Hello"});
    let resume = json!([{"interruptId": long, "status": "resolved", "payload": 1}]);
    let mut thread = input(&[], &json!([]));
    thread["threadId"] = json!(long);
    let mut run = input(&[], &json!([]));
    run["runId"] = json!(long);
    for body in
        [input(&[tool], &json!([])), input(&[user], &json!([])), input(&[], &resume), thread, run]
    {
        assert_eq!(decode(&body).unwrap_err(), ErrorCode::IdInvalid);
    }
}

#[test]
fn interrupts_are_resolved_or_cancelled() {
    let resolved = |id: &str, payload: Value| json!({"interruptId": id, "status": "resolved", "payload": payload});
    let resume = json!([
        resolved("1.0~9f", json!({"approved": true})),
        resolved("1.1~9f", json!({"approved": true, "arguments": {"x": 1}})),
        resolved("c#1.2~9f", json!({"approved": false, "reason": "no"})),
        {"interruptId": "1.3~9f", "status": "cancelled"},
        resolved("1.4", json!("red")),
        {"interruptId": "1.5", "status": "cancelled"},
        resolved("awaiting-children", json!({})),
    ]);
    let digest = Some("9f".to_owned());
    let cancelled = "cancelled by the user".to_owned();
    let edited = Some(json!({"x": 1}).into());
    assert_eq!(
        answers(&[], &resume),
        [
            ("1.0".to_owned(), Answer::Approved { edited: None }, digest.clone()),
            ("1.1".to_owned(), Answer::Approved { edited }, digest.clone()),
            ("c#1.2".to_owned(), Answer::Denied { reason: Some("no".to_owned()) }, digest.clone()),
            ("1.3".to_owned(), Answer::Denied { reason: Some(cancelled.clone()) }, digest),
            ("1.4".to_owned(), Answer::Returned(json!("red").into()), None),
            ("1.5".to_owned(), Answer::Error(cancelled), None),
        ]
    );
    assert_eq!(answers(&[], &json!([resolved("awaiting-children", json!({}))])), []);
}

#[test]
fn invalid_requests_are_refused() {
    let user = |content: Value| json!({"id": "m1", "role": "user", "content": content});
    let resolved = |id: &str| json!([{"interruptId": id, "status": "resolved", "payload": {}}]);
    for body in [
        json!({"threadId": "chat", "messages": []}),
        json!({"threadId": "chat", "runId": 1, "messages": []}),
        input(&[user(json!(" "))], &json!([])),
        input(&[], &resolved("1.0~9f")),
        input(&[], &resolved("~9f")),
        input(&[], &json!([{"interruptId": "1.0", "status": "forgotten"}])),
    ] {
        assert_eq!(decode(&body).unwrap_err(), ErrorCode::InputInvalid, "{body}");
    }
}

#[test]
fn each_limit_is_enforced() {
    let code = |body: &Value, change: fn(&mut RequestLimits)| {
        let mut limits = RequestLimits::default();
        change(&mut limits);
        let body = serde_json::to_vec(body).unwrap();
        RunAgentInput::decode(&body, &limits).map_err(|error| error.code()).map(drop)
    };
    let too_large = Err(ErrorCode::TooLarge);
    let says = input(&[json!({"id": "m", "role": "user", "content": "Hello"})], &json!([]));
    assert_eq!(code(&says, |limits| limits.text_bytes = 4), too_large);
    assert_eq!(code(&says, |limits| limits.text_bytes = 5), Ok(()));
    let tool = |id: &str| json!({"id": id, "role": "tool", "toolCallId": id, "content": "red"});
    let results = input(&[tool("1.0"), tool("1.1")], &json!([]));
    assert_eq!(code(&results, |limits| limits.answers = 1), too_large);
    assert_eq!(code(&results, |limits| limits.answer_bytes = 4), too_large);
    assert_eq!(code(&results, |_| {}), Ok(()));
    let old = json!({"id": "a", "role": "assistant", "content": "Thanks."});
    let earlier = input(&[tool("1.0"), tool("1.1"), old], &json!([]));
    assert_eq!(code(&earlier, |limits| limits.answers = 1), Ok(()));
    let entry = json!({"interruptId": "1.0", "status": "resolved", "payload": 1});
    let resumes = input(&[], &json!([entry, entry]));
    assert_eq!(code(&resumes, |limits| limits.answers = 1), too_large);
    let text = json!({"type": "text", "text": "a"});
    let parts = input(&[json!({"id": "m", "role": "user", "content": [text, text]})], &json!([]));
    assert_eq!(code(&parts, |limits| limits.parts = 1), too_large);
    let mut state = says.clone();
    state["state"] = json!({"a": "long"});
    assert_eq!(code(&state, |limits| limits.state_bytes = 5), too_large);
    let mut props = says;
    props["forwardedProps"] = json!({"a": "long"});
    assert_eq!(code(&props, |limits| limits.extra_bytes = 5), too_large);
    let failed =
        json!({"id": "1", "role": "tool", "toolCallId": "1", "content": "", "error": "closed"});
    assert_eq!(code(&input(&[failed], &json!([])), |limits| limits.error_bytes = 5), too_large);
}
