//! Execution of tool calls.

use std::sync::Arc;

use helix_agents::agent::AnyAgent;
use helix_agents::error::{Error, ErrorCode, ErrorRecord, Result};
use helix_agents::event::{Event, ToolFinish, ToolOutcome};
use helix_agents::json::Json;
use helix_agents::message::ToolCall;
use helix_agents::session::Journal;
use helix_agents::step::{CallTask, complete_record, to_outcome};
use helix_agents::stream::ChunkKind;
use helix_agents::tool::{ReconcileOutcome, Tool, ToolContext, ToolContextConfig, ToolStream};
use helix_agents::trace::Operation;
use tokio_util::sync::CancellationToken;

/// Returns the event that records the start of a call, if the call must not run twice.
pub(crate) fn started(agent: &AnyAgent, journal: &Journal, task: &CallTask) -> Option<Event> {
    if !task.at_most_once {
        return None;
    }
    let tool = find(agent, journal, task).map(|(_, tool)| tool);
    let timeout = tool.and_then(Tool::own_timeout).unwrap_or(agent.limits().tool_timeout);
    Some(Event::ToolStarted {
        call: task.call.clone(),
        attempt: task.attempt,
        timeout_ms: u64::try_from(timeout.as_millis()).ok(),
    })
}

/// Executes a call. Returns the event that records its result, even if the call failed.
pub(crate) async fn run(agent: &AnyAgent, journal: &Journal, task: &CallTask) -> Result<Event> {
    let Some((call, tool)) = find(agent, journal, task) else {
        let message = "the step machine requested a call that is not in the session";
        return Err(Error::new(ErrorCode::Internal, message));
    };
    let input = call.arguments.as_json().cloned().unwrap_or_else(Json::empty_object);
    let cx = context(agent, journal, task, tool, &input);
    let outcome = if task.in_doubt { reconcile(tool, &input, &cx).await } else { None };
    let outcome = match outcome {
        Some(outcome) => outcome,
        None => to_outcome(agent, tool, tool.invoke(&input, cx.clone()).await),
    };
    let effects = cx.effects();
    let finish = ToolFinish {
        attachments: effects.attachments,
        state_patch: effects.state_patch,
        attempts: task.attempt,
        ..ToolFinish::without_run(task.call.clone(), outcome)
    };
    Ok(Event::from(complete_record(agent, tool, finish)))
}

/// Finds out whether an interrupted call was executed. Returns `None` if it was not, so that it can
/// run now.
async fn reconcile(tool: &Tool, input: &Json, cx: &ToolContext) -> Option<ToolOutcome> {
    let found = match tool.reconciler() {
        Some(reconcile) => reconcile(input.to_value(), cx.clone()).await,
        None => ReconcileOutcome::Unknown,
    };
    match found {
        ReconcileOutcome::Completed(result) => Some(ToolOutcome::Success(Json::from(result))),
        ReconcileOutcome::NotExecuted => None,
        ReconcileOutcome::Unknown => {
            let message =
                "the process stopped during this call; it is unknown whether the call was executed";
            let error = ErrorRecord::new(ErrorCode::ToolOutcomeUnknown, message);
            Some(ToolOutcome::Error(error))
        }
    }
}

fn find<'a>(
    agent: &'a AnyAgent,
    journal: &'a Journal,
    task: &CallTask,
) -> Option<(&'a ToolCall, &'a Tool)> {
    let call = journal.session().open_step()?.tool_call(&task.call)?;
    Some((call, agent.tool(&call.name)?))
}

fn context(
    agent: &AnyAgent,
    journal: &Journal,
    task: &CallTask,
    tool: &Tool,
    input: &Json,
) -> ToolContext {
    let session = journal.session();
    let run = session.last_run();
    ToolContext::new(ToolContextConfig {
        agent: Arc::clone(agent.name()),
        session: session.id().clone(),
        run: run.map_or_else(|| "".into(), |run| run.id.clone()),
        fencing_token: run.map_or(0, |run| run.version),
        step: session.last_step(),
        call: task.call.clone(),
        tool: tool.name().into(),
        arguments: input.text().to_owned(),
        attempt: task.attempt,
        timeout: None,
        cancel: CancellationToken::new(),
        state: session.step_state(),
        stream: Arc::new(DiscardProgress),
        trace: Some(session.trace_parent(Operation::ToolCall(&task.call))),
    })
}

/// A stream that discards the progress of tools, because this loop has no streams.
struct DiscardProgress;

impl ToolStream for DiscardProgress {
    fn show(&self, _: ChunkKind) {}
}
