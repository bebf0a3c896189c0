//! The calls of a turn, and the questions that they leave open.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use helix_agents_core::event::PendingCall;
use serde_json::{Value, json};

use super::{Writer, value};
use crate::ag_ui::{Event, Interrupt, Outcome, result_id};
use crate::approval::ApprovalId;
use crate::turn::{Executor, TurnEvent};

/// The calls that were introduced to the client.
#[derive(Debug, Default)]
pub(super) struct Calls {
    by_reference: BTreeMap<String, Call>,
    /// The calls whose arguments are not complete.
    drafts: BTreeSet<String>,
    /// The calls that wait for a result of the client or for an approval.
    questions: BTreeMap<String, Question>,
}

#[derive(Debug, Default)]
struct Call {
    has_result: bool,
    /// The arguments that were presented to an approver, as JSON text.
    presented: Option<String>,
    /// The arguments with which the call runs, if they are others.
    edited: Option<String>,
}

/// The question that a call waits for.
#[derive(Debug)]
enum Question {
    Result,
    Approval { id: String, editable: bool },
}

impl Calls {
    pub(super) fn is_introduced(&self, call: &str) -> bool {
        self.by_reference.contains_key(call)
    }

    /// Ends the arguments of a call, unless they have ended.
    fn close_arguments(&mut self, call: &str, out: &mut Vec<Event>) {
        if self.drafts.remove(call) {
            out.push(Event::ToolCallEnd { tool_call_id: call.to_owned() });
        }
    }

    /// Ends the arguments of all calls that the model has not completed.
    pub(super) fn close_all_arguments(&mut self, out: &mut Vec<Event>) {
        let drafts = std::mem::take(&mut self.drafts);
        out.extend(drafts.into_iter().map(|call| Event::ToolCallEnd { tool_call_id: call }));
    }

    /// Returns the outcome of a run that waits. `pending` are the calls that the log contains.
    pub(super) fn open_questions(&self, pending: &BTreeMap<String, Arc<PendingCall>>) -> Outcome {
        let only_client =
            self.questions.values().all(|question| matches!(question, Question::Result));
        if only_client && !self.questions.is_empty() {
            let pending_tool_call_ids = self.questions.keys().cloned().collect();
            return Outcome::Success { pending_tool_call_ids };
        }
        let questions = self.questions.iter();
        let interrupts = questions.map(|(call, question)| {
            question.interrupt(call, pending.get(call).map(|call| &**call))
        });
        let mut interrupts: Vec<_> = interrupts.collect();
        if interrupts.is_empty() {
            interrupts.push(Interrupt {
                id: Interrupt::AWAITING_CHILDREN.to_owned(),
                reason: "awaiting_children".to_owned(),
                tool_call_id: None,
                response_schema: None,
                expires_at: None,
            });
        }
        Outcome::Interrupt { interrupts }
    }
}

impl Interrupt {
    /// The id of the interrupt of a run that waits for sub-agents only. Its answer has no effect other than to resume.
    pub const AWAITING_CHILDREN: &'static str = "awaiting-children";
}

impl Question {
    fn interrupt(&self, call: &str, pending: Option<&PendingCall>) -> Interrupt {
        let schema = pending.and_then(|pending| Some(pending.schema.as_ref()?.to_value()));
        let (id, response_schema) = match self {
            Self::Result => (call.to_owned(), schema),
            Self::Approval { id, editable } => {
                let arguments = schema.unwrap_or_else(|| json!({ "type": "object" }));
                (id.clone(), Some(approval_schema(editable.then_some(arguments))))
            }
        };
        let deadline = pending.and_then(|pending| pending.deadline);
        Interrupt {
            id,
            reason: "tool_call".to_owned(),
            tool_call_id: Some(call.to_owned()),
            response_schema: response_schema.filter(Value::is_object),
            expires_at: deadline.map(|deadline| deadline.to_string()),
        }
    }
}

/// Returns the schema of the answer to an approval request. `arguments` is the schema of the arguments that the approver
/// may set.
fn approval_schema(arguments: Option<Value>) -> Value {
    let mut properties = json!({
        "approved": { "type": "boolean" },
        "reason": { "type": "string" },
    });
    if let (Value::Object(properties), Some(arguments)) = (&mut properties, arguments) {
        properties.insert("arguments".to_owned(), arguments);
    }
    json!({ "type": "object", "properties": properties, "required": ["approved"] })
}

