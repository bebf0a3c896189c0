//! Assembly of streamed calls, with all the ways in which servers label their pieces.

use helix_agents_core::llm::LlmResponse;
use helix_agents_core::message::Arguments;
use helix_agents_core::step::{ParsedSubAgentCall, ParsedToolCall, StepResult, StopReason};
use serde_json::json;

use crate::support::{Ask, content, delta, finish, piece, play, play_for, text};

fn calls(response: &LlmResponse) -> &[ParsedToolCall] {
    match &response.result {
        StepResult::ToolCalls { tool_calls, .. } => tool_calls,
        other => panic!("no calls: {other:?}"),
    }
}

#[track_caller]
fn check_calls(lines: &[String], expected: &[&str]) {
    let calls: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("call ")).collect();
    assert_eq!(calls, expected);
    // The assembled stream equals the call.
    for (index, call) in calls.iter().enumerate() {
        let prefix = format!("args {index} ");
        let streamed: String = lines.iter().filter_map(|line| line.strip_prefix(&prefix)).collect();
        let stated = call.splitn(3, ' ').nth(2).unwrap().trim_start_matches("malformed ");
        assert!(
            stated == streamed || (stated == "{}" && streamed.is_empty()),
            "{stated} {streamed}"
        );
    }
}

#[tokio::test]
async fn parallel_calls_are_distinguished_by_index() {
    let (response, lines) = play(&[
        piece(r#"{"index":0,"id":"c1","type":"function","function":{"name":"add","arguments":""}}"#),
        piece(r#"{"index":1,"id":"c2","type":"function","function":{"name":"sub","arguments":"{\"a\""}}"#),
        piece(r#"{"index":0,"function":{"arguments":"{\"a\":"}}"#),
        piece(r#"{"index":1,"function":{"arguments":":2}"}}"#),
        piece(r#"{"index":0,"function":{"arguments":"1}"}}"#),
        finish("tool_calls"),
    ])
    .await;
    assert_eq!(
        lines,
        [
            "start 0 add",
            "start 1 sub",
            r#"args 1 {"a""#,
            r#"args 0 {"a":"#,
            "args 1 :2}",
            "args 0 1}",
            r#"call c1 add {"a":1}"#,
            r#"call c2 sub {"a":2}"#,
        ]
    );
    let expected = StepResult::ToolCalls {
        content: None,
        tool_calls: vec![
            ParsedToolCall::new("c1", "add", json!({"a": 1}).into()),
            ParsedToolCall::new("c2", "sub", json!({"a": 2}).into()),
        ],
        sub_agent_calls: vec![],
        thinking: None,
        stop_reason: Some(StopReason::ToolUse),
    };
    assert_eq!(response.result, expected);
}

#[tokio::test]
async fn an_id_and_a_name_in_every_delta_are_one_call() {
    let part = |arguments: &str| {
        let arguments = json!(arguments);
        delta(&format!(
            r#"{{"role":null,"content":null,
            "function_call":{{"name":"add","arguments":{arguments}}},
            "tool_calls":[{{"index":0,"id":"c1","type":"function","function":{{"name":"add","arguments":{arguments}}}}}]}}"#
        ).replace('\n', ""))
    };
    let (_, lines) = play(&[part(""), part("{\"a\":"), part("1}"), finish("tool_calls")]).await;
    check_calls(&lines, &[r#"c1 add {"a":1}"#]);
    assert_eq!(lines.iter().filter(|line| line.starts_with("start")).count(), 1);
}

#[tokio::test]
async fn a_fresh_id_in_every_delta_is_still_one_call() {
    let part = |id: &str, rest: &str| {
        piece(&format!(r#"{{"index":0,"id":"{id}","function":{{{rest}}}}}"#))
    };
    let (_, lines) = play(&[
        part("x1", r#""name":"add","arguments":"""#),
        part("x2", r#""arguments":"{\"a\":""#),
        part("x3", r#""arguments":"1}""#),
        finish("tool_calls"),
    ])
    .await;
    check_calls(&lines, &[r#"x1 add {"a":1}"#]);
}

#[tokio::test]
async fn whole_calls_under_one_index_or_none_are_several() {
    for index in ["\"index\":0,", ""] {
        let part = |id: &str, n: u32| {
            piece(&format!(
                r#"{{{index}"id":"{id}","function":{{"name":"add","arguments":"{{\"n\":{n}}}"}}}}"#
            ))
        };
        let (_, lines) = play(&[part("a", 1), part("b", 2), finish("tool_calls")]).await;
        check_calls(&lines, &[r#"a add {"n":1}"#, r#"b add {"n":2}"#]);
    }
}

#[tokio::test]
async fn calls_without_index_and_id_get_generated_ids() {
    let part = |rest: &str| piece(&format!(r#"{{"function":{{{rest}}}}}"#));
    let (_, lines) = play(&[
        part(r#""name":"add","arguments":"{\"n\":""#),
        part(r#""arguments":"1""#),
        part(r#""name":"add","arguments":"}""#),
        part(r#""name":"add","arguments":"{\"n\":2}""#),
        part(r#""name":"sub","arguments":"{}""#),
        finish("tool_calls"),
    ])
    .await;
    check_calls(&lines, &[r#"call_1_0 add {"n":1}"#, r#"call_1_1 add {"n":2}"#, "call_1_2 sub {}"]);
}

#[tokio::test]
async fn the_same_id_twice_in_one_reply_is_made_unique() {
    let part = |index: u32| {
        piece(&format!(
            r#"{{"index":{index},"id":"0","function":{{"name":"add","arguments":"{{}}"}}}}"#
        ))
    };
    let (_, lines) = play(&[part(0), part(1), finish("tool_calls")]).await;
    check_calls(&lines, &["0 add {}", "call_1_1 add {}"]);
}

#[tokio::test]
async fn a_legacy_function_call_is_a_call() {
    let (response, lines) = play(&[
        delta(r#"{"content":null,"function_call":{"name":"add","arguments":"{\"a\""}}"#),
        delta(r#"{"function_call":{"arguments":":1}"}}"#),
        finish("function_call"),
    ])
    .await;
    check_calls(&lines, &[r#"call_1_0 add {"a":1}"#]);
    assert_eq!(response.result.stop_reason(), Some(StopReason::ToolUse));
}

#[tokio::test]
async fn arguments_before_the_name_and_arguments_as_json_are_accepted() {
    let (_, lines) = play(&[
        piece(r#"{"index":3,"id":"c1","function":{"arguments":"{\"a\""}}"#),
        piece(r#"{"index":3,"function":{"name":"add","arguments":":1}"}}"#),
        piece(r#"{"index":5,"id":"c2","function":{"name":"sub","arguments":{"b":2}}}"#),
        piece(r#"{"index":7,"id":"c3","function":{"name":"none"}}"#),
        finish("tool_calls"),
    ])
    .await;
    check_calls(&lines, &[r#"c1 add {"a":1}"#, r#"c2 sub {"b":2}"#, "c3 none {}"]);
    assert_eq!(lines[0..2], ["start 0 add", r#"args 0 {"a":1}"#]);
}

#[tokio::test]
async fn malformed_and_truncated_arguments_are_kept_as_text() {
    let part = |arguments: &str| {
        let arguments = json!(arguments);
        piece(&format!(
            r#"{{"index":0,"id":"c1","function":{{"name":"add","arguments":{arguments}}}}}"#
        ))
    };
    let (response, lines) = play(&[part("{'a': 1}"), finish("tool_calls")]).await;
    check_calls(&lines, &["c1 add malformed {'a': 1}"]);
    assert_eq!(calls(&response)[0].arguments, Arguments::Malformed("{'a': 1}".to_owned()));

    for cut in ["{\"a\": 1", "", "1"] {
        let (response, _) = play(&[part(cut), finish("length")]).await;
        assert_eq!(calls(&response)[0].arguments, Arguments::Malformed(cut.to_owned()));
        assert_eq!(response.result.stop_reason(), Some(StopReason::MaxTokens));
    }
    let (response, _) = play(&[part("{\"a\": 1}"), finish("length")]).await;
    assert_eq!(calls(&response)[0].arguments, json!({"a": 1}).into());
}

#[tokio::test]
async fn a_call_that_was_cut_before_its_name_is_dropped() {
    let (response, _) =
        play(&[text("I will"), piece(r#"{"index":0,"id":"c1"}"#), finish("length")]).await;
    assert_eq!(content(&response), "I will");
    assert_eq!(response.result.stop_reason(), Some(StopReason::MaxTokens));
}

#[tokio::test]
async fn calls_of_sub_agents_are_recognised() {
    let (response, lines) = play(&[
        text("Let me ask."),
        piece(r#"{"index":0,"id":"c1","function":{"name":"subagent__writer","arguments":"{\"t\":1}"}}"#),
        piece(r#"{"index":1,"id":"c2","function":{"name":"add","arguments":"{}"}}"#),
        finish("tool_calls"),
    ])
    .await;
    check_calls(&lines, &[r#"c1 subagent__writer {"t":1}"#, "c2 add {}"]);
    let expected = StepResult::ToolCalls {
        content: Some("Let me ask.".to_owned()),
        tool_calls: vec![ParsedToolCall::new("c2", "add", json!({}).into())],
        sub_agent_calls: vec![ParsedSubAgentCall {
            id: "c1".into(),
            provider_id: None,
            agent_type: "writer".to_owned(),
            input: json!({"t": 1}).into(),
        }],
        thinking: None,
        stop_reason: Some(StopReason::ToolUse),
    };
    assert_eq!(response.result, expected);
}

#[tokio::test]
async fn generated_ids_are_unique_in_a_conversation() {
    let mut ask = Ask::default();
    ask.messages.push(ask.messages[0].clone());
    let call = piece(r#"{"index":0,"function":{"name":"add","arguments":"{}"}}"#);
    let (_, lines) = play_for(&ask, &[call, finish("tool_calls")]).await;
    check_calls(&lines, &["call_2_0 add {}"]);
}
