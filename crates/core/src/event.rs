//! What happened: the durable facts and decisions of a session, and their wire format.
//!
//! The enum is the format of the log. Adding a variant or an optional field is fine; anything else
//! takes a new [`SCHEMA`] number and an upcaster.

mod child;
mod recorded;
mod run;
mod suspension;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use child::{ChildNotice, ChildStart, CompanionRef, ParentRef};
pub use recorded::{RecordedEvent, decode, encode};
pub(crate) use recorded::{encode_dated, encode_into};
pub use run::{RunOutcome, Trigger};
pub use suspension::{Answer, PendingCall, PendingKind, SuspendReason, Suspension};

use crate::budget::{Budget, Cost};
use crate::error::ErrorRecord;
use crate::id::{CallId, RequestId, RunId, SessionId};
use crate::json::Json;
use crate::llm::LlmResponse;
use crate::message::{AssistantMessage, UserMessage};
use crate::state::Patch;
use crate::step::{
    AssistantMessagePlan, ParsedSubAgentCall, ParsedToolCall, StepResult, StopReason,
    create_assistant_message,
};
use crate::tool::SUB_AGENT_PREFIX;
use crate::usage::{Usage, UsageRollup};

/// The schema number of the events that this build writes. Schema 0 marks imported logs of other
/// origin, which may hold unpaired calls.
pub const SCHEMA: u16 = 1;

/// Who changed the state, if no hook did: a merge of what calls changed side by side.
pub const BY_MERGE: &str = "merge";

