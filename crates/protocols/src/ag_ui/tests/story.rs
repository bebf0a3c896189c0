//! Stories of chunks, and the events that they become.

use expect_test::{Expect, expect};
use helix_agents_core::error::{ErrorCode, ErrorRecord};
use helix_agents_core::stream::{Attempt, Chunk, ChunkKind};
use helix_agents_core::usage::Usage;

use crate::ag_ui::{Options, Progress, Translator};
use crate::testing::*;
use crate::turn::Folds;

/// Translates chunks, each with its attempt, and returns the lines of the response after its beginning.
fn translate(chunks: &[(Option<u64>, Chunk)]) -> (String, Progress) {
    let session = empty();
    let mut translator = Translator::new(&Folds::new(&session), "run-1", Options::default());
    let mut out = Vec::new();
    let mut progress = translator.begin(&Folds::new(&session), &mut out);
    let beginning = out.len();
    for (attempt, chunk) in chunks {
        progress = translator.push_chunk(attempt.map(Attempt), chunk, &mut out);
    }
    let mut lines = String::new();
    for event in out.split_off(beginning) {
        let line = serde_json::to_string(&event).unwrap();
        assert!(!line.contains(":null"), "the client refuses null: {line}");
        lines.push_str(&line);
        lines.push('\n');
    }
    (lines, progress)
}

/// Checks a story of the root session in its first step, whose model call is attempt 1.
fn check(kinds: impl IntoIterator<Item = ChunkKind>, expected: &Expect) {
    let chunks: Vec<_> = kinds.into_iter().map(|kind| (Some(1), own(1, kind))).collect();
    expected.assert_eq(&translate(&chunks).0);
}

