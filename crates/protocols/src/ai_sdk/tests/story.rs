//! Stories of chunks, and the UI chunks that they become.

use expect_test::{Expect, expect};
use helix_agents_core::error::{ErrorCode, ErrorRecord};
use helix_agents_core::stream::{Attempt, Chunk, ChunkKind};
use helix_agents_core::usage::Usage;

use crate::ai_sdk::{Assembler, Major, Options, Progress, Translator};
use crate::errors::ErrorTexts;
use crate::testing::*;
use crate::turn::Folds;

/// Translates chunks, each with its attempt, and returns the lines of the response.
fn translate(options: Options, chunks: &[(Option<u64>, Chunk)]) -> (String, Progress) {
    let session = empty();
    let mut translator = Translator::new(&Folds::new(&session), options);
    let mut assembler = Assembler::new("s-turn-0");
    let (mut out, mut lines) = (Vec::new(), String::new());
    let mut progress = translator.begin(&Folds::new(&session), &mut out);
    for (attempt, chunk) in chunks {
        progress = translator.push_chunk(attempt.map(Attempt), chunk, &mut out);
    }
    for chunk in out {
        assembler.add(&chunk).unwrap();
        let line = serde_json::to_string(&chunk).unwrap();
        assert!(!line.contains(":null"), "the client refuses null: {line}");
        if !line.contains(r#""type":"start","#) {
            lines.push_str(&line);
            lines.push('\n');
        }
    }
    (lines, progress)
}

fn check_with(options: Options, chunks: &[(Option<u64>, Chunk)], expected: &Expect) {
    expected.assert_eq(&translate(options, chunks).0);
}

/// Checks a story of the root session in its first step, whose model call is attempt 1.
fn check(kinds: impl IntoIterator<Item = ChunkKind>, expected: &Expect) {
    let chunks: Vec<_> = kinds.into_iter().map(|kind| (Some(1), own(1, kind))).collect();
    check_with(Options::default(), &chunks, expected);
}

#[test]
fn texts_and_reasoning_are_parts_that_end_before_the_next_one() {
    check(
        [thinking("Hm"), thinking("."), text("It "), text("rains."), text(""), checkpoint()],
        &expect![[r#"
            {"type":"message-metadata","messageMetadata":{"run":"r1"}}
            {"type":"start-step"}
            {"type":"reasoning-start","id":"1-0"}
            {"type":"reasoning-delta","id":"1-0","delta":"Hm"}
            {"type":"reasoning-delta","id":"1-0","delta":"."}
            {"type":"reasoning-end","id":"1-0"}
            {"type":"text-start","id":"1-1"}
            {"type":"text-delta","id":"1-1","delta":"It "}
            {"type":"text-delta","id":"1-1","delta":"rains."}
            {"type":"text-end","id":"1-1"}
            {"type":"finish-step"}
        "#]],
    );
}

#[test]
fn a_call_of_the_server_is_executed_by_the_provider() {
    let kinds = [
        arg_start(0, "weather"),
        arg(0, r#"{"city":"#),
        arg(0, r#""Graz"}"#),
        tool_start("1.0", "weather"),
        tool_end("1.0", "weather"),
        checkpoint(),
        ended("completed"),
    ];
    check(
        kinds,
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"start-step"}
        {"type":"tool-input-start","toolCallId":"1.0","toolName":"weather"}
        {"type":"tool-input-delta","toolCallId":"1.0","inputTextDelta":"{\"city\":"}
        {"type":"tool-input-delta","toolCallId":"1.0","inputTextDelta":"\"Graz\"}"}
        {"type":"tool-input-available","toolCallId":"1.0","toolName":"weather","input":{"city":"Graz"},"providerExecuted":true}
        {"type":"tool-output-available","toolCallId":"1.0","output":"rain","providerExecuted":true}
        {"type":"finish-step"}
        {"type":"finish","finishReason":"stop"}
    "#]],
    );
}

#[test]
fn a_call_of_the_client_is_left_to_the_page() {
    check(
        [client_start("1.0", "ask"), suspended()],
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"start-step"}
        {"type":"tool-input-available","toolCallId":"1.0","toolName":"ask","input":{"city":"Graz"}}
        {"type":"finish","finishReason":"tool-calls"}
    "#]],
    );
}

#[test]
fn an_approval_has_an_id_with_the_digest_and_runs_in_the_same_step() {
    let kinds = [approval("1.0", "pay"), tool_start("1.0", "pay"), tool_end("1.0", "pay")];
    check(
        kinds,
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"start-step"}
        {"type":"tool-input-available","toolCallId":"1.0","toolName":"pay","input":{"city":"Graz"},"providerExecuted":false}
        {"type":"tool-approval-request","approvalId":"1.0~9f2c","toolCallId":"1.0"}
        {"type":"tool-approval-response","approvalId":"1.0~9f2c","approved":true}
        {"type":"tool-input-available","toolCallId":"1.0","toolName":"pay","input":{"city":"Graz"},"providerExecuted":true}
        {"type":"tool-output-available","toolCallId":"1.0","output":"rain","providerExecuted":true}
    "#]],
    );
    let [error, end] = tool_error("1.0", "pay", ErrorCode::ToolDenied);
    check(
        [approval("1.0", "pay"), error, end],
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"start-step"}
        {"type":"tool-input-available","toolCallId":"1.0","toolName":"pay","input":{"city":"Graz"},"providerExecuted":false}
        {"type":"tool-approval-request","approvalId":"1.0~9f2c","toolCallId":"1.0"}
        {"type":"tool-approval-response","approvalId":"1.0~9f2c","approved":false}
        {"type":"tool-output-denied","toolCallId":"1.0"}
    "#]],
    );
}

