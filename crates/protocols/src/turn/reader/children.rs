//! The chunks of sub-agents.
//!
//! A sub-agent is shown as one object with a status and the text that it writes. Its calls are not shown, except those
//! that a human or a client has to answer: these are shown as calls of the root, with the reference `session#call`.

use helix_agents_core::stream::{Attempt, Chunk, ChunkKind};

use super::TurnReader;
use crate::turn::{SubAgentStatus, TurnEvent};

impl TurnReader {
    pub(super) fn read_child(
        &mut self,
        attempt: Option<Attempt>,
        chunk: &Chunk,
        emit: &mut impl FnMut(TurnEvent<'_>),
    ) {
        let (session, at) = (&chunk.session, chunk.at);
        match &chunk.kind {
            ChunkKind::TextDelta { delta } => {
                self.attempts.start_model(attempt, chunk, false);
                let changed = self.sub_agents.add_text(session, attempt, delta, at);
                if let Some(sub_agent) = changed {
                    emit(TurnEvent::SubAgentChanged { sub_agent });
                }
            }
            ChunkKind::Checkpoint { .. } => {
                if let Some(sub_agent) = self.sub_agents.end_text(session, at) {
                    emit(TurnEvent::SubAgentChanged { sub_agent });
                }
            }
            ChunkKind::RunStarted { .. } | ChunkKind::RunResumed => {
                self.set_status(session, SubAgentStatus::Running, at, emit);
            }
            ChunkKind::RunSuspended { .. } | ChunkKind::RunInterrupted { .. } => {
                self.set_status(session, SubAgentStatus::Suspended, at, emit);
            }
            ChunkKind::RunEnded { status, .. } => {
                let is_complete = status == "completed";
                let status =
                    if is_complete { SubAgentStatus::Completed } else { SubAgentStatus::Failed };
                self.set_status(session, status, at, emit);
            }
            ChunkKind::ToolStart { client: true, .. }
            | ChunkKind::ToolApprovalRequest { .. }
            | ChunkKind::SubagentStart { .. }
            | ChunkKind::SubagentEnd { .. }
            | ChunkKind::Custom { .. } => self.read_call(attempt, chunk, emit),
            ChunkKind::ToolStart { call, .. }
            | ChunkKind::ToolProgress { call, .. }
            | ChunkKind::ToolError { call, .. }
                if self.calls.is_started(&self.reference(chunk, call)) =>
            {
                self.read_call(attempt, chunk, emit);
            }
            // The call is not shown, but its custom events are.
            ChunkKind::ToolStart { call, .. } => {
                self.attempts.start_call(attempt, &self.reference(chunk, call));
            }
            ChunkKind::ToolEnd { call, success, .. } => {
                let reference = self.reference(chunk, call);
                if self.calls.is_started(&reference) {
                    self.read_call(attempt, chunk, emit);
                } else {
                    self.end_sub_agent(&reference, *success, at, emit);
                }
            }
            _ => {}
        }
    }
}
