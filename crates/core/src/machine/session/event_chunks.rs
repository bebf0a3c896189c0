//! The stream chunks that are derived from log events, in contrast to those that attempts write.
//! All runtimes use this code, so they all show the same.

use std::sync::Arc;

use super::Session;
use crate::event::{Event, PendingCall, PendingKind, RunOutcome, ToolFinish, ToolOutcome, Trigger};
use crate::id::SessionId;
use crate::message::ToolCall;
use crate::stream::ChunkKind;
use crate::tool::{FINISH_TOOL, SUB_AGENT_PREFIX};

/// Returns the chunks for events of the current run. Each event is given with its version in the
/// log, and each chunk is returned with the version of its event.
pub fn event_chunks<'a>(
    session: &Session,
    events: impl IntoIterator<Item = (u64, &'a Event)>,
) -> Vec<(u64, ChunkKind)> {
    let finishes = |step: u32| -> Vec<&ToolFinish> {
        let closed = session.step_at_checkpoint(step);
        let calls = closed.map_or(&[][..], |closed| &closed.calls);
        calls.iter().filter_map(|call| call.finish.as_deref()).collect()
    };
    let mut chunks = Vec::new();
    for (seq, event) in events {
        for_each_event_chunk(session, seq, event, &finishes, &mut |kind| chunks.push((seq, kind)));
    }
    chunks
}

/// Calls `show` with each chunk of an event. `finishes` returns the results of a step, in any order.
pub(crate) fn for_each_event_chunk<'a>(
    session: &Session,
    seq: u64,
    event: &Event,
    finishes: &impl Fn(u32) -> Vec<&'a ToolFinish>,
    show: &mut impl FnMut(ChunkKind),
) {
    match event {
        Event::RunStarted { trigger: Trigger::Execute | Trigger::Continue, run, .. } => {
            let record = session.runs().rev().find(|record| record.id == *run);
            show(ChunkKind::RunStarted { turn: record.map_or(0, |record| record.turn) });
        }
        Event::RunStarted { .. } => show(ChunkKind::RunResumed),
        Event::ToolFinished(finish) => {
            if finish.child.is_some()
                && let Some(call) = session.tool_call(&finish.call)
            {
                let start = session.child_of(&finish.call);
                let subagent = call.name.strip_prefix(SUB_AGENT_PREFIX).unwrap_or(&call.name);
                let of_call = || SessionId::of_call(session.id(), &finish.call);
                show(ChunkKind::SubagentEnd {
                    call: finish.call.clone(),
                    subagent: start
                        .map_or_else(|| subagent.into(), |start| Arc::clone(&start.agent)),
                    child: start.map_or_else(of_call, |start| start.session.clone()),
                    success: matches!(finish.outcome, ToolOutcome::Success(_)),
                });
            }
            if finish.attempts == 0
                && let Some(call) = session.tool_call(&finish.call)
                && *call.name != *FINISH_TOOL
            {
                end_of_call(call, &finish.outcome).for_each(show);
            }
        }
        Event::StateChanged { patch, .. } => {
            show(ChunkKind::StatePatch { patch: patch.clone() });
        }
        Event::StepClosed { step } => {
            state_patches(finishes(*step)).for_each(&mut *show);
            show(ChunkKind::Checkpoint { version: seq });
        }
        Event::RunEnded { outcome } => {
            if let RunOutcome::Suspended { on } = outcome {
                let chunks =
                    on.new_calls().filter_map(|pending| pending_call_chunk(session, pending));
                chunks.for_each(&mut *show);
            }
            end_of_run(session, outcome).into_iter().for_each(show);
        }
        Event::Forked { .. } => show(ChunkKind::RunInterrupted { reason: None }),
        _ => {}
    }
}

/// Returns the chunks of a late result: a superseded run recorded it after another run had taken
/// over. The chunks that the superseded run wrote for the call were discarded.
pub fn late_end(session: &Session, finish: &ToolFinish) -> Vec<ChunkKind> {
    let Some(call) = session.tool_call(&finish.call) else { return Vec::new() };
    let arguments = call.arguments.as_json().map(|json| json.text().to_owned());
    let (id, tool) = (call.id.clone(), Arc::clone(&call.name));
    let start = arguments.map(|arguments| {
        let client = false;
        ChunkKind::ToolStart { call: id, tool, arguments, client }
    });
    start.into_iter().chain(end_of_call(call, &finish.outcome)).collect()
}

/// Returns the state changes of a step's calls, in the order in which the fold applies them.
fn state_patches(mut finishes: Vec<&ToolFinish>) -> impl Iterator<Item = ChunkKind> {
    finishes.sort_by_key(|finish| (finish.finish.is_some(), finish.call.index()));
    let patches = finishes.into_iter().map(|finish| finish.state_patch.clone());
    patches.filter(|patch| !patch.is_empty()).map(|patch| ChunkKind::StatePatch { patch })
}

fn end_of_run(session: &Session, outcome: &RunOutcome) -> Vec<ChunkKind> {
    let ended = |status: &str| {
        let usage = Some(session.turn_usage());
        ChunkKind::RunEnded { status: status.to_owned(), usage }
    };
    match outcome {
        RunOutcome::Completed { output } => {
            let output = output.as_ref().map(|output| output.text().to_owned());
            let output = output.map(|output| ChunkKind::Output { output });
            output.into_iter().chain([ended("completed")]).collect()
        }
        RunOutcome::Failed { error } => {
            vec![ChunkKind::Error { error: error.clone() }, ended("failed")]
        }
        RunOutcome::Interrupted { reason } => {
            vec![ChunkKind::RunInterrupted { reason: reason.clone() }]
        }
        RunOutcome::Suspended { on } => {
            let calls = on.calls.iter().map(|pending| pending.call.clone()).collect();
            vec![ChunkKind::RunSuspended { calls, deadline: on.deadline() }]
        }
        RunOutcome::Aborted { .. } => vec![ended("aborted")],
    }
}

/// Returns the chunk that presents a pending call to the user.
fn pending_call_chunk(session: &Session, pending: &PendingCall) -> Option<ChunkKind> {
    let arguments = session.tool_call(&pending.call)?.arguments.as_json()?.text().to_owned();
    let (call, tool) = (pending.call.clone(), Arc::clone(&pending.tool));
    Some(match pending.kind {
        PendingKind::Client => {
            let client = true;
            ChunkKind::ToolStart { call, tool, arguments, client }
        }
        PendingKind::Approval { editable } => ChunkKind::ToolApprovalRequest {
            call,
            tool,
            arguments,
            digest: pending.digest.clone(),
            editable,
            deadline: pending.deadline,
        },
    })
}

/// Returns the chunks that show the end of a call.
pub fn end_of_call(call: &ToolCall, outcome: &ToolOutcome) -> impl Iterator<Item = ChunkKind> {
    let (call, tool) = (&call.id, &call.name);
    let end = |success, result| {
        Some(ChunkKind::ToolEnd { call: call.clone(), tool: Arc::clone(tool), success, result })
    };
    let chunks = match outcome {
        ToolOutcome::Acknowledged => [None, None],
        ToolOutcome::Success(result) => [None, end(true, Some(result.text().to_owned()))],
        ToolOutcome::Error(error) => {
            let (call, tool, error) = (call.clone(), Arc::clone(tool), error.clone());
            [Some(ChunkKind::ToolError { call, tool, error }), end(false, None)]
        }
    };
    chunks.into_iter().flatten()
}
