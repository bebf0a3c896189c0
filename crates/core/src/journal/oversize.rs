//! Replacements for facts that are larger than the store accepts.

use std::sync::Arc;

use crate::error::{ErrorCode, ErrorRecord};
use crate::event::{
    Event, ModelReply, RunOutcome, Suspension, ToolFinish, ToolOutcome, encode_into,
};
use crate::state::Patch;
use crate::step::StopReason;
use crate::text::{MAX_NAME, excerpt};

/// The maximum size of a tool result's event without its output, arguments, error, files and state changes, in bytes.
const RESULT_OVERHEAD: usize = 1_024;

/// Returns the result of a call as the journal records it in a store that accepts at most `limit` bytes per append: an
/// error in place of a result that does not fit. The stream shows the returned result, so that it agrees with the log.
#[must_use]
pub fn recordable_result(finish: Arc<ToolFinish>, limit: usize) -> Arc<ToolFinish> {
    if is_surely_small(&finish, limit) {
        return finish;
    }
    let mut body = Vec::new();
    // A result that cannot be encoded is rejected when it is recorded.
    let is_encoded = encode_into(&mut body, &Event::ToolFinished(Arc::clone(&finish))).is_ok();
    let bytes = body.len() + 2;
    if is_encoded && bytes > limit {
        Arc::new(too_large_result(&finish, bytes, limit))
    } else {
        finish
    }
}

/// Returns `true` if the event of the result is below the limit according to an estimate, without encoding it.
fn is_surely_small(finish: &ToolFinish, limit: usize) -> bool {
    let outcome = match &finish.outcome {
        ToolOutcome::Success(result) => result.text().len(),
        ToolOutcome::Acknowledged => 0,
        ToolOutcome::Error(_) => return false,
    };
    let input = finish.input.as_ref().map_or(0, |input| input.text().len());
    let is_bounded = finish.attachments.is_empty()
        && finish.state_patch.is_empty()
        && finish.finish.is_none()
        && finish.child.is_none();
    is_bounded && outcome + input + RESULT_OVERHEAD <= limit
}

/// Returns the event that is recorded in place of an event of `bytes` bytes, if the store accepts
/// at most `limit` bytes.
///
/// A run must not stop because of a large fact: a run that continues the session would repeat the
/// effect and fail in the same way. Returns `None` if the event has no replacement.
pub(super) fn in_place_of(event: &Event, bytes: usize, limit: usize) -> Option<Event> {
    let message = |what: &str| message(what, bytes, limit);
    Some(match event {
        Event::ToolFinished(finish) => Event::from(too_large_result(finish, bytes, limit)),
        Event::ModelReplied(reply) => {
            let error = ErrorRecord::new(ErrorCode::TooLarge, message("the model's reply"));
            Event::ModelReplied(Arc::new(ModelReply {
                message: None,
                output: None,
                error: Some(error),
                should_stop: true,
                stop_reason: Some(StopReason::Error),
                raw_stop_reason: None,
                response_id: None,
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

/// Returns the result that is recorded in place of one of `bytes` bytes. It has neither state changes nor
/// attachments.
fn too_large_result(finish: &ToolFinish, bytes: usize, limit: usize) -> ToolFinish {
    let message = message("the tool result, including its state changes,", bytes, limit);
    let error = ErrorRecord::new(ErrorCode::ToolResultTooLarge, message);
    ToolFinish {
        outcome: ToolOutcome::Error(error),
        finish: None,
        input: None,
        attachments: Vec::new(),
        state_patch: Patch::default(),
        ..finish.clone()
    }
}

fn message(what: &str, bytes: usize, limit: usize) -> String {
    format!("{what} has {bytes} bytes; the store accepts at most {limit} bytes per append")
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