#[test]
fn version_six_gets_no_answer_to_an_approval_request() {
    let kinds = [approval("1.0", "pay"), tool_start("1.0", "pay")];
    let chunks: Vec<_> = kinds.into_iter().map(|kind| (None, own(1, kind))).collect();
    check_with(
        Options::default().major(Major::Six),
        &chunks,
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"start-step"}
        {"type":"tool-input-available","toolCallId":"1.0","toolName":"pay","input":{"city":"Graz"},"providerExecuted":false}
        {"type":"tool-approval-request","approvalId":"1.0~9f2c","toolCallId":"1.0"}
        {"type":"tool-input-available","toolCallId":"1.0","toolName":"pay","input":{"city":"Graz"},"providerExecuted":true}
    "#]],
    );
}

#[test]
fn a_failed_call_has_an_error_and_one_that_never_started_an_input_error() {
    let [error, end] = tool_error("1.0", "pay", ErrorCode::ToolTimeout);
    check(
        [tool_start("1.0", "pay"), error, end],
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"start-step"}
        {"type":"tool-input-available","toolCallId":"1.0","toolName":"pay","input":{"city":"Graz"},"providerExecuted":true}
        {"type":"tool-output-error","toolCallId":"1.0","errorText":"it is closed","providerExecuted":true}
    "#]],
    );
    let [error, end] = tool_error("1.0", "pay", ErrorCode::ToolInputInvalid);
    check(
        [arg_start(0, "pay"), arg(0, "{\"to\": "), error, end],
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"start-step"}
        {"type":"tool-input-start","toolCallId":"1.0","toolName":"pay"}
        {"type":"tool-input-delta","toolCallId":"1.0","inputTextDelta":"{\"to\": "}
        {"type":"tool-input-error","toolCallId":"1.0","toolName":"pay","input":"{\"to\": ","errorText":"it is closed","providerExecuted":true}
    "#]],
    );
}

