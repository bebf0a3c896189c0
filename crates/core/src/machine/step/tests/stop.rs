//! Stop conditions and their precedence, and the tables of stop reasons.

use expect_test::expect;
use serde_json::json;

use crate::error::ErrorCode;
use crate::step::{
    FinalStatus, StepResult, StopCause, StopConfig, StopReason, determine_final_status,
    is_error_stop_reason, is_recoverable_error_stop_reason, should_stop_execution, stop_cause,
    stop_reason_error,
};
use crate::testing::{calls, error_step, finish, more_text, output, stopped, text};

const REASONS: [StopReason; 9] = [
    StopReason::EndTurn,
    StopReason::ToolUse,
    StopReason::MaxTokens,
    StopReason::ContentFilter,
    StopReason::Refusal,
    StopReason::StopSequence,
    StopReason::Pause,
    StopReason::Error,
    StopReason::Unknown,
];

fn says_done(result: &StepResult) -> bool {
    matches!(result, StepResult::Text { content, .. } if content.contains("DONE"))
}

const EXAMPLE: StopConfig<'_> = StopConfig { max_steps: Some(10), stop_when: Some(&says_done) };

#[test]
fn the_example_stops_at_ten_steps_or_at_the_keyword() {
    assert!(!should_stop_execution(&more_text("on"), 9, &EXAMPLE));
    assert!(should_stop_execution(&more_text("on"), 10, &EXAMPLE));
    assert!(should_stop_execution(&more_text("DONE"), 1, &EXAMPLE));
    assert!(!should_stop_execution(&calls([("DONE", json!({}))]), 1, &EXAMPLE));
}

#[test]
fn conditions_are_checked_in_their_order_of_precedence() {
    let always = |_: &StepResult| true;
    let all = StopConfig { max_steps: Some(1), stop_when: Some(&always) };
    let cause = |step: &StepResult, config| stop_cause(step, 5, &config);
    assert_eq!(cause(&output(json!(1)), all), Some(StopCause::StructuredOutput));
    assert_eq!(cause(&error_step(ErrorCode::Refusal, true), all), Some(StopCause::Error));
    assert_eq!(cause(&text("bye"), all), Some(StopCause::Text));
    assert_eq!(cause(&more_text("on"), all), Some(StopCause::MaxSteps));
    let unlimited = StopConfig { max_steps: None, ..all };
    assert_eq!(cause(&more_text("on"), unlimited), Some(StopCause::StopWhen));
    assert_eq!(cause(&more_text("on"), StopConfig::default()), None);
}

#[test]
fn a_result_without_a_stop_continues() {
    let config = StopConfig::default();
    assert!(!should_stop_execution(&error_step(ErrorCode::ModelError, false), 1, &config));
    assert!(!should_stop_execution(&calls([("search", json!({}))]), 99, &config));
    assert!(!should_stop_execution(&finish(json!({})), 1, &config), "the plan ends the turn");
    let paused = stopped(text("Searching."), StopReason::Pause);
    assert!(!should_stop_execution(&paused, 1, &config), "the model continues it");
}

#[test]
fn the_stop_reason_decides_the_final_status() {
    let table: Vec<_> = REASONS
        .map(|reason| {
            let status = determine_final_status(&stopped(text("x"), reason));
            format!("{reason:?}: {status:?}")
        })
        .into();
    expect![[r#"
        EndTurn: Completed
        ToolUse: Completed
        MaxTokens: Failed
        ContentFilter: Failed
        Refusal: Failed
        StopSequence: Completed
        Pause: Completed
        Error: Failed
        Unknown: Failed"#]]
    .assert_eq(&table.join("\n"));
    assert_eq!(determine_final_status(&more_text("x")), FinalStatus::Completed);
    let failed_call = stopped(error_step(ErrorCode::ModelError, true), StopReason::EndTurn);
    assert_eq!(determine_final_status(&failed_call), FinalStatus::Failed);
}

#[test]
fn only_the_token_limit_is_recoverable() {
    for reason in REASONS {
        let recoverable = is_recoverable_error_stop_reason(reason);
        assert_eq!(recoverable, reason == StopReason::MaxTokens, "{reason:?}");
        assert!(!recoverable || is_error_stop_reason(reason), "{reason:?}");
    }
}

#[test]
fn stop_reasons_have_their_names_in_the_log() {
    let names: Vec<_> =
        REASONS.iter().map(|reason| serde_json::to_value(reason).unwrap()).collect();
    let expected = json!([
        "end_turn",
        "tool_use",
        "max_tokens",
        "content_filter",
        "refusal",
        "stop_sequence",
        "pause",
        "error",
        "unknown",
    ]);
    assert_eq!(json!(names), expected);
}

#[test]
fn each_error_stop_reason_has_its_code() {
    let table: Vec<_> = REASONS
        .into_iter()
        .filter(|reason| is_error_stop_reason(*reason))
        .map(|reason| stop_reason_error(reason, None).to_string())
        .collect();
    expect![[r#"
        max_tokens: the reply was cut off at the token limit
        content_filter: the provider's content filter stopped the reply
        refusal: the model refused
        model_error: the model reported an error
        stop_reason_unknown: the model stopped for a reason that is not known"#]]
    .assert_eq(&table.join("\n"));
    let raw = stop_reason_error(StopReason::Unknown, Some("moon_phase"));
    assert!(raw.message.ends_with("`moon_phase`"), "{raw}");
}
