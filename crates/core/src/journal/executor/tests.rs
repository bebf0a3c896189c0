//! Tests of run results and inputs.

use serde_json::json;

use super::{AgentResult, Input};
use crate::error::{ErrorCode, ErrorRecord};
use crate::session::RunStatus;

fn result(status: RunStatus) -> AgentResult {
    AgentResult { status, output: None, error: None, reason: None, suspended: None }
}

#[test]
fn the_output_is_converted_to_its_type() {
    let completed =
        AgentResult { output: Some(json!([1, 2]).into()), ..result(RunStatus::Completed) };
    assert_eq!(completed.clone().typed::<Vec<u8>>().unwrap().into_output().unwrap(), [1, 2]);
    let error = completed.typed::<String>().unwrap_err();
    assert_eq!(error.code(), ErrorCode::OutputInvalid);
}

#[test]
fn a_missing_output_is_an_error() {
    let code = |result: AgentResult| result.into_output().unwrap_err().code();
    assert_eq!(code(result(RunStatus::Completed)), ErrorCode::OutputInvalid);
    for status in [RunStatus::Interrupted, RunStatus::Aborted, RunStatus::Superseded] {
        assert_eq!(code(result(status)), ErrorCode::Cancelled, "{status:?}");
    }
    let failed = |error| AgentResult { error: Some(error), ..result(RunStatus::Failed) };
    assert_eq!(code(failed(ErrorRecord::new(ErrorCode::StepLimit, "m"))), ErrorCode::StepLimit);
    let newer = ErrorRecord { code: "newer".into(), ..ErrorRecord::new(ErrorCode::Refusal, "m") };
    let error = failed(newer).into_output().unwrap_err();
    assert_eq!((error.code(), error.message()), (ErrorCode::Internal, "m"));
}

#[test]
fn text_is_one_visible_message() {
    let input = Input::from("hi");
    assert_eq!(input, Input::from("hi".to_owned()));
    assert_eq!(input.messages.len(), 1);
    assert!(!input.messages[0].hidden);
    assert_eq!(input.state, None);
}
