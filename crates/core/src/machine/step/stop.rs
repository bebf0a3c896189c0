//! Stop conditions of a turn, and its final status.

use crate::llm::reply::{StepResult, StopReason};

/// The conditions under which execution stops.
#[derive(Clone, Copy, Default)]
#[expect(missing_debug_implementations, reason = "holds a function")]
pub struct StopConfig<'a> {
    /// The maximum number of steps of a turn.
    pub max_steps: Option<u32>,
    /// A condition that the user defines.
    pub stop_when: Option<&'a (dyn Fn(&StepResult) -> bool + Send + Sync)>,
}

/// The reason why execution stops, in order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// A structured output ends the turn.
    StructuredOutput,
    /// An error ends the turn.
    Error,
    /// A text reply ends the turn.
    Text,
    /// The step limit is reached.
    MaxSteps,
    /// The user's condition is true.
    StopWhen,
}

/// The final status of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinalStatus {
    /// The turn ended with an answer.
    Completed,
    /// The turn ended without an answer.
    Failed,
}

/// Returns the reason to stop after this step, if there is one. `step_count` includes this step.
#[must_use]
pub fn stop_cause(
    step: &StepResult,
    step_count: u32,
    config: &StopConfig<'_>,
) -> Option<StopCause> {
    match step {
        StepResult::StructuredOutput { .. } => return Some(StopCause::StructuredOutput),
        StepResult::Error { should_stop: true, .. } => return Some(StopCause::Error),
        StepResult::Text { should_stop: true, stop_reason, .. }
            if *stop_reason != Some(StopReason::Pause) =>
        {
            return Some(StopCause::Text);
        }
        _ => {}
    }
    if config.max_steps.is_some_and(|most| step_count >= most) {
        return Some(StopCause::MaxSteps);
    }
    config.stop_when.is_some_and(|condition| condition(step)).then_some(StopCause::StopWhen)
}

/// Returns `true` if execution stops after this step. `step_count` includes this step.
#[must_use]
pub fn should_stop_execution(step: &StepResult, step_count: u32, config: &StopConfig<'_>) -> bool {
    stop_cause(step, step_count, config).is_some()
}

/// Returns the final status of a turn that stops with this step.
#[must_use]
pub fn determine_final_status(step: &StepResult) -> FinalStatus {
    let failed = matches!(step, StepResult::Error { .. })
        || step.stop_reason().is_some_and(is_error_stop_reason);
    if failed { FinalStatus::Failed } else { FinalStatus::Completed }
}

/// Returns `true` if a reply with this stop reason does not count as an answer.
#[must_use]
pub const fn is_error_stop_reason(reason: StopReason) -> bool {
    match reason {
        StopReason::MaxTokens
        | StopReason::ContentFilter
        | StopReason::Refusal
        | StopReason::Error
        | StopReason::Unknown => true,
        StopReason::EndTurn
        | StopReason::ToolUse
        | StopReason::StopSequence
        | StopReason::Pause => false,
    }
}

/// Returns `true` if a retry with a correction may help an agent that still has to return an
/// output.
#[must_use]
pub const fn is_recoverable_error_stop_reason(reason: StopReason) -> bool {
    matches!(reason, StopReason::MaxTokens)
}