#[test]
fn the_message_of_a_tools_error_is_only_shown_on_request() {
    let [error, end] = tool_error("1.0", "pay", ErrorCode::ToolFailed);
    let kinds = [tool_start("1.0", "pay"), error, end];
    let chunks: Vec<_> = kinds.into_iter().map(|kind| (None, own(1, kind))).collect();
    let last = |options| {
        let (lines, _) = translate(options, &chunks);
        lines.lines().last().unwrap().to_owned()
    };
    let own = last(Options::default());
    assert!(own.contains("the tool failed (tool_failed)") && !own.contains("closed"), "{own}");
    let all = last(Options::default().error_texts(ErrorTexts::All));
    assert!(all.contains("it is closed"), "{all}");
}

#[test]
fn progress_and_state_are_transient_and_custom_data_has_an_id() {
    let call = || "1.0".into();
    let progress =
        ChunkKind::ToolProgress { call: call(), message: "half".to_owned(), fraction: Some(0.5) };
    let custom = || ChunkKind::Custom { name: "note".to_owned(), data: r#"{"a":1}"#.to_owned() };
    let patch = serde_json::from_str(r#"[{"op":"add","path":"/a","value":1}]"#).unwrap();
    let kinds =
        [tool_start("1.0", "t"), progress, custom(), custom(), ChunkKind::StatePatch { patch }];
    check(
        kinds,
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"start-step"}
        {"type":"tool-input-available","toolCallId":"1.0","toolName":"t","input":{"city":"Graz"},"providerExecuted":true}
        {"type":"data-tool-progress","data":{"toolCallId":"1.0","message":"half","fraction":0.5},"transient":true}
        {"type":"data-note","id":"1.0-1","data":{"a":1}}
        {"type":"data-note","id":"1.0-2","data":{"a":1}}
        {"type":"data-state-patch","data":[{"op":"add","path":"/a","value":1}],"transient":true}
    "#]],
    );
}

/// The second attempt at the call replaces the data of the first one.
#[test]
fn a_repeated_call_repeats_the_ids_of_its_data() {
    let custom = |data: &str| ChunkKind::Custom { name: "note".to_owned(), data: data.to_owned() };
    let chunks = [
        (Some(2), own(1, tool_start("1.0", "t"))),
        (Some(2), own(1, custom("1"))),
        (None, own(1, discarded(2))),
        (Some(3), own(1, tool_start("1.0", "t"))),
        (Some(3), own(1, custom("2"))),
    ];
    check_with(
        Options::default(),
        &chunks,
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"start-step"}
        {"type":"tool-input-available","toolCallId":"1.0","toolName":"t","input":{"city":"Graz"},"providerExecuted":true}
        {"type":"data-note","id":"1.0-1","data":1}
        {"type":"tool-input-available","toolCallId":"1.0","toolName":"t","input":{"city":"Graz"},"providerExecuted":true}
        {"type":"data-note","id":"1.0-1","data":2}
    "#]],
    );
}

