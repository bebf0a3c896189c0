//! Replacements for facts that are larger than the store accepts.

use std::sync::Arc;

use crate::error::{ErrorCode, ErrorRecord};
use crate::event::{Event, ModelReply, RunOutcome, Suspension, ToolFinish, ToolOutcome};
use crate::state::Patch;
use crate::step::StopReason;
use crate::text::{MAX_NAME, excerpt};

/// Returns the event that is recorded in place of an event of `bytes` bytes, if the store accepts
/// at most `limit` bytes.
///
/// A run must not stop because of a large fact: a run that continues the session would repeat the
/// effect and fail in the same way. Returns `None` if the event has no replacement.
pub(super) fn in_place_of(event: &Event, bytes: usize, limit: usize) -> Option<Event> {
    let message = |what: &str| format!("{what} has {bytes} bytes, and the store takes {limit}");
    Some(match event {
        Event::ToolFinished(finish) => {
            let message = message("the result of the call with its changes of the state");
            let error = ErrorRecord::new(ErrorCode::ToolResultTooLarge, message);
            let outcome = ToolOutcome::Error(error);
            Event::from(ToolFinish {
                outcome,
                finish: None,
                input: None,
                state_patch: Patch::default(),
                ..ToolFinish::clone(finish)
            })
        }
        Event::ModelReplied(reply) => {
            let error = ErrorRecord::new(ErrorCode::TooLarge, message("the model's reply"));
            Event::ModelReplied(Arc::new(ModelReply {
                message: None,
                output: None,
                error: Some(error),
                should_stop: true,
                stop_reason: Some(StopReason::Error),
                raw_stop_reason: None,
                model: reply.model.as_deref().map(|model| excerpt(model, MAX_NAME).into()),
                ..ModelReply::clone(reply)
            }))
        }
        Event::RunEnded { outcome: RunOutcome::Completed { .. } } => {
            let error = ErrorRecord::new(ErrorCode::TooLarge, message("the output"));
            Event::RunEnded { outcome: RunOutcome::Failed { error } }
        }
        Event::UsageRecorded { source_type, source_name, amount, call, success } => {
            Event::UsageRecorded {
                source_type: excerpt(source_type, MAX_NAME).into_owned(),
                source_name: excerpt(source_name, MAX_NAME).into_owned(),
                amount: *amount,
                call: call.clone(),
                success: *success,
            }
        }
        _ => return None,
    })
}

/// Returns results for the pending calls of a suspension of `bytes` bytes, where the store accepts at most `limit`.
///
/// A suspension repeats a schema per call, so many calls with large schemas can reach the limit. The schemas cannot be
/// omitted: answers are checked against them.
pub(super) fn oversized_calls(on: &Suspension, bytes: usize, limit: usize) -> Vec<Event> {
    let message = format!(
        "the call was not run: the suspension with all pending calls of the step has {bytes} bytes, and the store \
         accepts {limit}; request fewer calls in one step"
    );
    let error = ErrorRecord::new(ErrorCode::TooLarge, message);
    let answer = |call| ToolFinish::without_run(call, ToolOutcome::Error(error.clone()));
    on.calls.iter().map(|pending| Event::from(answer(pending.call.clone()))).collect()
}
