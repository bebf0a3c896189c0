//! `plan_step_processing`, example by example.

use serde_json::json;

use crate::error::{ErrorCode, ErrorRecord};
use crate::message::{Arguments, Thinking};
use crate::schema::Schema;
use crate::step::{
    AssistantMessageParts, FinalStatus, ParsedSubAgentCall, ParsedToolCall, StatusUpdate, StepPlan,
    StepPlanOptions, StepResult, StopReason, plan_step_processing,
};
use crate::testing::{
    calls, error_step, finish, more_text, output, raw_call, result_schema, stopped, text,
};

fn plan(step: &StepResult) -> StepPlan {
    plan_step_processing(step, &StepPlanOptions::default())
}

fn plan_for_result(step: &StepResult) -> StepPlan {
    let schema = Schema::from_value(result_schema()).unwrap();
    plan_step_processing(step, &StepPlanOptions::new(Some(&schema)))
}

/// A plan that requires nothing.
fn nothing() -> StepPlan {
    StepPlan {
        assistant_message_plan: None,
        tool_calls_to_run: Vec::new(),
        pending_sub_agent_calls: Vec::new(),
        status_update: None,
        is_terminal: false,
        output: None,
        stop_reason: None,
        violations: Vec::new(),
    }
}

#[test]
fn text_becomes_a_message_and_does_not_end_the_turn() {
    let message = AssistantMessageParts {
        content: Some("Hello!".to_owned()),
        ..AssistantMessageParts::default()
    };
    let expected = StepPlan { assistant_message_plan: Some(message), ..nothing() };
    assert_eq!(plan(&more_text("Hello!")), expected);
}

#[test]
fn calls_are_pending_and_part_of_the_message() {
    let search = ParsedToolCall::new("tc1", "search", json!({"query": "test"}).into());
    let fetch = ParsedToolCall::new("tc2", "fetch", json!({"url": "https://…"}).into());
    let step = StepResult::ToolCalls {
        content: None,
        tool_calls: vec![search.clone(), fetch.clone()],
        sub_agent_calls: Vec::new(),
        thinking: None,
        stop_reason: None,
    };
    let tool_calls = vec![search, fetch];
    let message = AssistantMessageParts {
        tool_calls: tool_calls.clone(),
        ..AssistantMessageParts::default()
    };
    let expected = StepPlan {
        assistant_message_plan: Some(message),
        tool_calls_to_run: tool_calls,
        ..nothing()
    };
    assert_eq!(plan(&step), expected);
}

#[test]
fn sub_agent_calls_and_tool_calls_are_both_pending() {
    let child = ParsedSubAgentCall {
        id: "s1".into(),
        provider_id: None,
        agent_type: "summarizer".to_owned(),
        input: json!({}).into(),
    };
    let step = StepResult::ToolCalls {
        content: Some("Both.".to_owned()),
        tool_calls: vec![ParsedToolCall::new("t1", "search", json!({}).into())],
        sub_agent_calls: vec![child.clone()],
        thinking: Some(Thinking::new("Hm.")),
        stop_reason: Some(StopReason::ToolUse),
    };
    let plan = plan(&step);
    assert_eq!(plan.pending_sub_agent_calls, vec![child.clone()]);
    let message = plan.assistant_message_plan.unwrap();
    assert_eq!(message.sub_agent_calls, [child]);
    assert_eq!(message.content.as_deref(), Some("Both."));
    assert_eq!(message.thinking.unwrap().content, "Hm.");
    assert_eq!(plan.stop_reason, Some(StopReason::ToolUse));
}

#[test]
fn the_finish_call_completes_the_turn_and_is_not_run() {
    let plan = plan_for_result(&finish(json!({"result": "done"})));
    assert_eq!(plan.tool_calls_to_run, []);
    assert_eq!(plan.pending_sub_agent_calls, []);
    assert_eq!(plan.output, Some(json!({"result": "done"}).into()));
    assert_eq!(
        plan.status_update,
        Some(StatusUpdate {
            status: FinalStatus::Completed,
            output: Some(json!({"result": "done"}).into()),
            error: None,
        })
    );
    assert!(plan.is_terminal);
    let message = plan.assistant_message_plan.unwrap();
    assert_eq!(&*message.tool_calls[0].name, "__finish__", "it stays in the history");
}

#[test]
fn the_finish_call_is_detected_without_a_schema() {
    let plan = plan(&finish(json!({"done": true})));
    assert!(plan.is_terminal);
    assert_eq!(plan.tool_calls_to_run, []);
    assert_eq!(plan.output, Some(json!({"done": true}).into()));
}

