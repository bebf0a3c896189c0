//! Synthetic results: results that calls get without being executed.

use super::crash_loop;
use super::finish::synthesize_finish_tool_result;
use super::pending_calls::submitted_or_expired_results;
use super::plan::{StepPlanOptions, plan_step_processing};
use super::stop::{is_error_stop_reason, is_recoverable_error_stop_reason};
use crate::agent::{AgentDefinition, Completion};
use crate::error::{ErrorCode, ErrorRecord};
use crate::event::{Answer, FinishOutput, ToolFinish, ToolOutcome, Trigger};
use crate::id::CallId;
use crate::llm::reply::StopReason;
use crate::machine::session::{AnsweredCall, CallRecord, Session, StepRecord};
use crate::message::ToolCall;
use crate::text::{MAX_NAME, excerpt};
use crate::tool::{EffectClass, FINISH_TOOL};

/// Returns results for the open calls that are not executed. With `is_fit`, the calls of the reply
/// have passed their checks already and are not refused again.
pub(super) fn answers(
    session: &Session,
    agent: &AgentDefinition,
    step: &StepRecord,
    is_fit: bool,
) -> Vec<ToolFinish> {
    let open = || step.pairs().filter(|(_, state)| state.finish.is_none()).map(|(call, _)| call);
    if open().next().is_none() {
        return Vec::new();
    }
    if let Some(reason) = fatal_stop(step) {
        let message =
            format!("not run: {}", super::turn_outcome::stop_reason_error(reason, None).message);
        return open().map(|call| error(call, ErrorCode::ToolNotRun, message.clone())).collect();
    }
    // The process may have crashed after the `__finish__` was accepted and before the other calls
    // got their results.
    let finish = open().any(|call| *call.name == *FINISH_TOOL) || is_finished(step);
    if finish && *agent.completion() == Completion::Finish {
        return finish_answers(agent, step, open());
    }
    if session.abort_request().is_some() {
        return open().map(|call| aborted(session, agent, step, call)).collect();
    }
    // Before the check for crash loops: a result that was submitted is valid even if processes have
    // crashed since.
    let answered = submitted_or_expired_results(session, agent, step);
    if !answered.is_empty() {
        return answered;
    }
    let abandoned = crash_loop::abandoned(session, agent, step);
    if !abandoned.is_empty() {
        return abandoned;
    }
    if is_fit {
        return answered;
    }
    open().filter_map(|call| refusal(agent, step, call)).collect()
}

/// Returns the result of an open call of an aborted run.
fn aborted(
    session: &Session,
    agent: &AgentDefinition,
    step: &StepRecord,
    call: &ToolCall,
) -> ToolFinish {
    if step.call(&call.id).is_some_and(|state| has_not_run(session, agent, call, state)) {
        let message = "not run: the run was aborted while the call was pending";
        return error(call, ErrorCode::ToolNotRun, message);
    }
    let message = "the run was aborted before the call had a result; whether it acted is not known";
    error(call, ErrorCode::ToolOutcomeUnknown, message)
}

/// Returns `true` if an open call is or was pending and has certainly not run.
fn has_not_run(
    session: &Session,
    agent: &AgentDefinition,
    call: &ToolCall,
    state: &CallRecord,
) -> bool {
    let Some(waiting) = state.waiting.as_ref().filter(|_| state.started.is_none()) else {
        return false;
    };
    let Some(AnsweredCall { answer: Answer::Approved { .. }, at, .. }) = &waiting.answer else {
        return true;
    };
    // Only at-most-once calls record their starts. Any other call may have been started by a run
    // that was current after the approval.
    let tool = agent.tool(&call.name);
    let is_recorded = tool.is_some_and(|tool| tool.effect_class() == EffectClass::AtMostOnce);
    let mut runs = session.runs().filter(|run| run.trigger != Trigger::Abort);
    is_recorded || !runs.any(|run| run.ended.is_none() || run.ended >= *at)
}

/// Returns `true` if a `__finish__` call of the reply was accepted.
fn is_finished(step: &StepRecord) -> bool {
    step.pairs().any(|(call, state)| {
        let finish = state.finish.as_ref().and_then(|finish| finish.finish.as_ref());
        *call.name == *FINISH_TOOL && finish.is_some()
    })
}

