//! Reading of streams, in all dialects of servers.

use helix_agents_core::json::Json;
use helix_agents_core::llm::LlmResponse;
use helix_agents_core::message::Thinking;
use helix_agents_core::step::{StepResult, StopReason};
use helix_agents_core::usage::Usage;
use helix_agents_llm::{ModelServer, ServerProfile};
use serde_json::json;

use crate::support::{
    Ask, Reply, Server, adapter, content, delta, failure, finish, options, piece, play, play_for,
    stream, text,
};

#[tokio::test]
async fn text_comes_in_deltas_with_usage_and_model() {
    let usage =
        r#"{"model":"m1-2026","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":9,
        "total_tokens":29,"prompt_tokens_details":{"cached_tokens":16},
        "completion_tokens_details":{"reasoning_tokens":4}}}"#
            .replace('\n', "");
    let first = r#"{"id":"chat-7","model":"m1-2026","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
    let (response, lines) =
        play(&[first, &text("Hel"), &text("lo."), &finish("stop"), &usage]).await;
    let result = StepResult::Text {
        content: "Hello.".to_owned(),
        thinking: None,
        should_stop: true,
        stop_reason: Some(StopReason::EndTurn),
    };
    let usage = Usage::new(20, 9).with_cached_tokens(16).with_reasoning_tokens(4);
    let mut expected = LlmResponse::new(result, usage);
    expected.model = Some("m1-2026".into());
    expected.requested = Some("m1".into());
    expected.provider = Some("local".into());
    expected.response_id = Some("chat-7".to_owned());
    expected.raw_stop_reason = Some("stop".to_owned());
    assert_eq!(response, expected);
    assert_eq!(lines, ["text Hel", "text lo."]);
}

#[tokio::test]
async fn missing_usage_is_zero_and_running_totals_are_not_added() {
    let (response, _) = play(&[text("a"), finish("stop")]).await;
    assert!(response.usage.is_zero());
    let total = |n: u32| {
        format!(
            r#"{{"choices":[{{"delta":{{"content":"a"}}}}],"usage":{{"prompt_tokens":5,"completion_tokens":{n}}}}}"#
        )
    };
    let (response, _) = play(&[total(1), total(2), finish("stop")]).await;
    assert_eq!((response.usage.input_tokens, response.usage.output_tokens), (5, 2));
}

#[tokio::test]
async fn reasoning_is_thinking_under_either_name() {
    let parts = [
        r#"{"reasoning_content":"So "}"#,
        r#"{"reasoning":"be"}"#,
        r#"{"reasoning_content":" it","reasoning":" it"}"#,
        r#"{"reasoning":{"effort":"high"},"content":"42"}"#,
    ];
    let mut chunks = parts.map(delta).to_vec();
    chunks.push(finish("stop"));
    let (response, lines) = play(&chunks).await;
    assert_eq!(lines, ["thinking So ", "thinking be", "thinking  it", "text 42"]);
    let StepResult::Text { thinking, content, .. } = response.result else {
        panic!("not a text");
    };
    assert_eq!(thinking, Some(Thinking::new("So be it")));
    assert_eq!(content, "42");
}

