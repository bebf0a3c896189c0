//! The effect of a closed step on the turn.

use super::correction::owes_output;
use super::output::repair_output;
use super::stop::{
    StopCause, StopConfig, is_error_stop_reason, is_recoverable_error_stop_reason, stop_cause,
};
use crate::agent::AgentDefinition;
use crate::error::{ErrorCode, ErrorRecord};
use crate::event::{FinishOutput, ModelReply, RunOutcome, ToolOutcome};
use crate::json::Json;
use crate::llm::reply::StopReason;
use crate::machine::session::{Session, StepRecord};
use crate::panics::caught;
use crate::text::MAX_NAME;
use crate::tool::FINISH_TOOL;

/// The effect of a closed step on the turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnOutcome {
    /// The turn continues with another model call.
    Continue,
    /// The run ends.
    End(RunOutcome),
}

/// Computes the effect of the last closed step on the turn, as a function of the session's events
/// and the agent. Returns `None` if it already took effect or if no step was closed.
#[must_use]
pub fn turn_outcome(session: &Session, agent: &AgentDefinition) -> Option<TurnOutcome> {
    let step = session.closed_step()?;
    let outcome = error_outcome(session, agent, step)
        .or_else(|| finish_outcome(step))
        .or_else(|| native_outcome(agent, step))
        .or_else(|| answer_outcome(agent, step))
        .or_else(|| limit_outcome(session, agent, step));
    Some(outcome.map_or(TurnOutcome::Continue, TurnOutcome::End))
}

fn error_outcome(
    session: &Session,
    agent: &AgentDefinition,
    step: &StepRecord,
) -> Option<RunOutcome> {
    let error = step.reply.error.clone()?;
    let out_of_tries = session.model_failures() > agent.limits().model_failures;
    (step.reply.should_stop || out_of_tries).then_some(RunOutcome::Failed { error })
}

/// The first finish in call order that was accepted or failed permanently determines the outcome.
fn finish_outcome(step: &StepRecord) -> Option<RunOutcome> {
    let finish = step.calls.iter().find_map(|call| call.finish.as_ref()?.finish.clone())?;
    Some(match finish {
        FinishOutput::Output(output) => RunOutcome::Completed { output: Some(output) },
        FinishOutput::Invalid(error) => RunOutcome::Failed { error },
    })
}

fn native_outcome(agent: &AgentDefinition, step: &StepRecord) -> Option<RunOutcome> {
    let output = fitting_output(agent, step.reply.output.as_ref()?).ok()?;
    Some(RunOutcome::Completed { output: Some(output) })
}

/// Returns the native output, repaired if necessary.
pub(super) fn fitting_output(agent: &AgentDefinition, output: &Json) -> Result<Json, Vec<String>> {
    let Some(schema) = agent.output_schema() else {
        return Ok(output.clone());
    };
    let value = output.to_value();
    repair_output(&value, schema)
        .map(|fitting| if fitting == value { output.clone() } else { Json::from(fitting) })
}

/// Returns the error of a turn without its required output, with the violations of the last output
/// if there is one.
fn unfit(agent: &AgentDefinition, step: &StepRecord) -> ErrorRecord {
    let mut message = "the model produced no output that matches the output type".to_owned();
    let (outline, violations) = match &step.reply.output {
        Some(output) => (
            agent.output_schema().and_then(|schema| schema.outline(&output.to_value())),
            fitting_output(agent, output).err().map(|violations| violations.join("; ")),
        ),
        None => {
            let answer = step.pairs().find_map(|(call, state)| {
                let answer = state.finish.as_ref().filter(|_| *call.name == *FINISH_TOOL)?;
                match &answer.outcome {
                    ToolOutcome::Error(error) => Some(error.message.clone()),
                    _ => None,
                }
            });
            (None, answer)
        }
    };
    if let Some(outline) = outline {
        message.push_str(&format!(": {outline}"));
    }
    let error = ErrorRecord::new(ErrorCode::OutputInvalid, message);
    match violations {
        Some(violations) => error.with_detail(violations),
        None => error,
    }
}

