//! Assembly of a message from its chunks, as the client does it.
//!
//! The history is assembled from the chunks of a replay, so that it equals the message that a page has built live. Tests
//! use the same code as a client that checks the rules of the protocol.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use helix_agents_core::json::Json;
use helix_agents_core::message::Arguments;
use serde_json::Value;

use super::{
    DataPart, PartState, Role, TextPart, ToolApproval, ToolPart, UiChunk, UiMessage, UiPart,
};

/// A chunk that violates the rules of the protocol. The client of the AI SDK fails on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolViolation(String);

impl fmt::Display for ProtocolViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProtocolViolation {}

fn violation(text: impl Into<String>) -> Result<(), ProtocolViolation> {
    Err(ProtocolViolation(text.into()))
}

/// Assembles one message from the chunks of one or more responses. The cost of a chunk does not depend on the number of
/// parts before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Assembler {
    message: UiMessage,
    /// The index after the start of the current step.
    step: usize,
    /// The indices of the parts of each call, oldest first. Some may be outdated after a reset of the step.
    calls: HashMap<String, Vec<usize>>,
    /// The indices of the first parts with an approval request. Some may be outdated after a reset of the step.
    approvals: HashMap<String, usize>,
    /// The indices of data by type and id. Some may be outdated after a reset of the step.
    data: HashMap<(String, String), usize>,
    /// The indices of the open text and reasoning parts, by their ids.
    texts: BTreeMap<String, usize>,
    reasonings: BTreeMap<String, usize>,
    /// The arguments that the model has written so far, by the calls.
    drafts: BTreeMap<String, String>,
    is_over: bool,
}

