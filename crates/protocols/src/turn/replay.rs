//! The recorded part of a turn as chunks.

use std::sync::Arc;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::event::{Answer, PendingKind, Suspension, ToolOutcome};
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::message::{Arguments, ReplyPart, ToolCall};
use helix_agents_core::session::{
    CallRecord, RunRecord, RunStatus, Session, StepRecord, end_of_call,
};
use helix_agents_core::stream::{Chunk, ChunkKind};
use helix_agents_core::tool::FINISH_TOOL;
use helix_agents_core::usage::Usage;

use super::Folds;
use super::record::TurnRecord;

/// Returns the chunks that show the recorded part of a turn: each text in one piece, each call with its result, and the
/// end of the turn's last run if that run has ended.
///
/// The chunks are those that the stream shows, without what was never recorded: discarded attempts, custom events,
/// progress, changes of the state, and text of model calls that failed. Ends of earlier runs of the turn are omitted as
/// well. The chunks belong to no attempt.
///
/// Questions of companions are part of the present turn as long as they wait for an answer, whenever they were asked.
#[must_use]
pub fn replay(folds: &Folds<'_>, turn: u32) -> Vec<Chunk> {
    replay_record(folds, &TurnRecord::of(folds.root(), turn))
}

/// Returns the chunks of a turn of the root session.
pub(crate) fn replay_record(folds: &Folds<'_>, record: &TurnRecord<'_>) -> Vec<Chunk> {
    let mut replay = Replay { folds, chunks: Vec::new() };
    replay.add_turn(folds.root(), record);
    replay.chunks
}

struct Replay<'f> {
    folds: &'f Folds<'f>,
    chunks: Vec<Chunk>,
}

/// The origin of the chunks of one turn of one session.
#[derive(Clone, Copy)]
struct Origin<'f> {
    session: &'f Session,
    run: &'f RunRecord,
    step: u32,
}

impl Replay<'_> {
    fn add_turn(&mut self, session: &Session, record: &TurnRecord<'_>) {
        let Some(run) = record.run else { return };
        let origin = Origin { session, run, step: 0 };
        self.add(origin, [ChunkKind::RunStarted { turn: record.turn }]);
        for (checkpoint, step) in &record.steps {
            let origin = Origin { step: checkpoint.step, ..origin };
            self.add_step(origin, step);
            self.add(origin, [ChunkKind::Checkpoint { version: checkpoint.version }]);
        }
        let last = record.steps.last().map_or(0, |(checkpoint, _)| checkpoint.step);
        let mut origin = Origin { step: last, ..origin };
        if record.turn == session.turn() {
            if let Some(step) = session.open_step() {
                origin.step = step.reply.step;
                self.add_step(origin, step);
            }
            self.add_companions(session);
        }
        self.add(origin, end_of_run(run, record.usage));
    }

    /// Adds the open calls of a session's companions, and whether these work or wait.
    fn add_companions(&mut self, session: &Session) {
        for (_, record) in session.companions() {
            let Some(fold) = self.folds.child(&record.start.session) else { continue };
            let Some(run) = fold.last_run() else { continue };
            let mut origin = Origin { session: fold, run, step: fold.last_step() };
            if let Some(step) = fold.open_step() {
                origin.step = step.reply.step;
                for (call, record) in step.pairs().filter(|(_, record)| record.finish.is_none()) {
                    self.add_call(origin, call, record);
                }
            }
            self.add_companions(fold);
            self.add(origin, end_of_run(run, Usage::default()));
        }
    }

    fn add_step(&mut self, origin: Origin<'_>, step: &StepRecord) {
        self.add(origin, reply(step));
        for (call, record) in step.pairs() {
            self.add_call(origin, call, record);
        }
    }

    fn add_call(&mut self, origin: Origin<'_>, call: &ToolCall, record: &CallRecord) {
        if *call.name == *FINISH_TOOL {
            return;
        }
        let arguments = match &call.arguments {
            Arguments::Json(json) => json.text().to_owned(),
            Arguments::Malformed(text) => text.clone(),
        };
        self.add(origin, presented(call, record, &arguments));
        if has_run(record) && !is_child(record) {
            let input = match record.answer() {
                Some(Answer::Approved { edited: Some(edited) }) => edited.text().to_owned(),
                _ => arguments.clone(),
            };
            self.add(origin, [tool_start(call, input, false)]);
        }
        self.add_child(origin, call, record, arguments);
        let end = record.finish.iter().flat_map(|finish| end_of_call(call, &finish.outcome));
        self.add(origin, end.collect::<Vec<_>>());
    }

    /// Adds the sub-agent or companion that a call started.
    fn add_child(
        &mut self,
        origin: Origin<'_>,
        call: &ToolCall,
        record: &CallRecord,
        arguments: String,
    ) {
        let Some(child) = &record.child else { return };
        let companion = child.start.companion.as_ref().map(|companion| companion.name.clone());
        let is_start = match &companion {
            // Other calls refer to a companion that was started before.
            Some(name) => {
                let known = origin.session.companion(name);
                known.is_some_and(|known| known.start.call == call.id)
            }
            None => true,
        };
        let (session, subagent) = (&child.start.session, &child.start.agent);
        let id = || call.id.clone();
        let start = ChunkKind::SubagentStart {
            call: id(),
            subagent: Arc::clone(subagent),
            child: session.clone(),
            arguments,
            companion,
        };
        self.add(origin, Some(start).filter(|_| is_start));
        let fold = self.folds.child(session).filter(|_| is_child(record));
        match fold {
            Some(fold) => self.add_turn(fold, &TurnRecord::of(fold, fold.turn())),
            // The parent only knows that the child waits.
            None if child.waits => self.add_waiting(origin, session),
            None => {}
        }
        let finish = record.finish.as_ref().filter(|finish| finish.child.is_some());
        self.add(
            origin,
            finish.map(|finish| ChunkKind::SubagentEnd {
                call: id(),
                subagent: Arc::clone(subagent),
                child: session.clone(),
                success: matches!(finish.outcome, ToolOutcome::Success(_)),
            }),
        );
    }

    fn add_waiting(&mut self, origin: Origin<'_>, session: &SessionId) {
        let kind = ChunkKind::RunSuspended { calls: Vec::new(), deadline: None };
        let chunk = chunk(session.clone(), "".into(), RunId::from(""), origin, kind);
        self.chunks.push(chunk);
    }

    fn add(&mut self, origin: Origin<'_>, kinds: impl IntoIterator<Item = ChunkKind>) {
        let Origin { session, run, .. } = origin;
        let chunk = |kind| {
            chunk(session.id().clone(), Arc::clone(session.agent()), run.id.clone(), origin, kind)
        };
        self.chunks.extend(kinds.into_iter().map(chunk));
    }
}