#[test]
fn a_discarded_reply_resets_the_step() {
    let chunks = [
        (Some(1), own(1, text("It ra"))),
        (Some(1), own(1, arg_start(0, "weather"))),
        (None, own(1, discarded(1))),
        (Some(2), own(1, text("It snows."))),
        (Some(2), own(1, arg_start(0, "weather"))),
    ];
    check_with(
        Options::default(),
        &chunks,
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"start-step"}
        {"type":"text-start","id":"1-0"}
        {"type":"text-delta","id":"1-0","delta":"It ra"}
        {"type":"text-end","id":"1-0"}
        {"type":"tool-input-start","toolCallId":"1.0","toolName":"weather"}
        {"type":"reset-step"}
        {"type":"text-start","id":"1-0"}
        {"type":"text-delta","id":"1-0","delta":"It snows."}
        {"type":"text-end","id":"1-0"}
        {"type":"tool-input-start","toolCallId":"1.0","toolName":"weather"}
    "#]],
    );
    check_with(
        Options::default().major(Major::Six),
        &chunks,
        &expect![[r#"
            {"type":"message-metadata","messageMetadata":{"run":"r1"}}
            {"type":"start-step"}
            {"type":"text-start","id":"1-0"}
            {"type":"text-delta","id":"1-0","delta":"It ra"}
            {"type":"text-end","id":"1-0"}
            {"type":"tool-input-start","toolCallId":"1.0","toolName":"weather"}
            {"type":"tool-input-error","toolCallId":"1.0","toolName":"weather","input":{},"errorText":"the reply was discarded","providerExecuted":true}
            {"type":"data-discarded","id":"step-1","data":{"step":1}}
            {"type":"finish-step"}
            {"type":"start-step"}
            {"type":"text-start","id":"2-0"}
            {"type":"text-delta","id":"2-0","delta":"It snows."}
            {"type":"text-end","id":"2-0"}
            {"type":"tool-input-start","toolCallId":"1.0","toolName":"weather"}
        "#]],
    );
}

#[test]
fn a_sub_agent_is_one_part_and_its_questions_are_the_roots() {
    let child = "s-sub-1.0";
    let of_child = |kind| chunk(child, 1, kind);
    let chunks = [
        (Some(1), own(1, sub_agent_start("1.0", child))),
        (Some(2), of_child(text("Drops"))),
        (None, of_child(checkpoint())),
        (Some(3), of_child(tool_start("1.0", "hidden"))),
        (None, of_child(approval("1.1", "publish"))),
        (None, of_child(suspended())),
        (None, of_child(ChunkKind::RunResumed)),
        (Some(4), of_child(tool_start("1.1", "publish"))),
        (Some(4), of_child(tool_end("1.1", "publish"))),
        (None, own(1, sub_agent_end("1.0", child, true))),
        (None, own(1, tool_end("1.0", "subagent__poet"))),
    ];
    check_with(
        Options::default(),
        &chunks,
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"start-step"}
        {"type":"tool-input-available","toolCallId":"1.0","toolName":"subagent__poet","input":{"topic":"rain"},"providerExecuted":true}
        {"type":"data-subagent","id":"s-sub-1.0","data":{"id":"s-sub-1.0","name":"poet","call":"1.0","status":"running"}}
        {"type":"data-subagent","id":"s-sub-1.0","data":{"id":"s-sub-1.0","name":"poet","call":"1.0","status":"running"}}
        {"type":"tool-input-available","toolCallId":"s-sub-1.0#1.1","toolName":"publish","input":{"city":"Graz"},"providerExecuted":false}
        {"type":"tool-approval-request","approvalId":"s-sub-1.0#1.1~9f2c","toolCallId":"s-sub-1.0#1.1"}
        {"type":"data-subagent","id":"s-sub-1.0","data":{"id":"s-sub-1.0","name":"poet","call":"1.0","status":"suspended"}}
        {"type":"data-subagent","id":"s-sub-1.0","data":{"id":"s-sub-1.0","name":"poet","call":"1.0","status":"running"}}
        {"type":"tool-approval-response","approvalId":"s-sub-1.0#1.1~9f2c","approved":true}
        {"type":"tool-input-available","toolCallId":"s-sub-1.0#1.1","toolName":"publish","input":{"city":"Graz"},"providerExecuted":true}
        {"type":"tool-output-available","toolCallId":"s-sub-1.0#1.1","output":"rain","providerExecuted":true}
        {"type":"data-subagent","id":"s-sub-1.0","data":{"id":"s-sub-1.0","name":"poet","call":"1.0","status":"completed"}}
        {"type":"tool-output-available","toolCallId":"1.0","output":"rain","providerExecuted":true}
    "#]],
    );
}

/// A text that follows its last update too soon is held back until more arrives, or until nothing does.
#[test]
fn the_last_text_of_a_sub_agent_is_shown_when_it_pauses() {
    let session = empty();
    let mut translator = Translator::new(&Folds::new(&session), Options::default());
    let mut out = Vec::new();
    let (Progress::Open | Progress::Done | Progress::Broken) =
        translator.begin(&Folds::new(&session), &mut out);
    let child = "s-sub-1.0";
    for chunk in [own(1, sub_agent_start("1.0", child)), chunk(child, 1, text("Roses "))] {
        assert_eq!(translator.push_chunk(Some(Attempt(1)), &chunk, &mut out), Progress::Open);
    }
    out.clear();
    assert!(translator.has_delayed());
    translator.flush(&mut out);
    let [shown] = out.as_slice() else { panic!("{out:?}") };
    let shown = serde_json::to_value(shown).unwrap();
    assert_eq!(
        (&shown["type"], &shown["data"]["text"]),
        (&"data-subagent".into(), &"Roses ".into())
    );
    assert!(!translator.has_delayed());
}

