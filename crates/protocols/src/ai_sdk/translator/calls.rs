//! The calls of a message.
//!
//! `providerExecuted` tells the page who executes a call. It is `true` for calls that the server runs: the page would
//! otherwise wait for their results, or send them back. It is absent for calls of the client, and `false` for a call
//! that waits for an approval, until the server runs it.

use std::collections::BTreeMap;

use helix_agents_core::error::{ErrorCode, ErrorRecord};
use helix_agents_core::message::Arguments;
use serde_json::{Value, json};

use super::{Writer, value};
use crate::ai_sdk::{Major, UiChunk};
use crate::approval::ApprovalId;
use crate::turn::{Executor, TurnEvent};

/// The calls that were introduced to the page, by their references.
#[derive(Debug, Default)]
pub(super) struct Calls {
    by_reference: BTreeMap<String, Call>,
}

/// A call as the page knows it.
#[derive(Debug, Clone)]
pub(super) struct Call {
    id: String,
    tool: String,
    /// The number of the step of the message that contains the call.
    step: u32,
    state: State,
    has_output: bool,
}

/// The state of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// The model writes it, or has written it and it does not run yet.
    Draft { arguments: String },
    /// The server runs it.
    Server,
    /// The client runs it.
    Client,
    /// It waits for an approval, or was denied.
    Approval { id: String, is_answered: bool },
}

impl Calls {
    fn set(&mut self, id: &str, tool: &str, step: u32, state: State) {
        let (id, tool, has_output) = (id.to_owned(), tool.to_owned(), false);
        self.by_reference.insert(id.clone(), Call { id, tool, step, state, has_output });
    }

    fn add_draft(&mut self, id: &str, delta: &str) {
        if let Some(Call { state: State::Draft { arguments }, .. }) = self.by_reference.get_mut(id)
        {
            arguments.push_str(delta);
        }
    }

    /// Forgets the calls of a step that the page has removed.
    pub(super) fn forget_step(&mut self, step: u32) {
        self.by_reference.retain(|_, call| call.step != step);
    }

    /// Returns the calls of a step that the model has not completed.
    pub(super) fn drafts_of(&self, step: u32) -> Vec<Call> {
        let drafts = self.by_reference.values();
        drafts
            .filter(|call| call.step == step && matches!(call.state, State::Draft { .. }))
            .cloned()
            .collect()
    }

    /// Returns `true` if the page would send answers again after the end of a response that ends with this step: it has
    /// calls of the client or of an approver, and none of them is open. `of_page` are the questions that the page had in
    /// this step, each with whether the page has answered it. Some may be of sub-agents or of a companion that has ended.
    pub(super) fn would_resend_answers<'q>(
        &self,
        step: u32,
        is_suspended: bool,
        of_page: impl Iterator<Item = (&'q str, bool)>,
    ) -> bool {
        let own = self.by_reference.values().filter(|call| {
            call.step == step && matches!(call.state, State::Client | State::Approval { .. })
        });
        let of_page = of_page.map(|(id, is_answered)| {
            self.by_reference.get(id).map_or(is_answered, Call::is_answered)
        });
        // A turn that has ended leaves no question of its own open.
        let own = own.map(|call| !is_suspended || call.is_answered());
        let answered: Vec<_> = own.chain(of_page).collect();
        let is_blocked = is_suspended && answered.contains(&false);
        answered.contains(&true) && !is_blocked
    }
}

impl Call {
    /// Returns the chunk that ends a call of a discarded reply.
    pub(super) fn discarded(self) -> UiChunk {
        UiChunk::ToolInputError {
            tool_call_id: self.id,
            tool_name: self.tool,
            input: json!({}),
            error_text: "the reply was discarded".to_owned(),
            provider_executed: Some(true),
        }
    }

    /// Returns the chunk that ends the arguments of a call that runs later.
    pub(super) fn written(self) -> UiChunk {
        let State::Draft { arguments } = &self.state else { return self.discarded() };
        UiChunk::ToolInputAvailable {
            input: parsed(arguments),
            tool_call_id: self.id,
            tool_name: self.tool,
            provider_executed: Some(true),
        }
    }

    /// Returns `true` if nothing is left to answer.
    fn is_answered(&self) -> bool {
        self.has_output
            || matches!(self.state, State::Server | State::Approval { is_answered: true, .. })
    }

    /// Returns whether the server executes a call that has ended; `None` for a call of the client.
    fn provider_executed(&self) -> Option<bool> {
        (self.state != State::Client).then_some(true)
    }
}

