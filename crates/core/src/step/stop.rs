//! When a turn stops, and as what.

use super::result::{StepResult, StopReason};

/// Conditions under which execution stops.
#[derive(Clone, Copy, Default)]
#[expect(missing_debug_implementations, reason = "holds a function")]
pub struct StopConfig<'a> {
    /// The most steps of a turn.
    pub max_steps: Option<u32>,
    /// A condition of the user's.
    pub stop_when: Option<&'a (dyn Fn(&StepResult) -> bool + Send + Sync)>,
}

/// Why execution stops, in order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// A structured output ends the turn.
    StructuredOutput,
    /// An error that ends it.
    Error,
    /// Text that ends it.
    Text,
    /// The limit of steps is reached.
    MaxSteps,
    /// The user's condition holds.
    StopWhen,
}

/// How a turn ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinalStatus {
    /// With an answer.
    Completed,
    /// Without one.
    Failed,
}

/// Why execution stops after this step, if it does. `step_count` counts this step.
#[must_use]
pub fn stop_cause(
    step: &StepResult,
    step_count: u32,
    config: &StopConfig<'_>,
) -> Option<StopCause> {
    match step {
        StepResult::StructuredOutput { .. } => return Some(StopCause::StructuredOutput),
        StepResult::Error { should_stop: true, .. } => return Some(StopCause::Error),
        StepResult::Text { should_stop: true, .. } => return Some(StopCause::Text),
        _ => {}
    }
    if config.max_steps.is_some_and(|most| step_count >= most) {
        return Some(StopCause::MaxSteps);
    }
    config.stop_when.is_some_and(|condition| condition(step)).then_some(StopCause::StopWhen)
}

/// Whether execution stops after this step. `step_count` counts this step.
#[must_use]
pub fn should_stop_execution(step: &StepResult, step_count: u32, config: &StopConfig<'_>) -> bool {
    stop_cause(step, step_count, config).is_some()
}

/// How a turn that stops with this step ends.
#[must_use]
pub fn determine_final_status(step: &StepResult) -> FinalStatus {
    let failed = matches!(step, StepResult::Error { .. })
        || step.stop_reason().is_some_and(is_error_stop_reason);
    if failed { FinalStatus::Failed } else { FinalStatus::Completed }
}

/// Whether a reply that stopped for this reason is no answer.
#[must_use]
pub const fn is_error_stop_reason(reason: StopReason) -> bool {
    match reason {
        StopReason::MaxTokens
        | StopReason::ContentFilter
        | StopReason::Refusal
        | StopReason::Error
        | StopReason::Unknown => true,
        StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence => false,
    }
}

/// Whether asking again, with a word on what went wrong, may help an agent that owes an output.
#[must_use]
pub const fn is_recoverable_error_stop_reason(reason: StopReason) -> bool {
    matches!(reason, StopReason::MaxTokens)
}