impl Assembler {
    /// Creates an assembler of a message without parts.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        let (role, metadata, parts) = (Role::Assistant, None, Vec::new());
        Self::continuing(UiMessage { id: id.into(), role, metadata, parts })
    }

    /// Creates an assembler that continues a message, as a page does with the response to its answers.
    #[must_use]
    pub fn continuing(message: UiMessage) -> Self {
        let UiMessage { id, role, metadata, parts } = message;
        let mut assembler = Self {
            message: UiMessage { id, role, metadata, parts: Vec::with_capacity(parts.len()) },
            step: 0,
            calls: HashMap::new(),
            approvals: HashMap::new(),
            data: HashMap::new(),
            texts: BTreeMap::new(),
            reasonings: BTreeMap::new(),
            drafts: BTreeMap::new(),
            is_over: false,
        };
        parts.into_iter().for_each(|part| assembler.push(part));
        assembler
    }

    /// Adds a part at the end.
    fn push(&mut self, part: UiPart) {
        let index = self.message.parts.len();
        match &part {
            UiPart::StepStart => self.step = index + 1,
            UiPart::Tool(call) => {
                self.calls.entry(call.tool_call_id.clone()).or_default().push(index);
                if let Some(approval) = &call.approval {
                    self.approvals.entry(approval.id.clone()).or_insert(index);
                }
            }
            UiPart::Data(DataPart { kind, id: Some(id), .. }) => {
                self.data.insert((kind.clone(), id.clone()), index);
            }
            _ => {}
        }
        self.message.parts.push(part);
    }

    /// Returns the message as assembled so far.
    #[must_use]
    pub fn message(&self) -> &UiMessage {
        &self.message
    }

    /// Returns the message without parts that only a live response continues: open texts end, a call whose arguments are
    /// complete counts as started by the server, and one whose arguments are incomplete is left out.
    #[must_use]
    pub fn into_settled(self) -> UiMessage {
        let Self { mut message, drafts, .. } = self;
        message.parts.retain_mut(|part| match part {
            UiPart::Text(text) | UiPart::Reasoning(text) => {
                text.state = Some(PartState::Done);
                true
            }
            // The schema of messages accepts no unanswered request of a call that has ended.
            UiPart::Tool(call) if matches!(&*call.state, "output-available" | "output-error") => {
                call.approval.take_if(|approval| approval.approved != Some(true));
                true
            }
            UiPart::Tool(call) if call.state == "output-denied" => {
                let approval = call.approval.as_mut();
                approval.map(|approval| approval.approved.get_or_insert(false));
                true
            }
            UiPart::Tool(call) if call.state == "input-streaming" => {
                let draft = drafts.get(&call.tool_call_id).map(|draft| Arguments::parse(draft));
                let input = draft.as_ref().and_then(Arguments::as_json).map(Json::to_value);
                call.state = "input-available".to_owned();
                call.provider_executed = Some(true);
                call.input = input;
                call.input.is_some()
            }
            _ => true,
        });
        message
    }

    /// Adds a chunk.
    ///
    /// # Errors
    /// Returns an error for a chunk on which the client fails: a piece of a part that is not open, a result of a call
    /// that was not introduced, or any chunk after an error.
    pub fn add(&mut self, chunk: &UiChunk) -> Result<(), ProtocolViolation> {
        if self.is_over {
            return violation(format!("{chunk:?} after the end"));
        }
        match chunk {
            UiChunk::Start { message_id, message_metadata } => {
                if let Some(id) = message_id {
                    self.message.id.clone_from(id);
                }
                self.merge_metadata(message_metadata.as_ref());
            }
            UiChunk::StartStep => self.push(UiPart::StepStart),
            UiChunk::ResetStep => {
                self.message.parts.truncate(self.step);
                self.texts.clear();
                self.reasonings.clear();
                self.drafts.clear();
            }
            UiChunk::MessageMetadata { message_metadata } => {
                self.merge_metadata(Some(message_metadata));
            }
            UiChunk::Finish { message_metadata, .. } => {
                self.merge_metadata(message_metadata.as_ref());
            }
            UiChunk::Error { .. } => self.is_over = true,
            UiChunk::FinishStep | UiChunk::Abort { .. } => {}
            UiChunk::Data { kind, id, data, transient } => {
                if *transient != Some(true) {
                    self.set_data(kind, id.as_deref(), data);
                }
            }
            text if self.add_text(text)? => {}
            tool => self.add_tool(tool)?,
        }
        Ok(())
    }

    fn merge_metadata(&mut self, metadata: Option<&Value>) {
        let Some(new) = metadata else { return };
        match (&mut self.message.metadata, new) {
            (Some(Value::Object(known)), Value::Object(new)) => known.extend(new.clone()),
            (known, new) => *known = Some(new.clone()),
        }
    }

    fn set_data(&mut self, kind: &str, id: Option<&str>, data: &Value) {
        let index = id.and_then(|id| self.data.get(&(kind.to_owned(), id.to_owned())));
        let known = index.and_then(|index| self.message.parts.get_mut(*index));
        match known {
            Some(UiPart::Data(known)) if known.kind == kind && known.id.as_deref() == id => {
                known.data = data.clone();
            }
            _ => {
                let (kind, id, data) = (kind.to_owned(), id.map(str::to_owned), data.clone());
                self.push(UiPart::Data(DataPart { kind, id, data }));
            }
        }
    }

    /// Adds a chunk of a text or reasoning part. Returns `false` for other chunks.
    fn add_text(&mut self, chunk: &UiChunk) -> Result<bool, ProtocolViolation> {
        let open = |id: &String| TextPart {
            id: Some(id.clone()),
            text: String::new(),
            state: Some(PartState::Streaming),
        };
        let index = self.message.parts.len();
        match chunk {
            UiChunk::TextStart { id } => {
                self.texts.insert(id.clone(), index);
                self.push(UiPart::Text(TextPart { id: None, ..open(id) }));
            }
            UiChunk::ReasoningStart { id } => {
                self.reasonings.insert(id.clone(), index);
                self.push(UiPart::Reasoning(open(id)));
            }
            UiChunk::TextDelta { id, delta } => {
                let index = self.texts.get(id).copied();
                self.open_text(index, id)?.text.push_str(delta);
            }
            UiChunk::ReasoningDelta { id, delta } => {
                let index = self.reasonings.get(id).copied();
                self.open_text(index, id)?.text.push_str(delta);
            }
            UiChunk::TextEnd { id } => {
                let index = self.texts.remove(id);
                self.open_text(index, id)?.state = Some(PartState::Done);
            }
            UiChunk::ReasoningEnd { id } => {
                let index = self.reasonings.remove(id);
                self.open_text(index, id)?.state = Some(PartState::Done);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn open_text(
        &mut self,
        index: Option<usize>,
        id: &str,
    ) -> Result<&mut TextPart, ProtocolViolation> {
        match index.and_then(|index| self.message.parts.get_mut(index)) {
            Some(UiPart::Text(part) | UiPart::Reasoning(part)) => Ok(part),
            _ => Err(ProtocolViolation(format!("no text part with the id {id} is open"))),
        }
    }

    fn add_tool(&mut self, chunk: &UiChunk) -> Result<(), ProtocolViolation> {
        match chunk {
            UiChunk::ToolInputStart { tool_call_id, tool_name } => {
                self.drafts.insert(tool_call_id.clone(), String::new());
                self.set_input(ToolPart::new(tool_call_id, tool_name, "input-streaming"));
            }
            UiChunk::ToolInputDelta { tool_call_id, input_text_delta } => {
                match self.drafts.get_mut(tool_call_id) {
                    Some(draft) => draft.push_str(input_text_delta),
                    None => return violation(format!("the call {tool_call_id} has no draft")),
                }
            }
            UiChunk::ToolInputAvailable { tool_call_id, tool_name, input, provider_executed } => {
                let part = ToolPart::new(tool_call_id, tool_name, "input-available");
                let (input, provider_executed) = (Some(input.clone()), *provider_executed);
                self.set_input(ToolPart { input, provider_executed, ..part });
            }
            UiChunk::ToolInputError {
                tool_call_id,
                tool_name,
                input,
                error_text,
                provider_executed,
            } => {
                let part = ToolPart::new(tool_call_id, tool_name, "output-error");
                let (input, provider_executed) = (Some(input.clone()), *provider_executed);
                let error_text = Some(error_text.clone());
                self.set_input(ToolPart { input, error_text, provider_executed, ..part });
            }
            UiChunk::ToolApprovalRequest { approval_id, tool_call_id } => {
                let part = self.call(tool_call_id)?;
                part.state = "approval-requested".to_owned();
                let (approved, reason) = (None, None);
                part.approval = Some(ToolApproval { id: approval_id.clone(), approved, reason });
                let index = self.index_of_call(tool_call_id).unwrap_or_default();
                if self.call_of_approval(approval_id).is_err() {
                    self.approvals.insert(approval_id.clone(), index);
                }
            }
            UiChunk::ToolApprovalResponse { approval_id, approved, reason } => {
                let part = self.call_of_approval(approval_id)?;
                part.state = "approval-responded".to_owned();
                if let Some(approval) = &mut part.approval {
                    (approval.approved, approval.reason) = (Some(*approved), reason.clone());
                }
            }
            UiChunk::ToolOutputAvailable {
                tool_call_id,
                output,
                provider_executed,
                preliminary,
            } => {
                let part = self.call(tool_call_id)?;
                part.state = "output-available".to_owned();
                (part.output, part.error_text) = (Some(output.clone()), None);
                part.preliminary = *preliminary;
                part.provider_executed = provider_executed.or(part.provider_executed);
            }
            UiChunk::ToolOutputError { tool_call_id, error_text, provider_executed } => {
                let part = self.call(tool_call_id)?;
                part.state = "output-error".to_owned();
                (part.output, part.error_text) = (None, Some(error_text.clone()));
                part.preliminary = None;
                part.provider_executed = provider_executed.or(part.provider_executed);
            }
            UiChunk::ToolOutputDenied { tool_call_id } => {
                self.call(tool_call_id)?.state = "output-denied".to_owned();
            }
            _ => {}
        }
        Ok(())
    }

    /// Sets the state and arguments of a call of the current step. Adds the call if the step has none with that id.
    fn set_input(&mut self, new: ToolPart) {
        let known = self.index_of_call(&new.tool_call_id).filter(|index| *index >= self.step);
        match known.and_then(|index| self.message.parts.get_mut(index)).and_then(tool_part) {
            Some(known) => {
                let provider_executed = new.provider_executed.or(known.provider_executed);
                let approval = known.approval.take();
                *known = ToolPart { provider_executed, approval, ..new };
            }
            None => self.push(UiPart::Tool(Box::new(new))),
        }
    }

    /// Returns the index of the last part of a call.
    fn index_of_call(&mut self, id: &str) -> Option<usize> {
        let indices = self.calls.get_mut(id)?;
        while let Some(index) = indices.last() {
            match self.message.parts.get(*index) {
                Some(UiPart::Tool(call)) if call.tool_call_id == id => return Some(*index),
                _ => indices.pop(),
            };
        }
        None
    }

    /// Returns the last part of a call.
    fn call(&mut self, id: &str) -> Result<&mut ToolPart, ProtocolViolation> {
        let index = self.index_of_call(id);
        let part = index.and_then(|index| self.message.parts.get_mut(index)).and_then(tool_part);
        part.ok_or_else(|| ProtocolViolation(format!("the call {id} is not known")))
    }

    fn call_of_approval(&mut self, id: &str) -> Result<&mut ToolPart, ProtocolViolation> {
        let unknown = || ProtocolViolation(format!("the approval {id} is not known"));
        let index = *self.approvals.get(id).ok_or_else(unknown)?;
        let part = self.message.parts.get_mut(index).and_then(tool_part);
        let is_same =
            |part: &&mut ToolPart| part.approval.as_ref().is_some_and(|known| known.id == id);
        part.filter(is_same).ok_or_else(unknown)
    }
}

fn tool_part(part: &mut UiPart) -> Option<&mut ToolPart> {
    match part {
        UiPart::Tool(part) => Some(part),
        _ => None,
    }
}