/// Calls of sub-agents follow the others in the recorded message, whatever the order of the reply.
#[test]
fn the_call_after_that_of_a_sub_agent_has_its_recorded_id() {
    let kinds = [
        arg_start(0, "subagent__poet"),
        arg(0, "{}"),
        arg_start(1, "weather"),
        arg(1, "{}"),
        tool_start("1.0", "weather"),
        sub_agent_start("1.1", "s-sub-1.1"),
    ];
    check(
        kinds,
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"start-step"}
        {"type":"tool-input-start","toolCallId":"1.0","toolName":"weather"}
        {"type":"tool-input-delta","toolCallId":"1.0","inputTextDelta":"{}"}
        {"type":"tool-input-available","toolCallId":"1.0","toolName":"weather","input":{"city":"Graz"},"providerExecuted":true}
        {"type":"tool-input-available","toolCallId":"1.1","toolName":"subagent__poet","input":{"topic":"rain"},"providerExecuted":true}
        {"type":"data-subagent","id":"s-sub-1.1","data":{"id":"s-sub-1.1","name":"poet","call":"1.1","status":"running"}}
    "#]],
    );
}

/// A run that is aborted after a crash ends the calls that never started.
#[test]
fn the_call_of_a_sub_agent_that_never_started_has_its_arguments() {
    let [error, end] = tool_error("1.2", "subagent__poet", ErrorCode::ToolNotRun);
    let kinds = [
        arg_start(0, "subagent__poet"),
        arg(0, r#"{"topic":"snow"}"#),
        arg_start(1, "weather"),
        arg(1, "{}"),
        arg_start(2, "subagent__poet"),
        arg(2, r#"{"topic":"#),
        arg(2, r#""rain"}"#),
        error,
        end,
    ];
    check(
        kinds,
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"start-step"}
        {"type":"tool-input-start","toolCallId":"1.0","toolName":"weather"}
        {"type":"tool-input-delta","toolCallId":"1.0","inputTextDelta":"{}"}
        {"type":"tool-input-error","toolCallId":"1.2","toolName":"subagent__poet","input":{"topic":"rain"},"errorText":"it is closed","providerExecuted":true}
    "#]],
    );
}

#[test]
fn an_output_is_data_unless_it_is_the_text() {
    let output = |output: &str| ChunkKind::Output { output: output.to_owned() };
    check(
        [text("It rains."), checkpoint(), output(r#""It rains.""#), ended("completed")],
        &expect![[r#"
            {"type":"message-metadata","messageMetadata":{"run":"r1"}}
            {"type":"start-step"}
            {"type":"text-start","id":"1-0"}
            {"type":"text-delta","id":"1-0","delta":"It rains."}
            {"type":"text-end","id":"1-0"}
            {"type":"finish-step"}
            {"type":"finish","finishReason":"stop"}
        "#]],
    );
    check(
        [checkpoint(), output(r#"{"sky":"grey"}"#), ended("completed")],
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"start-step"}
        {"type":"finish-step"}
        {"type":"data-output","id":"output","data":{"sky":"grey"}}
        {"type":"finish","finishReason":"stop"}
    "#]],
    );
}

#[test]
fn a_stopped_run_ends_with_an_abort() {
    let reason = Some("enough".to_owned());
    check(
        [text("It"), ChunkKind::RunInterrupted { reason }],
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"start-step"}
        {"type":"text-start","id":"1-0"}
        {"type":"text-delta","id":"1-0","delta":"It"}
        {"type":"text-end","id":"1-0"}
        {"type":"abort","reason":"enough"}
        {"type":"finish","finishReason":"interrupted"}
    "#]],
    );
    check(
        [text("It"), ended("aborted")],
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"start-step"}
        {"type":"text-start","id":"1-0"}
        {"type":"text-delta","id":"1-0","delta":"It"}
        {"type":"text-end","id":"1-0"}
        {"type":"abort"}
        {"type":"finish","finishReason":"interrupted"}
    "#]],
    );
}

#[test]
fn a_failed_run_ends_with_an_error_behind_its_metadata() {
    let error = ErrorRecord::new(ErrorCode::ProviderUnauthorized, "the key sk-1 is wrong");
    check(
        [ChunkKind::Error { error }, ended("failed")],
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"message-metadata","messageMetadata":{"error":{"code":"provider_unauthorized","kind":"unauthorized"}}}
        {"type":"error","errorText":"the run failed (provider_unauthorized)"}
    "#]],
    );
}

/// The page would send its answers again and again.
#[test]
fn an_empty_step_follows_answered_calls_at_the_end_of_a_response() {
    let kinds = [client_start("1.0", "ask"), tool_end("1.0", "ask"), ended("completed")];
    check(
        kinds,
        &expect![[r#"
            {"type":"message-metadata","messageMetadata":{"run":"r1"}}
            {"type":"start-step"}
            {"type":"tool-input-available","toolCallId":"1.0","toolName":"ask","input":{"city":"Graz"}}
            {"type":"tool-output-available","toolCallId":"1.0","output":"rain"}
            {"type":"start-step"}
            {"type":"finish-step"}
            {"type":"message-metadata","messageMetadata":{"run":"r1"}}
            {"type":"finish","finishReason":"stop"}
        "#]],
    );
}

#[test]
fn missing_chunks_break_the_connection() {
    let chunks = [(None, own(0, ChunkKind::StreamResync)), (None, own(1, text("more")))];
    let (lines, progress) = translate(Options::default(), &chunks);
    assert_eq!((lines.as_str(), progress), ("", Progress::Broken));
}

#[test]
fn a_run_that_takes_over_only_changes_the_metadata() {
    let mut taken = own(1, text("more"));
    taken.run = "r2".into();
    let chunks = [(Some(1), own(1, text("It "))), (Some(1), taken)];
    check_with(
        Options::default(),
        &chunks,
        &expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"start-step"}
        {"type":"text-start","id":"1-0"}
        {"type":"text-delta","id":"1-0","delta":"It "}
        {"type":"message-metadata","messageMetadata":{"run":"r2"}}
        {"type":"text-delta","id":"1-0","delta":"more"}
    "#]],
    );
}

#[test]
fn a_complete_turn_ends_with_its_usage() {
    let mut usage = Usage::new(100, 20);
    usage.cached_tokens = 30;
    let end = ChunkKind::RunEnded { status: "completed".to_owned(), usage: Some(usage) };
    let (lines, _) = translate(Options::default(), &[(None, own(1, end))]);
    expect![[r#"
        {"type":"message-metadata","messageMetadata":{"run":"r1"}}
        {"type":"finish","finishReason":"stop","messageMetadata":{"usage":{"inputTokens":100,"outputTokens":20,"totalTokens":120,"cachedInputTokens":30,"cacheWriteInputTokens":0,"reasoningTokens":0}}}
    "#]]
    .assert_eq(&lines);
}

/// A tool must not be able to send the data that the translator sends itself.
#[test]
fn custom_data_with_a_reserved_name_has_a_prefix() {
    let kinds = ["output", "discarded", "note"].map(|name| custom(name, "1"));
    check(
        kinds,
        &expect![[r#"
            {"type":"message-metadata","messageMetadata":{"run":"r1"}}
            {"type":"data-custom-output","id":"model-1-1","data":1}
            {"type":"data-custom-discarded","id":"model-1-2","data":1}
            {"type":"data-note","id":"model-1-3","data":1}
        "#]],
    );
}