/// One durable fact or decision. Never changed once written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The session came to be. Always the first event, and only that.
    SessionCreated {
        /// The agent's name.
        agent: Arc<str>,
        /// Free labels, for listing.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        tags: BTreeMap<String, String>,
        /// The custom state at the beginning.
        state: Json,
        /// Who made it, if it is a child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<ParentRef>,
    },
    /// A run began (decision). From here on only this run may decide.
    RunStarted {
        /// The new run.
        run: RunId,
        /// The session's last run as the caller saw it; the start is legal only if it still is.
        after: Option<RunId>,
        /// Why it began.
        trigger: Trigger,
        /// The kind of runtime that carries it out; only that kind may take it over.
        runtime: Arc<str>,
        /// The stream's last sequence number when it began.
        stream_from: u64,
        /// Limits on what the session may use from here on; those that it does not name stay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<Arc<Budget>>,
        /// The interrupt that the caller overrides by asking the session to continue. Only an explicit
        /// resume names one; a takeover honours what is pending.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clears: Option<RequestId>,
    },
    /// A run ended (decision).
    RunEnded {
        /// How.
        outcome: RunOutcome,
    },
    /// A person's messages; they begin a turn.
    UserMessages {
        /// In order.
        messages: Vec<UserMessage>,
    },
    /// The model answered (fact; its key is run and step).
    ModelReplied(Arc<ModelReply>),
    /// The model was told that its answer does not complete the turn (fact).
    CorrectionSent {
        /// The step that was answered wrongly.
        step: u32,
        /// What the model is told, as a user's message.
        message: UserMessage,
    },
    /// Calls of an imported log that had no result got one.
    HistoryHealed {
        /// The calls and what they got.
        results: Vec<(CallId, ToolOutcome)>,
    },
    /// A tool is about to run (fact). Written only for tools whose effect class needs it.
    ToolStarted {
        /// The call.
        call: CallId,
        /// From 1, counting takeovers and retries.
        attempt: u32,
        /// How long it may take, for whoever takes over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    /// An engine tries a part of the run again whose last try left no outcome (fact). The run fails once
    /// its agent's [limit](crate::agent::Limits::max_takeovers) of such tries is reached.
    PartRepeated {
        /// The call, if the part is the try of one that has no result yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
    },
    /// A child's session was begun for a call (fact; its key is the call).
    ChildStarted(Arc<ChildStart>),
    /// A child waits, so its call stays open for now (fact).
    ChildWaiting {
        /// The call.
        call: CallId,
    },
    /// A call has its result (fact; its key is the call).
    ToolFinished(Arc<ToolFinish>),
    /// A request to stop at the next step boundary (fact; its key is the request).
    InterruptRequested {
        /// The request.
        request: RequestId,
        /// The session's current run. A run that takes over from it honours the request.
        run: RunId,
        /// For people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A request to stop at once (fact; its key is the request).
    AbortRequested {
        /// The request.
        request: RequestId,
        /// The session's current run. A run that takes over from it honours the request.
        run: RunId,
        /// For people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Somebody answered a call that waits for people (fact; its key is the request).
    Submitted {
        /// The request.
        request: RequestId,
        /// The call.
        call: CallId,
        /// The answer.
        answer: Answer,
        /// Who answered, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A message was put into the session from outside; it enters the transcript between two steps
    /// (fact; its key is the request).
    MessageQueued {
        /// The request.
        request: RequestId,
        /// The message.
        message: UserMessage,
        /// The companion that it tells of, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<ChildNotice>,
    },
    /// Queued messages entered the transcript (decision).
    MessagesTaken {
        /// The requests that brought them, in order.
        requests: Vec<RequestId>,
    },
    /// A hook changed the custom state; or [a merge](BY_MERGE) of changes that were made side by side
    /// did not fit the agent's state type, and this makes it fit (decision).
    StateChanged {
        /// The change.
        patch: Patch,
        /// Which hook, or [`BY_MERGE`].
        by: String,
    },
    /// A tool or hook recorded usage of its own (fact).
    UsageRecorded {
        /// What kind of thing was used.
        source_type: String,
        /// Which one.
        source_name: String,
        /// How much.
        amount: f64,
        /// The call that it is about, if it is about one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// Whether what was paid for came about.
        #[serde(default = "yes", skip_serializing_if = "is_yes")]
        success: bool,
    },
    /// The step is complete: every call of it has exactly one result (decision).
    StepClosed {
        /// The step.
        step: u32,
    },
    /// All before it was written as another session, up to a checkpoint; from here on the log is
    /// this session's own (decision).
    Forked {
        /// The session that it was forked from.
        from: SessionId,
        /// The checkpoint: the version of that session's log.
        at: u64,
        /// The labels of this session.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        tags: BTreeMap<String, String>,
    },
    /// The session went back to a checkpoint (decision). What came after it stays in the log and
    /// counts no more, but for what it used up.
    Rewound {
        /// The checkpoint: a version of this log.
        to: u64,
    },
}

impl From<ModelReply> for Event {
    fn from(reply: ModelReply) -> Self {
        Self::ModelReplied(Arc::new(reply))
    }
}

impl From<ToolFinish> for Event {
    fn from(finish: ToolFinish) -> Self {
        Self::ToolFinished(Arc::new(finish))
    }
}

/// What came of one model call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The step.
    pub step: u32,
    /// The message; none for a native structured output and for an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<AssistantMessage>>,
    /// A native structured output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// The error, if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorRecord>,
    /// Whether the model (or the error) ends the turn.
    pub should_stop: bool,
    /// Why the model stopped, in our words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Why the model stopped, in the provider's words, where ours is `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_stop_reason: Option<String>,
    /// Tokens.
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
    /// What they cost, if the agent had a price for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The model that answered, as the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// Milliseconds from request to end of reply.
    #[serde(default)]
    pub took_ms: u64,
}

/// What came of one tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolFinish {
    /// The call.
    pub call: CallId,
    /// Its one result.
    pub outcome: ToolOutcome,
    /// What a finish tool's result makes of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishOutput>,
    /// What the tool was given, if a hook changed the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// What the tool changed of the custom state.
    #[serde(default, skip_serializing_if = "Patch::is_empty")]
    pub state_patch: Patch,
    /// Milliseconds from start to end.
    #[serde(default)]
    pub took_ms: u64,
    /// How often it was started, over all processes that tried.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
    /// What the child used up, its own children included, if the call was a sub-agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<Arc<UsageRollup>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_yes(flag: &bool) -> bool {
    *flag
}

impl ToolFinish {
    /// A result that no tool ran for.
    #[must_use]
    pub fn without_run(call: CallId, outcome: ToolOutcome) -> Self {
        Self {
            call,
            outcome,
            finish: None,
            input: None,
            state_patch: Patch::default(),
            took_ms: 0,
            attempts: 0,
            child: None,
        }
    }
}

/// The one result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// The tool returned.
    Success(Json),
    /// The tool did not return, or was not run.
    Error(ErrorRecord),
    /// `__finish__` was taken note of.
    Acknowledged,
}

/// What a finish tool's result makes of the turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishOutput {
    /// The output, after the transform, of the agent's output type.
    Output(Json),
    /// The transform failed or the output does not fit: the run fails.
    Invalid(ErrorRecord),
}