impl Writer {
    pub(super) fn take_call(&mut self, event: &TurnEvent<'_>, out: &mut Vec<Event>) {
        match *event {
            TurnEvent::CallDrafted { call, tool } => {
                self.close_text(out);
                self.introduce(call, tool, out);
            }
            TurnEvent::CallDraft { call, delta } => self.add_arguments(call, delta, out),
            TurnEvent::CallStarted { call, tool, arguments, by } => {
                self.present(call, tool, arguments, out);
                self.note_edited(call, arguments);
                self.set_question(call, (by == Executor::Client).then_some(Question::Result));
            }
            TurnEvent::ApprovalRequested { call, tool, arguments, digest, editable, .. } => {
                self.present(call, tool, arguments, out);
                if let Some(state) = self.calls.by_reference.get_mut(call) {
                    state.presented = editable.then(|| arguments.to_owned());
                }
                let id = ApprovalId::new(call.into(), digest).to_string();
                self.set_question(call, Some(Question::Approval { id, editable }));
            }
            TurnEvent::CallAnswered { call, .. } => self.set_question(call, None),
            TurnEvent::CallProgress { call, message, fraction } => {
                let mut value = json!({ "toolCallId": call, "message": message });
                if let (Value::Object(value), Some(fraction)) = (&mut value, fraction) {
                    value.insert("fraction".to_owned(), fraction.into());
                }
                out.push(Event::Custom { name: "tool_progress".to_owned(), value });
            }
            TurnEvent::CallSucceeded { call, tool, result } => {
                self.add_result((call, tool), result.to_owned(), None, out);
            }
            TurnEvent::CallFailed { call, tool, error, draft, .. } => {
                if let Some(arguments) = draft {
                    self.present(call, tool, arguments, out);
                }
                let text = self.options.error_texts.of(error);
                let content = json!({ "error": text }).to_string();
                self.add_result((call, tool), content, Some(&error.code), out);
            }
            _ => {}
        }
    }

    fn introduce(&mut self, call: &str, tool: &str, out: &mut Vec<Event>) {
        self.calls.by_reference.insert(call.to_owned(), Call::default());
        self.calls.drafts.insert(call.to_owned());
        out.push(Event::ToolCallStart {
            tool_call_id: call.to_owned(),
            tool_call_name: tool.to_owned(),
            parent_message_id: self.message_id(),
        });
    }

    fn add_arguments(&mut self, call: &str, delta: &str, out: &mut Vec<Event>) {
        if self.calls.drafts.contains(call) {
            let (tool_call_id, delta) = (call.to_owned(), delta.to_owned());
            out.push(Event::ToolCallArgs { tool_call_id, delta });
        }
    }

    /// Shows a call with its arguments, unless it was shown while the model wrote it. Other calls may still be open: the
    /// pieces of their arguments arrive in any order.
    fn present(&mut self, call: &str, tool: &str, arguments: &str, out: &mut Vec<Event>) {
        self.close_text(out);
        if !self.calls.is_introduced(call) {
            self.introduce(call, tool, out);
            self.add_arguments(call, arguments, out);
        }
        self.calls.close_arguments(call, out);
    }

    /// Remembers the arguments of a call that starts, if they are not those that the approver saw.
    fn note_edited(&mut self, call: &str, arguments: &str) {
        if let Some(state) = self.calls.by_reference.get_mut(call) {
            let presented = state.presented.take();
            let is_edited = presented.is_some_and(|presented| presented != arguments);
            state.edited = is_edited.then(|| arguments.to_owned());
        }
    }

    fn set_question(&mut self, call: &str, question: Option<Question>) {
        match question {
            Some(question) => drop(self.calls.questions.insert(call.to_owned(), question)),
            None => drop(self.calls.questions.remove(call)),
        }
    }

    fn add_result(
        &mut self,
        (call, tool): (&str, &str),
        content: String,
        code: Option<&str>,
        out: &mut Vec<Event>,
    ) {
        self.close_text(out);
        if !self.calls.is_introduced(call) {
            self.introduce(call, tool, out);
        }
        self.calls.close_arguments(call, out);
        self.set_question(call, None);
        let Some(state) = self.calls.by_reference.get_mut(call) else { return };
        if std::mem::replace(&mut state.has_result, true) {
            return;
        }
        let mut metadata = serde_json::Map::new();
        metadata.extend(code.map(|code| ("code".to_owned(), code.into())));
        let edited = state.edited.take();
        metadata.extend(edited.map(|edited| ("arguments".to_owned(), value(&edited))));
        out.push(Event::ToolCallResult {
            message_id: result_id(call),
            tool_call_id: call.to_owned(),
            content,
            role: "tool",
            metadata: Some(metadata).filter(|metadata| !metadata.is_empty()).map(Value::Object),
        });
    }
}