impl Writer {
    pub(super) fn take_call(&mut self, event: &TurnEvent<'_>, out: &mut Vec<UiChunk>) {
        match *event {
            TurnEvent::CallDrafted { call, tool } => {
                self.close_text(out);
                let state = State::Draft { arguments: String::new() };
                self.calls.set(call, tool, self.step, state);
                let (tool_call_id, tool_name) = (call.to_owned(), tool.to_owned());
                self.put(UiChunk::ToolInputStart { tool_call_id, tool_name }, out);
            }
            TurnEvent::CallDraft { call, delta } => {
                self.calls.add_draft(call, delta);
                let (tool_call_id, input_text_delta) = (call.to_owned(), delta.to_owned());
                self.put(UiChunk::ToolInputDelta { tool_call_id, input_text_delta }, out);
            }
            TurnEvent::CallStarted { call, tool, arguments, by } => {
                self.start_call((call, tool), value(arguments), by, out);
            }
            TurnEvent::ApprovalRequested { call, tool, arguments, digest, .. } => {
                let approval_id = ApprovalId::new(call.into(), digest).to_string();
                let state = State::Approval { id: approval_id.clone(), is_answered: false };
                self.introduce((call, tool), value(arguments), state, Some(false), out);
                let tool_call_id = call.to_owned();
                self.put(UiChunk::ToolApprovalRequest { approval_id, tool_call_id }, out);
            }
            TurnEvent::CallAnswered { call, approved: Some(approved) } => {
                self.respond(call, approved, out);
            }
            TurnEvent::CallAnswered { call, approved: None } => {
                if let Some(known) = self.calls.by_reference.get_mut(call) {
                    known.has_output = true;
                }
            }
            TurnEvent::CallProgress { call, message, fraction } => {
                let mut data = json!({ "toolCallId": call, "message": message });
                if let (Value::Object(data), Some(fraction)) = (&mut data, fraction) {
                    data.insert("fraction".to_owned(), fraction.into());
                }
                self.put(UiChunk::transient("tool-progress", data), out);
            }
            TurnEvent::CallSucceeded { call, tool, result } => {
                self.succeed((call, tool), value(result), out);
            }
            TurnEvent::CallFailed { call, tool, error, started, draft } => {
                self.fail_call((call, tool), error, started, draft, out);
            }
            _ => {}
        }
    }

    fn start_call(
        &mut self,
        (call, tool): (&str, &str),
        input: Value,
        by: Executor,
        out: &mut Vec<UiChunk>,
    ) {
        self.respond(call, true, out);
        let (state, provider_executed) = match by {
            Executor::Server => (State::Server, Some(true)),
            Executor::Client => (State::Client, None),
        };
        self.introduce((call, tool), input, state, provider_executed, out);
    }

    /// Introduces a call with its arguments, or sets a known call back to them.
    fn introduce(
        &mut self,
        (call, tool): (&str, &str),
        input: Value,
        state: State,
        provider_executed: Option<bool>,
        out: &mut Vec<UiChunk>,
    ) {
        self.close_text(out);
        let step = self.calls.by_reference.get(call).map_or(self.step, |known| known.step);
        self.calls.set(call, tool, step, state);
        // In a later step, the chunk would add a second part for the call.
        if step == self.step {
            let (tool_call_id, tool_name) = (call.to_owned(), tool.to_owned());
            let chunk =
                UiChunk::ToolInputAvailable { tool_call_id, tool_name, input, provider_executed };
            self.put(chunk, out);
        }
    }

    /// Shows the answer to the approval request of a call, unless it has none or the answer was shown.
    fn respond(&mut self, call: &str, approved: bool, out: &mut Vec<UiChunk>) {
        let known = self.calls.by_reference.get_mut(call);
        let Some(Call { state: State::Approval { id, is_answered: is_answered @ false }, .. }) =
            known
        else {
            return;
        };
        *is_answered = true;
        let (approval_id, reason) = (id.clone(), None);
        if self.options.major == Major::Seven {
            self.put(UiChunk::ToolApprovalResponse { approval_id, approved, reason }, out);
        }
    }

    fn succeed(&mut self, (call, tool): (&str, &str), output: Value, out: &mut Vec<UiChunk>) {
        let known = self.calls.by_reference.get(call);
        if known.is_none_or(|known| matches!(known.state, State::Draft { .. })) {
            // The start of the call was not shown.
            self.start_call((call, tool), json!({}), Executor::Server, out);
        }
        let Some(known) = self.calls.by_reference.get_mut(call) else { return };
        known.has_output = true;
        let provider_executed = known.provider_executed();
        if matches!(known.state, State::Approval { .. }) {
            known.state = State::Server;
        }
        let (tool_call_id, preliminary) = (call.to_owned(), None);
        self.put(
            UiChunk::ToolOutputAvailable { tool_call_id, output, provider_executed, preliminary },
            out,
        );
    }

    fn fail_call(
        &mut self,
        (call, tool): (&str, &str),
        error: &ErrorRecord,
        started: bool,
        draft: Option<&str>,
        out: &mut Vec<UiChunk>,
    ) {
        self.close_text(out);
        let error_text = self.options.error_texts.of(error);
        let (tool_call_id, tool_name) = (call.to_owned(), tool.to_owned());
        let known = self.calls.by_reference.get_mut(call).filter(|_| started);
        let Some(known) = known else {
            self.calls.set(call, tool, self.step, State::Server);
            let input = draft.map_or_else(|| json!({}), parsed);
            let provider_executed = Some(true);
            // The page has the call with its arguments from an earlier response, perhaps in an earlier step.
            if self.seen.as_ref().is_some_and(|seen| seen.has_call(call)) {
                let chunk =
                    UiChunk::ToolOutputError { tool_call_id, error_text, provider_executed };
                return self.put(chunk, out);
            }
            return self.put(
                UiChunk::ToolInputError {
                    tool_call_id,
                    tool_name,
                    input,
                    error_text,
                    provider_executed,
                },
                out,
            );
        };
        known.has_output = true;
        match known.state.clone() {
            State::Approval { .. } if error.is(ErrorCode::ToolDenied) => {
                self.respond(call, false, out);
                self.put(UiChunk::ToolOutputDenied { tool_call_id }, out);
            }
            state => {
                let provider_executed = known.provider_executed();
                if state != State::Client {
                    known.state = State::Server;
                }
                self.put(
                    UiChunk::ToolOutputError { tool_call_id, error_text, provider_executed },
                    out,
                );
            }
        }
    }
}

/// Returns the arguments that a model wrote, or their text if they are not JSON.
fn parsed(arguments: &str) -> Value {
    match Arguments::parse(arguments) {
        Arguments::Json(json) => json.to_value(),
        Arguments::Malformed(text) => text.into(),
    }
}