impl Event {
    /// Its name in the log.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::SessionCreated { .. } => "session_created",
            Self::RunStarted { .. } => "run_started",
            Self::RunEnded { .. } => "run_ended",
            Self::UserMessages { .. } => "user_messages",
            Self::ModelReplied(_) => "model_replied",
            Self::CorrectionSent { .. } => "correction_sent",
            Self::HistoryHealed { .. } => "history_healed",
            Self::ToolStarted { .. } => "tool_started",
            Self::PartRepeated { .. } => "part_repeated",
            Self::ChildStarted(_) => "child_started",
            Self::ChildWaiting { .. } => "child_waiting",
            Self::ToolFinished(_) => "tool_finished",
            Self::InterruptRequested { .. } => "interrupt_requested",
            Self::AbortRequested { .. } => "abort_requested",
            Self::Submitted { .. } => "submitted",
            Self::MessageQueued { .. } => "message_queued",
            Self::MessagesTaken { .. } => "messages_taken",
            Self::StateChanged { .. } => "state_changed",
            Self::UsageRecorded { .. } => "usage_recorded",
            Self::StepClosed { .. } => "step_closed",
            Self::Forked { .. } => "forked",
            Self::Rewound { .. } => "rewound",
        }
    }

    /// Whether it is a decision: one that is asked anew when something else came first, never
    /// appended again as it was. Everything else is a fact.
    #[must_use]
    pub fn is_decision(&self) -> bool {
        match self {
            Self::RunStarted { .. }
            | Self::StepClosed { .. }
            | Self::RunEnded { .. }
            | Self::CorrectionSent { .. }
            | Self::MessagesTaken { .. }
            | Self::Forked { .. }
            | Self::Rewound { .. } => true,
            Self::StateChanged { by, .. } => by == BY_MERGE,
            _ => false,
        }
    }
}

impl ModelReply {
    /// The reply as the step functions take it.
    #[must_use]
    pub fn to_step_result(&self) -> StepResult {
        if let Some(error) = &self.error {
            return StepResult::Error {
                error: error.clone(),
                should_stop: self.should_stop,
                stop_reason: self.stop_reason,
            };
        }
        let message = self.message.as_deref();
        let thinking = message.and_then(|message| message.thinking.clone());
        let content = message.and_then(|message| message.content.clone());
        if let Some(output) = self.output.clone() {
            return StepResult::StructuredOutput {
                output,
                thinking,
                stop_reason: self.stop_reason,
            };
        }
        let calls = message.map_or(&[][..], |message| &message.tool_calls);
        if calls.is_empty() {
            return StepResult::Text {
                content: content.unwrap_or_default(),
                thinking,
                should_stop: self.should_stop,
                stop_reason: self.stop_reason,
            };
        }
        let (children, tools): (Vec<_>, Vec<_>) =
            calls.iter().partition(|call| call.name.starts_with(SUB_AGENT_PREFIX));
        StepResult::ToolCalls {
            content,
            tool_calls: tools.into_iter().map(ParsedToolCall::from).collect(),
            sub_agent_calls: children
                .into_iter()
                .map(|call| ParsedSubAgentCall {
                    id: call.id.clone(),
                    provider_id: call.provider_id.clone(),
                    agent_type: call
                        .name
                        .strip_prefix(SUB_AGENT_PREFIX)
                        .unwrap_or(&call.name)
                        .to_owned(),
                    input: call.arguments.clone(),
                })
                .collect(),
            thinking,
            stop_reason: self.stop_reason,
        }
    }

    /// The reply of a step, from what the adapter returned. Calls get the session's own ids.
    #[must_use]
    pub fn from_response(step: u32, response: LlmResponse, took_ms: u64) -> Self {
        let stop_reason = response.result.stop_reason();
        let mut reply = Self {
            step,
            message: None,
            output: None,
            error: None,
            should_stop: false,
            stop_reason,
            raw_stop_reason: response
                .raw_stop_reason
                .filter(|_| stop_reason == Some(StopReason::Unknown)),
            usage: response.usage,
            cost: None,
            model: response.model,
            took_ms,
        };
        match response.result {
            StepResult::Text { content, thinking, should_stop, .. } => {
                reply.should_stop = should_stop;
                let content = Some(content).filter(|content| !content.is_empty());
                reply.message =
                    Some(Arc::new(AssistantMessage { content, tool_calls: Vec::new(), thinking }));
            }
            StepResult::ToolCalls { content, tool_calls, sub_agent_calls, thinking, .. } => {
                let mut message = create_assistant_message(AssistantMessagePlan {
                    content,
                    tool_calls,
                    sub_agent_calls,
                    thinking,
                });
                for (index, call) in message.tool_calls.iter_mut().enumerate() {
                    call.provider_id = Some(call.id.as_str().into());
                    call.id = CallId::new(step, index);
                }
                reply.message = Some(Arc::new(message));
            }
            StepResult::StructuredOutput { output, .. } => {
                reply.should_stop = true;
                reply.output = Some(output);
            }
            StepResult::Error { error, should_stop, .. } => {
                reply.should_stop = should_stop;
                reply.error = Some(error);
            }
        }
        reply
    }
}

#[cfg(test)]
mod tests;
