//! The calls of a turn, and the chunks about calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{ErrorCode, ErrorRecord};
use helix_agents_core::id::{CallId, SessionId};
use helix_agents_core::stream::{Attempt, Chunk, ChunkKind};
use helix_agents_core::tool::SUB_AGENT_PREFIX;

use super::{TurnReader, unknown_error};
use crate::turn::{Executor, SubAgent, SubAgentStatus, TurnEvent, is_of_sub_agent};

/// The calls that were reported, by their references.
#[derive(Debug, Default)]
pub(super) struct Calls {
    by_reference: BTreeMap<String, CallState>,
}

/// The state of a call.
#[derive(Debug)]
struct CallState {
    step: u32,
    tool: Arc<str>,
    /// The arguments that the model has written so far, until the call starts.
    draft: String,
    /// Whether the call has started or was presented to a user.
    is_started: bool,
    has_result: bool,
}

impl CallState {
    fn new(tool: &Arc<str>, step: u32) -> Self {
        let (tool, draft) = (Arc::clone(tool), String::new());
        Self { step, tool, draft, is_started: false, has_result: false }
    }
}

impl Calls {
    /// Adds a call that the model starts to write.
    pub(super) fn draft(&mut self, call: &str, tool: &Arc<str>, step: u32) {
        self.by_reference.insert(call.to_owned(), CallState::new(tool, step));
    }

    /// Adds to the arguments of a call that the model writes.
    pub(super) fn add_draft(&mut self, call: &str, delta: &str) {
        if let Some(state) = self.by_reference.get_mut(call) {
            state.draft.push_str(delta);
        }
    }

    /// Forgets the calls of a discarded reply.
    pub(super) fn forget_drafts(&mut self, step: u32) {
        self.by_reference.retain(|_, state| state.step != step || state.is_started);
    }

    /// Returns `true` if the call was started or presented.
    pub(super) fn is_started(&self, call: &str) -> bool {
        self.by_reference.get(call).is_some_and(|state| state.is_started)
    }

    fn start(&mut self, call: &str, tool: &Arc<str>, step: u32) {
        let state = CallState { is_started: true, ..CallState::new(tool, step) };
        self.by_reference.insert(call.to_owned(), state);
    }

    /// Returns the state of a call if its result is reported for the first time.
    fn end(&mut self, call: &str, tool: &Arc<str>, step: u32) -> Option<&CallState> {
        let new = || CallState::new(tool, step);
        let state = self.by_reference.entry(call.to_owned()).or_insert_with(new);
        let is_first = !std::mem::replace(&mut state.has_result, true);
        is_first.then_some(&*state)
    }

    /// Returns the calls of sub-agents that were presented and have no result, with the names of their tools.
    pub(super) fn open_of_children(&self) -> Vec<(String, Arc<str>)> {
        let calls = self.by_reference.iter();
        let open = calls.filter(|(reference, state)| {
            state.is_started && !state.has_result && is_of_sub_agent(reference)
        });
        open.map(|(reference, state)| (reference.clone(), Arc::clone(&state.tool))).collect()
    }

    /// Takes back the result of a call. Returns `true` if it had one.
    pub(super) fn take_back(&mut self, call: &str) -> bool {
        let state = self.by_reference.get_mut(call);
        state.is_some_and(|state| std::mem::replace(&mut state.has_result, false))
    }
}