fn answer_outcome(agent: &AgentDefinition, step: &StepRecord) -> Option<RunOutcome> {
    let reply = &step.reply;
    if reply.error.is_some() {
        return None;
    }
    let reason = reply.stop_reason;
    let fatal = reason.filter(|reason| is_error_stop_reason(*reason));
    if let Some(fatal) = fatal.filter(|reason| !is_recoverable_error_stop_reason(*reason)) {
        return Some(failed(stop_reason_error(fatal, reply.raw_stop_reason.as_deref())));
    }
    if step.correction.is_some() {
        return None;
    }
    if owes_output(agent, step) {
        let error = match fatal {
            Some(reason) => stop_reason_error(reason, None),
            None => unfit(agent, step),
        };
        return Some(failed(error));
    }
    if !step.tool_calls().is_empty() {
        return None;
    }
    match fatal {
        Some(reason) => Some(failed(stop_reason_error(reason, None))),
        None if reply.should_stop => Some(RunOutcome::Completed {
            output: text(reply).and_then(|t| Json::from_serialize(t).ok()),
        }),
        None => None,
    }
}

fn limit_outcome(
    session: &Session,
    agent: &AgentDefinition,
    step: &StepRecord,
) -> Option<RunOutcome> {
    let most = agent.limits().max_steps;
    if session.turn_steps() >= most {
        let message = format!("the turn took {most} steps, which is the limit");
        return Some(failed(ErrorRecord::new(ErrorCode::StepLimit, message)));
    }
    // Building the result copies the reply, so it is built only if the user defined a condition.
    let condition = agent.stop_when.as_deref()?;
    let config = StopConfig { max_steps: None, stop_when: Some(condition) };
    let result = step.reply.to_step_result();
    let cause = caught("`stop_when`", || stop_cause(&result, session.turn_steps(), &config));
    let cause = match cause {
        Ok(cause) => cause?,
        Err(panic) => return Some(failed(panic.into_error().record())),
    };
    match cause {
        StopCause::StopWhen => Some(RunOutcome::Completed { output: None }),
        // These causes were handled above, by the required output and the step limit.
        StopCause::StructuredOutput | StopCause::Error | StopCause::Text | StopCause::MaxSteps => {
            None
        }
    }
}

fn text(reply: &ModelReply) -> Option<&str> {
    reply.message.as_deref()?.content.as_deref()
}

fn failed(error: ErrorRecord) -> RunOutcome {
    RunOutcome::Failed { error }
}

/// Returns `true` if a provider's stop reason is a single word and not arbitrary text.
fn is_word(raw: &str) -> bool {
    raw.len() <= MAX_NAME
        && raw
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || "_-.".contains(character))
}

/// Returns the error of a turn whose reply stopped for this reason.
#[must_use]
pub fn stop_reason_error(reason: StopReason, raw: Option<&str>) -> ErrorRecord {
    let (code, message) = match reason {
        StopReason::MaxTokens => (ErrorCode::MaxTokens, "the reply was cut off at the token limit"),
        StopReason::ContentFilter => {
            (ErrorCode::ContentFilter, "the provider's content filter stopped the reply")
        }
        StopReason::Refusal => (ErrorCode::Refusal, "the model refused"),
        StopReason::Unknown => {
            (ErrorCode::StopReasonUnknown, "the model stopped for a reason that is not known")
        }
        StopReason::Error
        | StopReason::EndTurn
        | StopReason::ToolUse
        | StopReason::StopSequence
        | StopReason::Pause => (ErrorCode::ModelError, "the model reported an error"),
    };
    let error = ErrorRecord::new(code, message);
    match raw {
        Some(raw) if is_word(raw) => ErrorRecord::new(code, format!("{message}: `{raw}`")),
        Some(raw) => error.with_detail(raw),
        None => error,
    }
}
