//! The reader of a turn, which classifies chunks.

mod attempts;
mod calls;
mod children;

use std::collections::BTreeMap;

use helix_agents_core::error::{ErrorCode, ErrorRecord};
use helix_agents_core::id::{CallId, RunId, SessionId};
use helix_agents_core::stream::{Attempt, Chunk, ChunkKind, StoredChunk};

use super::drafts::Drafts;
use super::sub_agents::SubAgents;
use super::{Folds, RunEnd, TurnEvent};
use attempts::{Attempts, Purpose};
use calls::Calls;

/// Reads the chunks of one turn and reports its events. One reader serves one response to one client.
///
/// The reader is a pure state machine. Its memory grows with the number of calls and sub-agents of the turn and with
/// the text of the current step, and the cost of a chunk does not depend on the chunks before it. It reports a [`RunEnded`](TurnEvent::RunEnded) or [`Resync`](TurnEvent::Resync) as the
/// last event, and nothing after it.
///
/// # Examples
///
/// ```
/// use helix_agents_core::stream::{Chunk, ChunkKind};
/// use helix_agents_protocols::turn::{TurnEvent, TurnReader};
///
/// let kind = ChunkKind::TextDelta { delta: "Hello".to_owned() };
/// let (agent, session, run) = ("clerk".into(), "chat".into(), "r1".into());
/// let chunk = Chunk { agent, session, run, step: 1, at: Default::default(), kind };
///
/// let mut reader = TurnReader::new("chat".into());
/// let mut text = String::new();
/// reader.read(None, &chunk, &mut |event| {
///     if let TurnEvent::Text { delta } = event {
///         text.push_str(delta);
///     }
/// });
/// assert_eq!(text, "Hello");
/// ```
#[derive(Debug)]
pub struct TurnReader {
    root: SessionId,
    run: Option<RunId>,
    step: u32,
    is_step_open: bool,
    /// The text of the step, to recognise it in the output of the turn.
    step_text: String,
    drafts: Drafts,
    calls: Calls,
    attempts: Attempts,
    sub_agents: SubAgents,
    /// The position of the chunk that is read, unless it is a replayed one.
    seq: Option<u64>,
    /// The calls whose answers no run has handled yet, each with whether it was approved.
    answers: BTreeMap<String, Option<bool>>,
    error: Option<ErrorRecord>,
    is_over: bool,
}

impl TurnReader {
    /// Creates a reader of the present turn of a root session. The end of any run ends the response.
    #[must_use]
    pub fn new(root: SessionId) -> Self {
        Self {
            root,
            run: None,
            step: 0,
            is_step_open: false,
            step_text: String::new(),
            drafts: Drafts::default(),
            calls: Calls::default(),
            attempts: Attempts::default(),
            sub_agents: SubAgents::default(),
            seq: None,
            answers: BTreeMap::new(),
            error: None,
            is_over: false,
        }
    }

    /// Makes the reader report answers that the folds contain and no run has handled yet. The stream does not show them.
    #[must_use]
    pub fn with_answers(mut self, folds: &Folds<'_>) -> Self {
        self.answers = folds.answers();
        self
    }