#[test]
fn nothing_is_pending_with_a_finish_call() {
    let plan = plan(&calls([("search", json!({})), ("__finish__", json!({}))]));
    assert_eq!(plan.tool_calls_to_run, []);
    assert_eq!(plan.assistant_message_plan.unwrap().tool_calls.len(), 2);
}

#[test]
fn a_structured_output_completes_the_turn_without_a_message() {
    let expected = StepPlan {
        status_update: Some(StatusUpdate {
            status: FinalStatus::Completed,
            output: Some(json!({"result": "done"}).into()),
            error: None,
        }),
        is_terminal: true,
        output: Some(json!({"result": "done"}).into()),
        stop_reason: Some(StopReason::EndTurn),
        ..nothing()
    };
    assert_eq!(plan_for_result(&output(json!({"result": "done"}))), expected);
}

#[test]
fn an_error_that_stops_fails_the_turn() {
    let step = StepResult::Error {
        error: ErrorRecord::new(ErrorCode::ProviderRateLimited, "Rate limited"),
        should_stop: true,
        stop_reason: None,
    };
    let expected = StepPlan {
        status_update: Some(StatusUpdate {
            status: FinalStatus::Failed,
            output: None,
            error: Some("Rate limited".to_owned()),
        }),
        is_terminal: true,
        ..nothing()
    };
    assert_eq!(plan(&step), expected);
}

#[test]
fn an_error_that_does_not_stop_requires_nothing() {
    let step = stopped(error_step(ErrorCode::ProviderStreamCut, false), StopReason::Error);
    assert_eq!(plan(&step), StepPlan { stop_reason: Some(StopReason::Error), ..nothing() });
}

#[test]
fn an_output_that_does_not_fit_is_not_terminal_and_says_why() {
    for step in [finish(json!({"wrong": 1})), output(json!({"wrong": 1}))] {
        let plan = plan_for_result(&step);
        assert!(!plan.is_terminal);
        assert_eq!(plan.output, None);
        assert_eq!(plan.status_update, None);
        assert!(
            plan.violations.iter().any(|violation| violation.contains("\"result\"")),
            "{plan:?}"
        );
    }
}

#[test]
fn calls_with_an_invalid_finish_call_are_pending() {
    let step = calls([("search", json!({"q": 1})), ("__finish__", json!({}))]);
    let names: Vec<_> =
        plan_for_result(&step).tool_calls_to_run.into_iter().map(|call| call.name).collect();
    assert_eq!(names, ["search".into()]);
}

#[test]
fn an_output_that_can_be_repaired_is() {
    let plan = plan_for_result(&finish(json!("```json\n{\"result\": \"done\"}\n```")));
    assert_eq!(plan.output, Some(json!({"result": "done"}).into()));
    assert_eq!(plan.status_update.unwrap().output, plan.output);
}

#[test]
fn a_finish_call_that_was_cut_off_is_not_terminal() {
    let cut = stopped(finish(json!({"result": "do"})), StopReason::MaxTokens);
    let malformed = raw_call("__finish__", r#"{"result": "do"#);
    for step in [cut, malformed] {
        let plan = plan_for_result(&step);
        assert!(!plan.is_terminal);
        assert_eq!(plan.violations, ["the call was cut off or is not valid JSON"]);
    }
}

#[test]
fn an_output_that_cannot_be_read_is_not_accepted() {
    let plan = plan_for_result(&raw_call("__finish__", r#"{"result": 1e400}"#));
    assert!(!plan.is_terminal);
    assert_eq!(plan.violations.len(), 1);
    assert!(plan.violations[0].starts_with("it cannot be read: number out of range"), "{plan:?}");
}

#[test]
fn the_first_of_several_finish_calls_counts() {
    let step =
        calls([("__finish__", json!({"result": "a"})), ("__finish__", json!({"result": "b"}))]);
    assert_eq!(plan_for_result(&step).output, Some(json!({"result": "a"}).into()));
}

#[test]
fn stop_reason_and_thinking_are_passed_on() {
    let mut step = text("Done.");
    if let StepResult::Text { thinking, .. } = &mut step {
        *thinking = Some(Thinking::new("Hm."));
    }
    let plan = plan(&step);
    assert_eq!(plan.stop_reason, Some(StopReason::EndTurn));
    let thinking = plan.assistant_message_plan.unwrap().thinking.unwrap();
    assert_eq!(thinking.content, "Hm.");
    assert!(matches!(Arguments::parse(""), Arguments::Json(_)));
}