impl TurnReader {
    /// Reads a chunk about a call of the root session, or about a shown call of a sub-agent.
    pub(super) fn read_call(
        &mut self,
        attempt: Option<Attempt>,
        chunk: &Chunk,
        emit: &mut impl FnMut(TurnEvent<'_>),
    ) {
        match &chunk.kind {
            ChunkKind::ToolStart { call, tool, arguments, client } => {
                let reference = self.reference(chunk, call);
                // The log of a sub-agent may be read before its part of the stream.
                if *client && self.calls.is_started(&reference) {
                    return;
                }
                self.calls.start(&reference, tool, chunk.step);
                self.attempts.start_call(attempt, &reference);
                let by = if *client { Executor::Client } else { Executor::Server };
                emit(TurnEvent::CallStarted { call: &reference, tool, arguments, by });
                if *client {
                    self.answer_call(&reference, emit);
                }
            }
            ChunkKind::ToolApprovalRequest {
                call,
                tool,
                arguments,
                digest,
                editable,
                deadline,
            } => {
                let reference = self.reference(chunk, call);
                // The log of a sub-agent may be read before its part of the stream.
                if !self.calls.is_started(&reference) {
                    self.calls.start(&reference, tool, chunk.step);
                    let (call, editable, deadline) = (&*reference, *editable, *deadline);
                    emit(TurnEvent::ApprovalRequested {
                        call,
                        tool,
                        arguments,
                        digest,
                        editable,
                        deadline,
                    });
                    self.answer_call(&reference, emit);
                }
            }
            ChunkKind::ToolProgress { call, message, fraction } => {
                let call = &*self.reference(chunk, call);
                emit(TurnEvent::CallProgress { call, message, fraction: *fraction });
            }
            ChunkKind::ToolEnd { call, tool, success, result } => {
                let call = &*self.reference(chunk, call);
                if !success {
                    self.fail_call(call, tool, &unknown_error(), chunk, emit);
                } else if self.calls.end(call, tool, chunk.step).is_some() {
                    let result = result.as_deref().unwrap_or("null");
                    emit(TurnEvent::CallSucceeded { call, tool, result });
                }
                self.end_sub_agent(call, *success, chunk.at, emit);
            }
            ChunkKind::ToolError { call, tool, error } => {
                let call = &*self.reference(chunk, call);
                self.fail_call(call, tool, error, chunk, emit);
            }
            ChunkKind::Custom { name, data } => {
                let is_root = chunk.session == self.root;
                let id = &*self.attempts.custom_id(attempt, chunk, is_root, self.seq);
                emit(TurnEvent::Custom { name, data, id });
            }
            ChunkKind::SubagentStart { call, subagent, child, arguments, companion } => {
                let call = self.reference(chunk, call);
                let is_companion = companion.is_some();
                if !is_companion && chunk.session == self.root {
                    self.start_call_of_sub_agent(chunk, &call, subagent, arguments, emit);
                }
                let sub_agent = SubAgent {
                    session: child.clone(),
                    parent: chunk.session.clone(),
                    name: Arc::clone(subagent),
                    call,
                    is_companion,
                    status: SubAgentStatus::Running,
                    text: String::new(),
                };
                if let Some(sub_agent) = self.sub_agents.start(sub_agent, chunk.at) {
                    emit(TurnEvent::SubAgentChanged { sub_agent });
                }
            }
            ChunkKind::SubagentEnd { child, success, .. } => {
                self.set_status(child, ended(*success), chunk.at, emit);
            }
            _ => {}
        }
    }

    /// Reports the answer that the log contains for a call.
    fn answer_call(&mut self, reference: &str, emit: &mut impl FnMut(TurnEvent<'_>)) {
        if let Some(approved) = self.answers.remove(reference) {
            emit(TurnEvent::CallAnswered { call: reference, approved });
        }
    }

    fn fail_call(
        &mut self,
        call: &str,
        tool: &Arc<str>,
        error: &ErrorRecord,
        chunk: &Chunk,
        emit: &mut impl FnMut(TurnEvent<'_>),
    ) {
        if let Some(state) = self.calls.end(call, tool, chunk.step) {
            let started = state.is_started;
            let draft = if is_sub_agent(tool) {
                self.drafts.arguments_of_sub_agent(&CallId::from(call))
            } else {
                Some(&*state.draft)
            };
            let draft = draft.filter(|_| !started && chunk.session == self.root);
            emit(TurnEvent::CallFailed { call, tool, error, started, draft });
        }
    }

    /// Reports the call of a sub-agent, which no tool starts. A companion is started by a tool, whose call is shown.
    fn start_call_of_sub_agent(
        &mut self,
        chunk: &Chunk,
        call: &str,
        name: &str,
        arguments: &str,
        emit: &mut impl FnMut(TurnEvent<'_>),
    ) {
        // The start is shown again after a crash before it was recorded.
        if self.calls.is_started(call) {
            return;
        }
        let tool = &Arc::from(format!("{SUB_AGENT_PREFIX}{name}"));
        self.calls.start(call, tool, chunk.step);
        let arguments = if arguments.is_empty() { "{}" } else { arguments };
        emit(TurnEvent::CallStarted { call, tool, arguments, by: Executor::Server });
    }

    /// Ends what sub-agents have left open, because the run was aborted. They record their ends after that of the root.
    pub(super) fn abort_children(&mut self, chunk: &Chunk, emit: &mut impl FnMut(TurnEvent<'_>)) {
        let message = "not run: the run was aborted while the call was pending";
        let error = ErrorRecord::new(ErrorCode::ToolNotRun, message);
        for (call, tool) in self.calls.open_of_children() {
            self.fail_call(&call, &tool, &error, chunk, emit);
        }
        for session in self.sub_agents.open() {
            self.set_status(&session, SubAgentStatus::Failed, chunk.at, emit);
        }
    }

    /// Ends the sub-agent that a call waited for. The result of the call decides: after an abort, the sub-agent may have
    /// completed its work too late.
    pub(super) fn end_sub_agent(
        &mut self,
        call: &str,
        success: bool,
        at: Timestamp,
        emit: &mut impl FnMut(TurnEvent<'_>),
    ) {
        if let Some(session) = self.sub_agents.of_call(call) {
            self.set_status(&session, ended(success), at, emit);
        }
    }

    pub(super) fn set_status(
        &mut self,
        session: &SessionId,
        status: SubAgentStatus,
        at: Timestamp,
        emit: &mut impl FnMut(TurnEvent<'_>),
    ) {
        if let Some(sub_agent) = self.sub_agents.set_status(session, status, at) {
            emit(TurnEvent::SubAgentChanged { sub_agent });
        }
    }
}

fn is_sub_agent(tool: &str) -> bool {
    tool.starts_with(SUB_AGENT_PREFIX)
}

fn ended(success: bool) -> SubAgentStatus {
    if success { SubAgentStatus::Completed } else { SubAgentStatus::Failed }
}