    /// Returns `true` once the last event was reported.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Reads a chunk of the stream.
    pub fn read_stored(&mut self, stored: &StoredChunk, emit: &mut impl FnMut(TurnEvent<'_>)) {
        self.seq = Some(stored.seq);
        self.read(stored.attempt, &stored.chunk, emit);
        self.seq = None;
    }

    /// Reads a chunk, which belongs to an attempt if it was not [replayed](super::replay).
    pub fn read(
        &mut self,
        attempt: Option<Attempt>,
        chunk: &Chunk,
        emit: &mut impl FnMut(TurnEvent<'_>),
    ) {
        if self.is_over {
            return;
        }
        match &chunk.kind {
            ChunkKind::StreamResync => {
                self.is_over = true;
                emit(TurnEvent::Resync);
            }
            ChunkKind::StepDiscarded { attempts } => {
                attempts.iter().for_each(|attempt| self.discard(*attempt, chunk, emit));
            }
            ChunkKind::StepCommitted { attempts, .. } => {
                for attempt in attempts {
                    self.attempts.settle(*attempt);
                    self.sub_agents.settle(*attempt);
                }
            }
            _ if chunk.session == self.root => self.read_own(attempt, chunk, emit),
            _ => self.read_child(attempt, chunk, emit),
        }
    }

    fn read_own(
        &mut self,
        attempt: Option<Attempt>,
        chunk: &Chunk,
        emit: &mut impl FnMut(TurnEvent<'_>),
    ) {
        self.change_run(chunk, emit);
        if opens_step(&chunk.kind) {
            self.enter_step(chunk.step, emit);
        }
        match &chunk.kind {
            ChunkKind::TextDelta { delta } if !delta.is_empty() => {
                self.attempts.start_model(attempt, chunk, true);
                self.step_text.push_str(delta);
                emit(TurnEvent::Text { delta });
            }
            ChunkKind::Thinking { content, .. } if !content.is_empty() => {
                self.attempts.start_model(attempt, chunk, true);
                emit(TurnEvent::Reasoning { delta: content });
            }
            ChunkKind::ToolArgStart { index, tool } => {
                self.attempts.start_model(attempt, chunk, true);
                if let Some(call) = self.drafts.start(chunk.step, *index, tool) {
                    self.calls.draft(call.as_str(), tool, chunk.step);
                    emit(TurnEvent::CallDrafted { call: call.as_str(), tool });
                }
            }
            ChunkKind::ToolArgDelta { index, delta } if !delta.is_empty() => {
                if let Some(call) = self.drafts.add(*index, delta) {
                    self.calls.add_draft(call.as_str(), delta);
                    emit(TurnEvent::CallDraft { call: call.as_str(), delta });
                }
            }
            ChunkKind::StatePatch { patch } => emit(TurnEvent::StateChanged { patch }),
            ChunkKind::Checkpoint { .. } => self.finish_step(emit),
            ChunkKind::Output { output } => {
                let is_text = serde_json::from_str::<String>(output)
                    .is_ok_and(|output| !output.is_empty() && output == self.step_text);
                emit(TurnEvent::Output { output, is_text });
            }
            ChunkKind::Error { error } => self.error = Some(error.clone()),
            kind if kind.ends_run() => self.end_run(chunk, emit),
            _ => self.read_call(attempt, chunk, emit),
        }
    }

    /// Reports the run of a chunk if it is another one than before.
    fn change_run(&mut self, chunk: &Chunk, emit: &mut impl FnMut(TurnEvent<'_>)) {
        if self.run.as_ref() == Some(&chunk.run) || chunk.run.as_str().is_empty() {
            return;
        }
        self.run = Some(chunk.run.clone());
        emit(TurnEvent::RunChanged { run: &chunk.run });
    }

    fn enter_step(&mut self, step: u32, emit: &mut impl FnMut(TurnEvent<'_>)) {
        if step <= self.step {
            return;
        }
        // A rewind can remove an open step.
        self.finish_step(emit);
        self.step = step;
        self.is_step_open = true;
        self.step_text.clear();
        self.drafts.clear();
        emit(TurnEvent::StepStarted { step });
    }

    fn finish_step(&mut self, emit: &mut impl FnMut(TurnEvent<'_>)) {
        if std::mem::take(&mut self.is_step_open) {
            emit(TurnEvent::StepFinished { step: self.step });
        }
    }

    fn discard(&mut self, attempt: Attempt, chunk: &Chunk, emit: &mut impl FnMut(TurnEvent<'_>)) {
        match self.attempts.discard(attempt) {
            Some(Purpose::Model { step }) if step == self.step && self.is_step_open => {
                self.drafts.clear();
                self.calls.forget_drafts(step);
                self.step_text.clear();
                emit(TurnEvent::StepReset { step });
            }
            Some(Purpose::Call { call }) => {
                if self.calls.take_back(&call) {
                    emit(TurnEvent::CallReset { call: &call });
                }
            }
            Some(Purpose::Model { .. }) => {}
            Some(Purpose::ModelOfChild { .. }) | None => {
                if let Some(sub_agent) = self.sub_agents.discard(attempt, chunk.at) {
                    emit(TurnEvent::SubAgentChanged { sub_agent });
                }
            }
        }
    }

    /// Returns `true` if an event is held back, because texts of sub-agents are shown only a few times a second.
    pub(crate) fn has_delayed(&self) -> bool {
        self.sub_agents.has_stale()
    }

    /// Emits the events that are held back.
    pub(crate) fn flush(&mut self, emit: &mut impl FnMut(TurnEvent<'_>)) {
        self.sub_agents.flush_idle(|sub_agent| emit(TurnEvent::SubAgentChanged { sub_agent }));
    }

    fn end_run(&mut self, chunk: &Chunk, emit: &mut impl FnMut(TurnEvent<'_>)) {
        self.is_over = true;
        if matches!(&chunk.kind, ChunkKind::RunEnded { status, .. } if status == "aborted") {
            self.abort_children(chunk, emit);
        }
        self.sub_agents.flush(chunk.at, |sub_agent| emit(TurnEvent::SubAgentChanged { sub_agent }));
        if let ChunkKind::RunEnded { usage: Some(usage), .. } = &chunk.kind {
            emit(TurnEvent::Usage { usage: *usage });
        }
        let error = self.error.take();
        emit(TurnEvent::RunEnded(match &chunk.kind {
            ChunkKind::RunSuspended { .. } => RunEnd::Suspended,
            ChunkKind::RunInterrupted { reason } => {
                RunEnd::Interrupted { reason: reason.as_deref() }
            }
            ChunkKind::RunEnded { status, .. } if status == "completed" => RunEnd::Completed,
            ChunkKind::RunEnded { status, .. } if status == "aborted" => RunEnd::Aborted,
            _ => RunEnd::Failed { error: error.as_ref() },
        }));
    }

    /// Returns the reference of a call of the chunk's session.
    fn reference(&self, chunk: &Chunk, call: &CallId) -> String {
        if chunk.session == self.root {
            call.to_string()
        } else {
            format!("{}#{call}", chunk.session)
        }
    }
}

/// Returns the error of a failed call whose error was not shown.
fn unknown_error() -> ErrorRecord {
    ErrorRecord::new(ErrorCode::ToolFailed, "the call failed")
}

/// Returns `true` if a chunk of this kind belongs to a step even if it is the first one of it.
fn opens_step(kind: &ChunkKind) -> bool {
    match kind {
        ChunkKind::TextDelta { delta } => !delta.is_empty(),
        ChunkKind::Thinking { content, .. } => !content.is_empty(),
        kind => matches!(
            kind,
            ChunkKind::ToolArgStart { .. }
                | ChunkKind::ToolStart { .. }
                | ChunkKind::ToolApprovalRequest { .. }
                | ChunkKind::ToolEnd { .. }
                | ChunkKind::ToolError { .. }
                | ChunkKind::SubagentStart { .. }
                | ChunkKind::Checkpoint { .. }
        ),
    }
}