fn fatal_stop(step: &StepRecord) -> Option<StopReason> {
    step.reply.stop_reason.filter(|reason| {
        is_error_stop_reason(*reason) && !is_recoverable_error_stop_reason(*reason)
    })
}

/// Returns the results for a reply that calls `__finish__`: the acknowledgement and results for the
/// other calls, or the violations of the output.
fn finish_answers<'a>(
    agent: &AgentDefinition,
    step: &StepRecord,
    open: impl Iterator<Item = &'a ToolCall>,
) -> Vec<ToolFinish> {
    let options = StepPlanOptions::new(agent.output_schema());
    let plan = plan_step_processing(&step.reply.to_step_result(), &options);
    let Some(output) = plan.output else {
        let message = format!("the output was not accepted: {}", plan.violations.join("; "));
        return open
            .filter(|call| *call.name == *FINISH_TOOL)
            .map(|call| error(call, ErrorCode::OutputInvalid, message.clone()))
            .collect();
    };
    let mut accepted = is_finished(step);
    open.map(|call| {
        if *call.name == *FINISH_TOOL && !accepted {
            accepted = true;
            let mut result = synthesize_finish_tool_result(call.id.clone());
            result.finish = Some(FinishOutput::Output(output.clone()));
            result
        } else {
            error(call, ErrorCode::ToolNotRun, "not run: the turn was finished in the same reply")
        }
    })
    .collect()
}

/// Returns an error if the call cannot be executed at all.
fn refusal(agent: &AgentDefinition, step: &StepRecord, call: &ToolCall) -> Option<ToolFinish> {
    if let Some(parsed) = agent.companion_call(call) {
        return parsed.err().map(|message| error(call, ErrorCode::ToolInputInvalid, message));
    }
    let child = agent.sub_agent(&call.name);
    let tool = agent.tool(&call.name);
    if child.is_none() && tool.is_none() {
        let known = agent.effective_tools().specs().iter().map(|spec| &*spec.name);
        let message = format!(
            "there is no tool `{}`; the tools are: {}",
            excerpt(&call.name, MAX_NAME),
            known.collect::<Vec<_>>().join(", ")
        );
        let waited = step.call(&call.id).is_some_and(|state| state.waiting.is_some());
        let code =
            if waited || step.runs > 1 { ErrorCode::ToolMissing } else { ErrorCode::ToolUnknown };
        return Some(error(call, code, message));
    }
    if let Some(problem) = call.arguments.unreadable() {
        let message = format!("the arguments cannot be read: {problem}; the call was not run");
        return Some(error(call, ErrorCode::ToolInputInvalid, message));
    }
    let Some(input) = call.arguments.as_json() else {
        let message = "the arguments are not valid JSON; the call was not run";
        return Some(error(call, ErrorCode::ToolCallTruncated, message));
    };
    if step.reply.stop_reason == Some(StopReason::MaxTokens) {
        let message = "the reply was cut off at the token limit; the call was not run";
        return Some(error(call, ErrorCode::ToolCallTruncated, message));
    }
    let violations = match (child, tool) {
        (Some(child), _) => child.validate(input).err()?,
        (None, tool) => tool?.input().ok()?.validate(&input.to_value()).err()?,
    };
    let message = format!("the arguments do not match the schema: {}", violations.join("; "));
    Some(error(call, ErrorCode::ToolInputInvalid, message))
}

pub(super) fn error(call: &ToolCall, code: ErrorCode, message: impl Into<String>) -> ToolFinish {
    let outcome = ToolOutcome::Error(ErrorRecord::new(code, message));
    ToolFinish::without_run(call.id.clone(), outcome)
}

/// Returns results for the calls that an imported log left without one.
pub(crate) fn heal(session: &Session) -> Vec<(CallId, ToolOutcome)> {
    session
        .unpaired_calls()
        .map(|call| {
            let outcome = if *call.name == *FINISH_TOOL {
                synthesize_finish_tool_result(call.id.clone()).outcome
            } else {
                let message = "not run: the session was imported without the result";
                ToolOutcome::Error(ErrorRecord::new(ErrorCode::ToolNotRun, message))
            };
            (call.id.clone(), outcome)
        })
        .collect()
}
