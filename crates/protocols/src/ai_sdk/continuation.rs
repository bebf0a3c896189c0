//! The response to a page's answers.
//!
//! A page that answers calls keeps its message and adds the response to it. The parts that it has already must not be
//! sent again, because the client would show texts twice. A page that resumes starts with an empty message instead, and
//! receives the whole message.

use std::collections::BTreeMap;

use super::{UiChunk, UiMessage, UiPart};
use crate::turn::is_of_sub_agent;

/// The parts of a turn's message that a page has, according to its request.
///
/// The page may claim anything here: this only determines what is sent to the page, never what the server does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// The number of steps of the root session that the page has.
    steps: u32,
    /// Whether the page's message ends with a step that shows nothing of the root session. The response continues it with
    /// the root session's next step. It may show sub-agents.
    has_empty_step: bool,
    /// The number of step starts in the page's message, including that of the empty step.
    started: u32,
    calls: BTreeMap<String, SeenCall>,
    /// The calls of the approval requests.
    approvals: BTreeMap<String, String>,
}

/// A call of a tool that a page has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeenCall {
    has_output: bool,
    is_server: bool,
    /// Whether the page has answered the call.
    is_answered: bool,
    approval: Option<String>,
    /// The number of step starts before the call.
    started: u32,
}

impl SeenCall {
    /// Describes a call in this state of the page.
    pub(super) fn new(
        state: &str,
        has_output: bool,
        is_server: bool,
        approval: Option<String>,
    ) -> Self {
        let is_answered = !is_server && (has_output || state == "approval-responded");
        Self { has_output, is_server, is_answered, approval, started: 0 }
    }
}

impl Seen {
    /// Returns the parts that a page with this message has.
    #[must_use]
    pub fn of(message: &UiMessage) -> Self {
        let mut seen = Self::default();
        for part in &message.parts {
            match part {
                UiPart::StepStart => seen.add_step(),
                UiPart::Tool(call) => {
                    let approval = call.approval.as_ref().map(|approval| approval.id.clone());
                    let is_server = call.provider_executed == Some(true);
                    let state = SeenCall::new(&call.state, call.has_output(), is_server, approval);
                    seen.add_call(&call.tool_call_id, state);
                }
                UiPart::Data(data) => seen.add_data(&data.kind),
                _ => seen.fill_step(),
            }
        }
        seen
    }

    pub(super) fn add_step(&mut self) {
        self.steps += u32::from(self.has_empty_step);
        self.has_empty_step = true;
        self.started += 1;
    }

    pub(super) fn add_call(&mut self, id: &str, call: SeenCall) {
        if !is_of_sub_agent(id) {
            self.fill_step();
        }
        let approval = call.approval.iter();
        self.approvals.extend(approval.map(|approval| (approval.clone(), id.to_owned())));
        self.calls.insert(id.to_owned(), SeenCall { started: self.started, ..call });
    }

    pub(super) fn add_data(&mut self, kind: &str) {
        if kind != "data-subagent" {
            self.fill_step();
        }
        // Version 6 keeps the step of a discarded reply, which no replay contains.
        if kind == "data-discarded" {
            self.steps = self.steps.saturating_sub(1);
        }
    }

    /// Counts the page's last step, because it is not empty.
    pub(super) fn fill_step(&mut self) {
        self.steps += u32::from(std::mem::take(&mut self.has_empty_step));
    }

    /// Returns the questions in the page's last step, each with whether the page has answered it. There are none if the
    /// response has started another step. `step` is its present step, counted from 1.
    pub(super) fn questions(&self, step: u32) -> impl Iterator<Item = (&str, bool)> {
        let is_in_last_step = self.is_in_last_step(step);
        let questions = self.calls.iter().filter(move |(_, call)| {
            is_in_last_step && call.started == self.started && !call.is_server
        });
        questions.map(|(id, call)| (&**id, call.is_answered))
    }

    /// Returns `true` as long as the response has started no other step than the page's last one.
    fn is_in_last_step(&self, step: u32) -> bool {
        step <= self.steps + u32::from(self.has_empty_step)
    }

    /// Returns `true` if the page has a call.
    pub(super) fn has_call(&self, call: &str) -> bool {
        self.calls.contains_key(call)
    }

    /// Returns `true` if the page needs a chunk of the step with this number, counted from 1.
    pub(super) fn needs(&self, chunk: &UiChunk, step: u32) -> bool {
        let is_in_last_step = self.is_in_last_step(step);
        match chunk {
            UiChunk::StartStep => !is_in_last_step,
            UiChunk::FinishStep
            | UiChunk::ResetStep
            | UiChunk::TextStart { .. }
            | UiChunk::TextDelta { .. }
            | UiChunk::TextEnd { .. }
            | UiChunk::ReasoningStart { .. }
            | UiChunk::ReasoningDelta { .. }
            | UiChunk::ReasoningEnd { .. } => step > self.steps,
            // The page may have a call of a companion in an earlier step.
            UiChunk::ToolInputStart { tool_call_id, .. }
            | UiChunk::ToolInputDelta { tool_call_id, .. }
            | UiChunk::ToolInputError { tool_call_id, .. } => {
                !self.calls.contains_key(tool_call_id)
            }
            // An approved call that runs. The other calls are known with their arguments.
            UiChunk::ToolInputAvailable { tool_call_id, provider_executed, .. } => {
                self.calls.get(tool_call_id).is_none_or(|call| {
                    let is_current = is_in_last_step && call.started == self.started;
                    is_current && *provider_executed == Some(true) && !call.has_output
                })
            }
            UiChunk::ToolApprovalRequest { tool_call_id, approval_id } => {
                let known = self.calls.get(tool_call_id);
                known.is_none_or(|call| call.approval.as_ref() != Some(approval_id))
            }
            UiChunk::ToolApprovalResponse { approval_id, .. } => {
                let asked = self.approvals.get(approval_id).and_then(|call| self.calls.get(call));
                asked.is_none_or(|call| !call.has_output)
            }
            UiChunk::ToolOutputAvailable { tool_call_id, .. }
            | UiChunk::ToolOutputError { tool_call_id, .. }
            | UiChunk::ToolOutputDenied { tool_call_id } => {
                // The page shows its own answer until the recorded one arrives, which may be that of another page.
                let known = self.calls.get(tool_call_id);
                known.is_none_or(|call| !(call.has_output && call.is_server))
            }
            _ => true,
        }
    }
}