#[tokio::test]
async fn a_refusal_has_the_stop_reason_refusal() {
    let (response, lines) = play(&[
        delta(r#"{"content":null,"refusal":"I can't "}"#),
        delta(r#"{"refusal":"do that."}"#),
        finish("stop"),
    ])
    .await;
    assert_eq!(content(&response), "I can't do that.");
    assert_eq!(response.result.stop_reason(), Some(StopReason::Refusal));
    assert_eq!(lines, ["text I can't ", "text do that."]);
}

#[tokio::test]
async fn every_stop_reason_has_its_meaning() {
    let table = [
        ("stop", StopReason::EndTurn, true),
        ("length", StopReason::MaxTokens, true),
        ("content_filter", StopReason::ContentFilter, true),
        ("tool_calls", StopReason::ToolUse, false),
        ("function_call", StopReason::ToolUse, false),
        ("solar_flare", StopReason::Unknown, true),
    ];
    for (raw, reason, stops) in table {
        let (response, _) = play(&[text("a"), finish(raw)]).await;
        assert_eq!(response.raw_stop_reason.as_deref(), Some(raw));
        let StepResult::Text { should_stop, stop_reason, .. } = response.result else {
            panic!("not a text");
        };
        assert_eq!((stop_reason, should_stop), (Some(reason), stops), "{raw}");
    }
    // Calls count as calls, whatever stop reason the server gives.
    let call = piece(r#"{"index":0,"id":"c","function":{"name":"add","arguments":"{}"}}"#);
    let (response, _) = play(&[call, finish("stop")]).await;
    assert_eq!(response.result.stop_reason(), Some(StopReason::ToolUse));
}

#[tokio::test]
async fn a_stream_without_a_finish_reason_is_cut_even_if_it_has_its_end_event() {
    for chunks in [vec![text("a")], vec![]] {
        let server = Server::start(vec![Reply::events(stream(&chunks))]).await;
        let response = Ask::default().answer(&adapter(&server)).await;
        let (error, should_stop) = failure(&response);
        assert_eq!((&*error.code, should_stop), ("provider_stream_cut", chunks.is_empty()));
    }
}

#[tokio::test]
async fn a_server_without_finish_reasons_ends_its_streams_with_the_end_event() {
    let mut profile = ServerProfile::compatible();
    profile.finish_reasons = false;
    let server = Server::start(vec![Reply::events(stream([text("a")]))]).await;
    let adapter = ModelServer::new(options(&server).with_profile(profile)).unwrap();
    let response = Ask::default().answer(&adapter).await;
    assert_eq!(content(&response), "a");
    assert_eq!(response.result.stop_reason(), None);
    assert_eq!(response.raw_stop_reason, None);
}

#[tokio::test]
async fn output_after_the_finish_reason_belongs_to_the_reply() {
    let call = piece(r#"{"index":0,"id":"c","function":{"name":"add","arguments":"{}"}}"#);
    let (response, lines) = play(&[text("a"), finish("stop"), text("b"), call]).await;
    assert_eq!(response.result.stop_reason(), Some(StopReason::ToolUse));
    assert_eq!(lines, ["text a", "text b", "start 0 add", "args 0 {}", "call c add {}"]);
    // A `stop` at the end does not undo the reason before it.
    let (response, _) = play(&[text("a"), finish("length"), text("b"), finish("stop")]).await;
    assert_eq!(response.result.stop_reason(), Some(StopReason::MaxTokens));
    assert_eq!(content(&response), "ab");
}

#[tokio::test]
async fn a_connection_lost_after_the_finish_reason_must_not_lose_output() {
    let open = piece(r#"{"index":0,"id":"c","function":{"name":"add","arguments":"{\"a\":"}}"#);
    let cut = [
        vec![text("a"), finish("stop"), text("b")],
        vec![open.clone(), finish("tool_calls")],
        vec![finish("tool_calls"), open.clone()],
    ];
    for chunks in cut {
        let pieces = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
        let server = Server::start(vec![Reply::broken(pieces)]).await;
        let response = Ask::default().answer(&adapter(&server)).await;
        assert_eq!(failure(&response).0.code, "provider_stream_cut", "{chunks:?}");
    }
    let whole =
        [vec![text("a"), finish("stop"), text("b"), finish("stop")], vec![open, finish("length")]];
    for chunks in whole {
        let pieces = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
        let server = Server::start(vec![Reply::broken(pieces)]).await;
        let response = Ask::default().answer(&adapter(&server)).await;
        assert!(response.result.stop_reason() != Some(StopReason::Error), "{chunks:?}");
    }
}

#[tokio::test]
async fn the_end_event_may_be_missing_after_a_finish_reason() {
    let chunk = |json: String| format!("data: {json}\n\n");
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#.to_owned();
    let endings = [vec![], vec!["data: [DONE]".to_owned()], vec![format!("data: {usage}")]];
    for ending in endings {
        let counts = ending.iter().any(|event| event.contains("usage"));
        let pieces = [chunk(text("a")), chunk(finish("stop"))].into_iter().chain(ending);
        let server = Server::start(vec![Reply::events(pieces)]).await;
        let response = Ask::default().answer(&adapter(&server)).await;
        assert_eq!(content(&response), "a");
        assert_eq!(response.usage.is_zero(), !counts);
    }
    // Even if the connection then breaks, nothing of the reply is lost.
    let server =
        Server::start(vec![Reply::broken([chunk(text("a")), chunk(finish("stop"))])]).await;
    let response = Ask::default().answer(&adapter(&server)).await;
    assert_eq!(content(&response), "a");
}

#[tokio::test]
async fn comments_pings_and_unknown_members_are_skipped() {
    let pieces = [
        ": OPENROUTER PROCESSING\n\n".to_owned(),
        "event: ping\ndata: {\"type\":\"ping\"}\n\n".to_owned(),
        "data:\n\n".to_owned(),
        "data: {\"choices\":null,\"usage\":null,\"error\":null,\"prompt_filter_results\":[1]}\n\n".to_owned(),
        "data: {\"choices\":[{\"index\":0,\"delta\":null}]}\n\n".to_owned(),
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\",\"tool_calls\":null,\"function_call\":null,\"x\":{\"y\":[]}},\"logprobs\":{}}]}\r\n\r\n".to_owned(),
        "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"another choice\"}}]}\n\n".to_owned(),
        format!("id: 3\ndata: {}\n\ndata: [DONE]\n\n", finish("stop")),
    ];
    let server = Server::start(vec![Reply::events(pieces)]).await;
    let response = Ask::default().answer(&adapter(&server)).await;
    assert_eq!(content(&response), "a");
}

#[tokio::test]
async fn content_in_parts_is_joined() {
    let (response, _) = play(&[
        delta(r#"{"content":[{"type":"text","text":"a"},{"type":"thinking","thinking":[]},{"type":"text","text":"\u00e9"}]}"#),
        finish("stop"),
    ])
    .await;
    assert_eq!(content(&response), "aé");
}

#[tokio::test]
async fn a_structured_output_is_json_or_stays_text() {
    let ask = || Ask { output_schema: Some(json!({"type": "object"})), ..Ask::default() };
    let (response, _) = play_for(&ask(), &[text("{\"n\":"), text(" 1}\n"), finish("stop")]).await;
    let expected = StepResult::StructuredOutput {
        output: Json::from(json!({"n": 1})),
        thinking: None,
        stop_reason: Some(StopReason::EndTurn),
    };
    assert_eq!(response.result, expected);
    for (words, reason) in [("Sure! {}", "stop"), ("{\"n\": 1}", "length"), ("", "stop")] {
        let (response, _) = play_for(&ask(), &[text(words), finish(reason)]).await;
        assert_eq!(content(&response), words);
    }
    let (response, _) = play(&[text("{\"n\": 1}"), finish("stop")]).await;
    assert_eq!(content(&response), "{\"n\": 1}", "no structured output was requested");
}

/// xAI counts reasoning beside the completion, other servers count it as a part of the completion.
#[tokio::test]
async fn reasoning_beside_the_completion_is_added_to_the_output() {
    for (total, output) in [(241, 229), (13, 1), (u64::MAX, 1)] {
        let usage = format!(
            r#"{{"choices":[],"usage":{{"prompt_tokens":12,"completion_tokens":1,"total_tokens":{total},
            "prompt_tokens_details":{{"cached_tokens":2,"cache_write_tokens":3}},
            "completion_tokens_details":{{"reasoning_tokens":228}}}}}}"#
        );
        let usage = usage.replace('\n', " ");
        let (response, _) = play(&[text("Hi."), finish("stop"), usage]).await;
        let expected = Usage::new(12, output).with_reasoning_tokens(228);
        let expected = expected.with_cached_tokens(2).with_cache_write_tokens(3);
        assert_eq!(response.usage, expected, "{total} tokens in total");
    }
}
