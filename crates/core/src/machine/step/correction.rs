//! Corrections for agents with an output type: the model is asked again if its reply does not
//! contain the output, because it was cut off at the token limit (`max_tokens`), does not fit the
//! type, or ended without an output.

use super::crash_loop;
use super::stop::{is_error_stop_reason, is_recoverable_error_stop_reason};
use super::turn_outcome::fitting_output;
use crate::agent::completion::tool_names;
use crate::agent::{AgentDefinition, Completion};
use crate::llm::reply::StopReason;
use crate::machine::session::{Session, StepRecord};
use crate::message::UserMessage;
use crate::tool::FINISH_TOOL;

/// Returns the message that asks the model for the missing output. Returns `None` if no output is
/// missing, or if the agent's number of corrections is used up.
pub(super) fn next_correction(
    session: &Session,
    agent: &AgentDefinition,
    step: &StepRecord,
) -> Option<UserMessage> {
    let retries_left = session.corrections() < agent.limits().completion_retries
        && session.abort_request().is_none()
        && !crash_loop::is_crash_loop(session, agent);
    let is_due = step.correction.is_none() && retries_left && owes_output(agent, step);
    is_due.then(|| correction(agent, step))
}

/// Returns `true` if the agent still has to return its output after this step, so that the model
/// needs a correction.
pub(super) fn owes_output(agent: &AgentDefinition, step: &StepRecord) -> bool {
    // A finish tool alone does not require an output: without an output type, text is an answer.
    if agent.output_schema().is_none() || step.reply.error.is_some() {
        return false;
    }
    if let Some(output) = &step.reply.output {
        return fitting_output(agent, output).is_err();
    }
    match step.reply.stop_reason {
        Some(reason)
            if is_error_stop_reason(reason) && !is_recoverable_error_stop_reason(reason) =>
        {
            false
        }
        _ if step.tool_calls().is_empty() => {
            step.reply.should_stop || step.reply.stop_reason == Some(StopReason::MaxTokens)
        }
        _ => {
            step.pairs().any(|(call, state)| {
                *call.name == *FINISH_TOOL
                    && state.finish.as_ref().is_some_and(|result| result.finish.is_none())
            }) && step
                .calls
                .iter()
                .all(|call| call.finish.as_ref().is_some_and(|result| result.finish.is_none()))
        }
    }
}

/// The first words of a correction: for native output, and for output that a tool returns.
const CORRECTIONS: [&str; 2] = [
    "Answer again with one JSON value that fits the given schema, and nothing else",
    "The task is not complete: no valid output was returned.",
];

/// Returns `true` if a message of a transcript is a correction, which the framework sends after an
/// answer that does not complete the turn, and not the start of another turn.
#[must_use]
pub fn is_correction(message: &UserMessage) -> bool {
    message.hidden && CORRECTIONS.iter().any(|prefix| message.content.starts_with(prefix))
}

/// Returns the message that asks the model again.
fn correction(agent: &AgentDefinition, step: &StepRecord) -> UserMessage {
    let [native, handed_in] = CORRECTIONS;
    let how = match agent.completion() {
        Completion::Native => native.to_owned(),
        completion => format!(
            "{handed_in} Call {} directly now, with the output as its arguments",
            tool_names(completion)
        ),
    };
    let cut_off = step.reply.stop_reason == Some(StopReason::MaxTokens);
    let hint =
        if cut_off { ". Your reply was cut off at the token limit: keep it short." } else { "." };
    UserMessage::hidden(format!("{how}{hint}"))
}