fn chunk(
    session: SessionId,
    agent: Arc<str>,
    run: RunId,
    origin: Origin<'_>,
    kind: ChunkKind,
) -> Chunk {
    let at: Timestamp = origin.session.clock();
    Chunk { agent, session, run, step: origin.step, at, kind }
}

/// Returns the chunks of a model's reply. A failed model call has none, because its text is not recorded.
fn reply(step: &StepRecord) -> Vec<ChunkKind> {
    let text = |text: &str| ChunkKind::TextDelta { delta: text.to_owned() };
    let Some(message) = &step.reply.message else {
        return step.reply.output.iter().map(|output| text(output.text())).collect();
    };
    let mut index = 0;
    let mut chunks = Vec::new();
    for part in message.parts() {
        match part {
            ReplyPart::Thinking { text, .. } => {
                chunks.push(ChunkKind::Thinking { content: text.to_owned(), complete: false });
            }
            ReplyPart::Text { text: piece, .. } => chunks.push(text(piece)),
            ReplyPart::Call { call, .. } => {
                if *call.name != *FINISH_TOOL {
                    let delta = match &call.arguments {
                        Arguments::Json(json) => json.text().to_owned(),
                        Arguments::Malformed(text) => text.clone(),
                    };
                    let tool = Arc::clone(&call.name);
                    chunks.push(ChunkKind::ToolArgStart { index, tool });
                    chunks.push(ChunkKind::ToolArgDelta { index, delta });
                }
                index += 1;
            }
            _ => {}
        }
    }
    chunks
}

/// Returns the chunk with which a call was presented to a client or an approver.
fn presented(call: &ToolCall, record: &CallRecord, arguments: &str) -> Option<ChunkKind> {
    let on = &record.waiting.as_ref()?.on;
    let arguments = arguments.to_owned();
    Some(match on.kind {
        PendingKind::Client => tool_start(call, arguments, true),
        PendingKind::Approval { editable } => ChunkKind::ToolApprovalRequest {
            call: call.id.clone(),
            tool: Arc::clone(&call.name),
            arguments,
            digest: on.digest.clone(),
            editable,
            deadline: on.deadline,
        },
        _ => return None,
    })
}

fn tool_start(call: &ToolCall, arguments: String, client: bool) -> ChunkKind {
    let (call, tool) = (call.id.clone(), Arc::clone(&call.name));
    ChunkKind::ToolStart { call, tool, arguments, client }
}

/// Returns `true` if the tool of a call has run and the log contains the outcome. The stream shows the starts of calls
/// in progress itself.
fn has_run(record: &CallRecord) -> bool {
    let is_answered_by_client = record.waiting.as_ref().is_some_and(|waiting| {
        matches!(waiting.on.kind, PendingKind::Client)
            || matches!(&waiting.answer, Some(answered) if matches!(answered.answer, Answer::Denied { .. }))
    });
    // A call that waits for a companion has started, even if it has no result yet.
    let waits = record.child.is_some();
    let finish = record.finish.as_ref();
    (waits || finish.is_some_and(|finish| finish.attempts > 0)) && !is_answered_by_client
}

/// Returns `true` if the call is one of a sub-agent, which it started.
fn is_child(record: &CallRecord) -> bool {
    record.child.as_ref().is_some_and(|child| child.start.companion.is_none())
}

/// Returns the chunks of the end of a run, if it has ended.
fn end_of_run(run: &RunRecord, usage: Usage) -> Vec<ChunkKind> {
    let ended = |status: RunStatus| ChunkKind::RunEnded {
        status: status.as_str().to_owned(),
        usage: Some(usage),
    };
    match run.status {
        RunStatus::Completed => {
            let output = run.output.as_ref();
            let output =
                output.map(|output| ChunkKind::Output { output: output.text().to_owned() });
            output.into_iter().chain([ended(run.status)]).collect()
        }
        RunStatus::Failed => {
            let error = run.error.clone().map(|error| ChunkKind::Error { error });
            error.into_iter().chain([ended(run.status)]).collect()
        }
        RunStatus::Aborted => vec![ended(run.status)],
        RunStatus::Interrupted => vec![ChunkKind::RunInterrupted { reason: run.reason.clone() }],
        status if status.is_suspended() => {
            let on = run.suspended.as_deref();
            let calls = on.map(|on| on.calls.iter().map(|pending| pending.call.clone()).collect());
            let deadline = on.and_then(Suspension::deadline);
            vec![ChunkKind::RunSuspended { calls: calls.unwrap_or_default(), deadline }]
        }
        _ => Vec::new(),
    }
}