#[test]
fn a_response_begins_with_snapshots() {
    let session = empty();
    let mut translator = Translator::new(&Folds::new(&session), "run-1", Options::default());
    let mut out = Vec::new();
    assert_eq!(translator.begin(&Folds::new(&session), &mut out), Progress::Open);
    let lines: Vec<_> = out.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    expect![[r#"
        {"type":"RUN_STARTED","threadId":"s","runId":"run-1","protocolVersion":"1.0"}
        {"type":"MESSAGES_SNAPSHOT","messages":[]}
        {"type":"STATE_SNAPSHOT","snapshot":{}}"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn texts_and_reasoning_are_messages_of_their_step() {
    check(
        [thinking("Hm"), thinking("."), text("It "), text("rains."), text(""), checkpoint()],
        &expect![[r#"
            {"type":"STEP_STARTED","stepName":"step-1"}
            {"type":"REASONING_START","messageId":"r-a1"}
            {"type":"REASONING_MESSAGE_START","messageId":"r-a1","role":"reasoning"}
            {"type":"REASONING_MESSAGE_CONTENT","messageId":"r-a1","delta":"Hm"}
            {"type":"REASONING_MESSAGE_CONTENT","messageId":"r-a1","delta":"."}
            {"type":"REASONING_MESSAGE_END","messageId":"r-a1"}
            {"type":"REASONING_END","messageId":"r-a1"}
            {"type":"TEXT_MESSAGE_START","messageId":"a1","role":"assistant"}
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"a1","delta":"It "}
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"a1","delta":"rains."}
            {"type":"TEXT_MESSAGE_END","messageId":"a1"}
            {"type":"STEP_FINISHED","stepName":"step-1"}
        "#]],
    );
}

#[test]
fn a_call_is_introduced_once_and_has_one_result() {
    let kinds = [
        arg_start(0, "weather"),
        arg(0, r#"{"city":"#),
        arg(0, r#""Graz"}"#),
        tool_start("1.0", "weather"),
        tool_end("1.0", "weather"),
        tool_end("1.0", "weather"),
        checkpoint(),
        ended("completed"),
    ];
    check(
        kinds,
        &expect![[r#"
        {"type":"STEP_STARTED","stepName":"step-1"}
        {"type":"TOOL_CALL_START","toolCallId":"1.0","toolCallName":"weather","parentMessageId":"a1"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"1.0","delta":"{\"city\":"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"1.0","delta":"\"Graz\"}"}
        {"type":"TOOL_CALL_END","toolCallId":"1.0"}
        {"type":"TOOL_CALL_RESULT","messageId":"t-1.0","toolCallId":"1.0","content":"\"rain\"","role":"tool"}
        {"type":"STEP_FINISHED","stepName":"step-1"}
        {"type":"RUN_FINISHED","threadId":"s","runId":"run-1","outcome":{"type":"success"}}
    "#]],
    );
}

#[test]
fn a_call_that_was_not_written_is_introduced_when_it_starts() {
    check(
        [tool_start("1.0", "weather")],
        &expect![[r#"
        {"type":"STEP_STARTED","stepName":"step-1"}
        {"type":"TOOL_CALL_START","toolCallId":"1.0","toolCallName":"weather","parentMessageId":"a1"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"1.0","delta":"{\"city\":\"Graz\"}"}
        {"type":"TOOL_CALL_END","toolCallId":"1.0"}
    "#]],
    );
}

/// The model may write text and several calls at once.
#[test]
fn arguments_continue_after_text_and_other_calls() {
    let kinds = [
        arg_start(0, "weather"),
        arg(0, r#"{"city":"#),
        text("I look. "),
        arg_start(1, "time"),
        arg(1, "{}"),
        arg(0, r#""Graz"}"#),
        text("Now."),
        tool_start("1.0", "weather"),
        tool_start("1.1", "time"),
    ];
    check(
        kinds,
        &expect![[r#"
        {"type":"STEP_STARTED","stepName":"step-1"}
        {"type":"TOOL_CALL_START","toolCallId":"1.0","toolCallName":"weather","parentMessageId":"a1"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"1.0","delta":"{\"city\":"}
        {"type":"TEXT_MESSAGE_START","messageId":"a1","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"a1","delta":"I look. "}
        {"type":"TEXT_MESSAGE_END","messageId":"a1"}
        {"type":"TOOL_CALL_START","toolCallId":"1.1","toolCallName":"time","parentMessageId":"a1"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"1.1","delta":"{}"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"1.0","delta":"\"Graz\"}"}
        {"type":"TEXT_MESSAGE_START","messageId":"a1","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"a1","delta":"Now."}
        {"type":"TEXT_MESSAGE_END","messageId":"a1"}
        {"type":"TOOL_CALL_END","toolCallId":"1.0"}
        {"type":"TOOL_CALL_END","toolCallId":"1.1"}
    "#]],
    );
}

#[test]
fn arguments_that_the_approver_changed_are_in_the_metadata_of_the_result() {
    let edited = ChunkKind::ToolStart {
        call: "1.0".into(),
        tool: "pay".into(),
        arguments: r#"{"city":"Wien"}"#.to_owned(),
        client: false,
    };
    let last = |start| {
        let kinds = [approval("1.0", "pay"), start, tool_end("1.0", "pay")];
        let chunks: Vec<_> = kinds.into_iter().map(|kind| (None, own(1, kind))).collect();
        translate(&chunks).0.lines().last().unwrap().to_owned()
    };
    let with_edited = last(edited);
    assert!(with_edited.ends_with(r#""metadata":{"arguments":{"city":"Wien"}}}"#), "{with_edited}");
    let as_shown = last(tool_start("1.0", "pay"));
    assert!(!as_shown.contains("metadata"), "{as_shown}");
}

#[test]
fn a_complete_turn_ends_with_its_usage() {
    let usage = Some(Usage::new(100, 20));
    let end = ChunkKind::RunEnded { status: "completed".to_owned(), usage };
    check(
        [end],
        &expect![[r#"
        {"type":"RUN_FINISHED","threadId":"s","runId":"run-1","outcome":{"type":"success"},"usage":[{"inputTokens":100,"outputTokens":20,"totalTokens":120,"cachedInputTokens":0,"cacheWriteInputTokens":0,"reasoningTokens":0}]}
    "#]],
    );
}

#[test]
fn custom_events_with_a_reserved_name_have_a_prefix() {
    check(
        ["tool_progress", "subagent_text", "note"].map(|name| custom(name, "1")),
        &expect![[r#"
        {"type":"CUSTOM","name":"custom-tool_progress","value":1}
        {"type":"CUSTOM","name":"custom-subagent_text","value":1}
        {"type":"CUSTOM","name":"note","value":1}
    "#]],
    );
}

#[test]
fn a_failed_call_has_an_error_with_its_code() {
    let [error, end] = tool_error("1.0", "pay", ErrorCode::ToolTimeout);
    check(
        [tool_start("1.0", "pay"), error, end],
        &expect![[r#"
        {"type":"STEP_STARTED","stepName":"step-1"}
        {"type":"TOOL_CALL_START","toolCallId":"1.0","toolCallName":"pay","parentMessageId":"a1"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"1.0","delta":"{\"city\":\"Graz\"}"}
        {"type":"TOOL_CALL_END","toolCallId":"1.0"}
        {"type":"TOOL_CALL_RESULT","messageId":"t-1.0","toolCallId":"1.0","content":"{\"error\":\"it is closed\"}","role":"tool","metadata":{"code":"tool_timeout"}}
    "#]],
    );
}

#[test]
fn progress_custom_data_and_changes_of_the_state_are_events() {
    let call = || "1.0".into();
    let progress =
        ChunkKind::ToolProgress { call: call(), message: "half".to_owned(), fraction: Some(0.5) };
    let custom = ChunkKind::Custom { name: "note".to_owned(), data: r#"{"a":1}"#.to_owned() };
    let patch = serde_json::from_str(r#"[{"op":"add","path":"/a","value":1}]"#).unwrap();
    check(
        [progress, custom, ChunkKind::StatePatch { patch }],
        &expect![[r#"
        {"type":"CUSTOM","name":"tool_progress","value":{"toolCallId":"1.0","message":"half","fraction":0.5}}
        {"type":"CUSTOM","name":"note","value":{"a":1}}
        {"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":1}]}
    "#]],
    );
}

#[test]
fn a_sub_agent_is_shown_once() {
    let child = "s-sub-1.0";
    let of_child = |kind| chunk(child, 1, kind);
    let chunks = [
        (Some(1), own(1, sub_agent_start("1.0", child))),
        (None, of_child(approval("1.1", "publish"))),
        (None, of_child(suspended())),
        (None, of_child(ChunkKind::RunResumed)),
        (None, own(1, sub_agent_end("1.0", child, true))),
        (None, own(1, tool_end("1.0", "subagent__poet"))),
    ];
    expect![[r#"
        {"type":"STEP_STARTED","stepName":"step-1"}
        {"type":"TOOL_CALL_START","toolCallId":"1.0","toolCallName":"subagent__poet","parentMessageId":"a1"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"1.0","delta":"{\"topic\":\"rain\"}"}
        {"type":"TOOL_CALL_END","toolCallId":"1.0"}
        {"type":"SUBAGENT_STARTED","subagentRunId":"s-sub-1.0","name":"poet","parentToolCallId":"1.0"}
        {"type":"TOOL_CALL_START","toolCallId":"s-sub-1.0#1.1","toolCallName":"publish","parentMessageId":"a1"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"s-sub-1.0#1.1","delta":"{\"city\":\"Graz\"}"}
        {"type":"TOOL_CALL_END","toolCallId":"s-sub-1.0#1.1"}
        {"type":"SUBAGENT_FINISHED","subagentRunId":"s-sub-1.0","outcome":{"type":"suspended"}}
        {"type":"TOOL_CALL_RESULT","messageId":"t-1.0","toolCallId":"1.0","content":"\"rain\"","role":"tool"}
    "#]].assert_eq(&translate(&chunks).0);
}

#[test]
fn a_result_that_is_no_text_is_that_of_the_run() {
    let output = |output: &str| ChunkKind::Output { output: output.to_owned() };
    check(
        [text("It rains."), checkpoint(), output(r#""It rains.""#), ended("completed")],
        &expect![[r#"
            {"type":"STEP_STARTED","stepName":"step-1"}
            {"type":"TEXT_MESSAGE_START","messageId":"a1","role":"assistant"}
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"a1","delta":"It rains."}
            {"type":"TEXT_MESSAGE_END","messageId":"a1"}
            {"type":"STEP_FINISHED","stepName":"step-1"}
            {"type":"RUN_FINISHED","threadId":"s","runId":"run-1","outcome":{"type":"success"}}
        "#]],
    );
    check(
        [checkpoint(), output(r#"{"sky":"grey"}"#), ended("completed")],
        &expect![[r#"
        {"type":"STEP_STARTED","stepName":"step-1"}
        {"type":"STEP_FINISHED","stepName":"step-1"}
        {"type":"RUN_FINISHED","threadId":"s","runId":"run-1","result":{"sky":"grey"},"outcome":{"type":"success"}}
    "#]],
    );
}

#[test]
fn stopped_and_failed_runs_end_with_everything_closed() {
    check(
        [text("It"), ended("aborted")],
        &expect![[r#"
        {"type":"STEP_STARTED","stepName":"step-1"}
        {"type":"TEXT_MESSAGE_START","messageId":"a1","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"a1","delta":"It"}
        {"type":"TEXT_MESSAGE_END","messageId":"a1"}
        {"type":"STEP_FINISHED","stepName":"step-1"}
        {"type":"RUN_FINISHED","threadId":"s","runId":"run-1","outcome":{"type":"cancelled"}}
    "#]],
    );
    let error = ErrorRecord::new(ErrorCode::StepLimit, "too many steps");
    check(
        [text("It"), ChunkKind::Error { error }, ended("failed")],
        &expect![[r#"
        {"type":"STEP_STARTED","stepName":"step-1"}
        {"type":"TEXT_MESSAGE_START","messageId":"a1","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"a1","delta":"It"}
        {"type":"TEXT_MESSAGE_END","messageId":"a1"}
        {"type":"STEP_FINISHED","stepName":"step-1"}
        {"type":"RUN_ERROR","message":"too many steps","code":"step_limit"}
    "#]],
    );
}

#[test]
fn discarded_chunks_need_another_page() {
    for chunk in [own(1, discarded(1)), own(0, ChunkKind::StreamResync)] {
        let chunks = [(Some(1), own(1, text("It ra"))), (None, chunk), (None, own(1, text("x")))];
        let (lines, progress) = translate(&chunks);
        assert_eq!(progress, Progress::Reload);
        assert!(!lines.contains(r#""delta":"x""#), "{lines}");
    }
}

#[test]
fn a_reload_closes_what_is_open_and_empties_reasoning_that_is_not_recorded() {
    let session = empty();
    let folds = Folds::new(&session);
    let mut translator = Translator::new(&folds, "run-1", Options::default());
    let mut out = Vec::new();
    let mut push = |kind| translator.push_chunk(Some(Attempt(1)), &own(1, kind), &mut out);
    assert_eq!(push(thinking("Hm")), Progress::Open);
    assert_eq!(push(arg_start(0, "weather")), Progress::Open);
    assert_eq!(push(discarded(1)), Progress::Reload);
    out.clear();
    assert_eq!(translator.reload(&folds, &mut out), Progress::Open);
    let lines: Vec<_> = out.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    expect![[r#"
        {"type":"TOOL_CALL_END","toolCallId":"1.0"}
        {"type":"STEP_FINISHED","stepName":"step-1"}
        {"type":"MESSAGES_SNAPSHOT","messages":[{"role":"reasoning","id":"r-a1","content":""}]}
        {"type":"STATE_SNAPSHOT","snapshot":{}}"#]]
    .assert_eq(&lines.join("\n"));
}
