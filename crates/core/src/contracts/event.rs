//! Events: the durable facts and decisions of a session, and their wire format.
//!
//! The [`Event`] enum is the format of the log. New variants and optional fields can be added. Any
//! other change requires a new [`SCHEMA`] number and an upcaster.

pub(crate) mod child;
mod details;
mod recorded;
mod run;
mod suspension;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

pub use child::{ChildNotice, ChildStart, CompanionRef, ParentRef};
pub use recorded::{RecordedEvent, decode, encode};
pub(crate) use recorded::{encode_dated, encode_into};
pub use run::{RunOutcome, Trigger};
pub use suspension::{Answer, PendingCall, PendingKind, SuspendReason, Suspension};

use crate::budget::{Budget, Cost};
use crate::clock::Timestamp;
use crate::error::ErrorRecord;
use crate::id::{CallId, RequestId, RunId, SessionId};
use crate::json::Json;
use crate::llm::reply::{ParsedSubAgentCall, ParsedToolCall, StepResult, StopReason};
use crate::llm::{FailedAttempt, LlmResponse};
use crate::message::construct::{AssistantMessageParts, create_assistant_message};
use crate::message::{AssistantMessage, Media, UserMessage};
use crate::state::Patch;
use crate::tool::SUB_AGENT_PREFIX;
use crate::trace::TraceParent;
use crate::usage::{Usage, UsageRollup};

/// The schema number of the events that this build writes. Schema 0 marks logs that were imported
/// from other systems, which may hold calls without results.
pub const SCHEMA: u16 = 1;

/// The value of [`StateChanged::by`](Event::StateChanged::by) for a merge of concurrent changes.
pub const MERGED_BY: &str = "merge";

/// The value of [`StateChanged::by`](Event::StateChanged::by) for the state that is given with the
/// input of a turn.
pub const INPUT_BY: &str = "input";

/// A durable fact or decision. It is never changed once written. A fact with a key is recorded at
/// most once for each value of the key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The session was created. Always the first event, and never a later one.
    SessionCreated {
        /// The agent's name.
        agent: Arc<str>,
        /// Labels for listing.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        tags: BTreeMap<String, String>,
        /// The initial custom state.
        state: Json,
        /// The parent, if the session is a child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<ParentRef>,
    },
    /// A run started (decision). From here on only this run may append decisions.
    RunStarted {
        /// The new run.
        run: RunId,
        /// The session's last run as seen by the caller. The start is only legal if that run is
        /// still the last one.
        after: Option<RunId>,
        /// The reason for the start.
        trigger: Trigger,
        /// The kind of runtime that executes the run. Only the same kind may take the run over.
        runtime: Arc<str>,
        /// The stream's last sequence number when the run started.
        stream_from: u64,
        /// Limits on the session's usage from here on. Limits that are not set stay as they were.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<Arc<Budget>>,
        /// The interrupt request that the caller overrides by resuming the session. Only an
        /// explicit resume sets it; a takeover honours pending requests.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clears: Option<RequestId>,
        /// The caller's trace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<TraceParent>,
    },
    /// A run ended (decision).
    RunEnded {
        /// The outcome of the run.
        outcome: RunOutcome,
    },
    /// User messages, which start a turn.
    UserMessages {
        /// The messages in order.
        messages: Vec<UserMessage>,
    },
    /// The model replied (fact; its key is run and step).
    ModelReplied(Arc<ModelReply>),
    /// The model was told that its reply does not complete the turn (fact).
    CorrectionSent {
        /// The step whose reply did not complete the turn.
        step: u32,
        /// The correction that the model reads, as a user message.
        message: UserMessage,
    },
    /// Calls without a result in an imported log were given one.
    HistoryHealed {
        /// The calls and their results.
        results: Vec<(CallId, ToolOutcome)>,
    },
    /// A tool is about to run (fact). Written only for tools whose effect class requires it.
    ToolStarted {
        /// The id of the call.
        call: CallId,
        /// The attempt number, from 1, across takeovers and retries.
        attempt: u32,
        /// The timeout of the attempt, for a process that takes over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    /// The runtime retries a work item whose last attempt left no outcome (fact). The run fails
    /// once the number of such attempts reaches the agent's
    /// [limit](crate::agent::Limits::max_takeovers).
    WorkItemRepeated {
        /// The call, if the work item is an attempt at a call that has no result yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
    },
    /// A child session was started for a call (fact; its key is the call).
    ChildStarted(Arc<ChildStart>),
    /// A child session is suspended, so its call stays open for now (fact).
    ChildWaiting {
        /// The call that the child session was started for.
        call: CallId,
    },
    /// A call has its result (fact; its key is the call).
    ToolFinished(Arc<ToolFinish>),
    /// A request to stop at the next step boundary (fact; its key is the request).
    InterruptRequested {
        /// The id of the request.
        request: RequestId,
        /// The session's current run. A run that takes over from it honours the request.
        run: RunId,
        /// The reason, for humans.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A request to stop at once (fact; its key is the request).
    AbortRequested {
        /// The id of the request.
        request: RequestId,
        /// The session's current run. A run that takes over from it honours the request.
        run: RunId,
        /// The reason, for humans.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A pending call was answered (fact; its key is the request).
    Submitted {
        /// The id of the request.
        request: RequestId,
        /// The id of the pending call.
        call: CallId,
        /// The answer.
        answer: Answer,
        /// The name of the user who answered, for humans.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The trace of the caller that submitted the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<TraceParent>,
    },
    /// A message was sent to the session. It enters the transcript between two steps (fact; its key
    /// is the request).
    MessageQueued {
        /// The id of the request.
        request: RequestId,
        /// The message.
        message: UserMessage,
        /// The companion whose completion the message reports, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<ChildNotice>,
        /// The trace of the caller that sent the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<TraceParent>,
    },
    /// Queued messages entered the transcript (decision).
    MessagesTaken {
        /// The requests that queued the messages, in order.
        requests: Vec<RequestId>,
    },
    /// The custom state changed outside of a tool: by a hook, by the input of a turn, or by a
    /// repair after concurrent changes whose merge did not fit the agent's state type (decision).
    StateChanged {
        /// The change of the state.
        patch: Patch,
        /// The name of the hook, [`INPUT_BY`], or [`MERGED_BY`].
        by: String,
    },
    /// A tool or hook recorded usage of its own (fact).
    UsageRecorded {
        /// The type of the usage source.
        source_type: String,
        /// The name of the usage source.
        source_name: String,
        /// The amount used.
        amount: f64,
        /// The call that caused the usage, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// Whether the operation that caused the usage succeeded.
        #[serde(default = "yes", skip_serializing_if = "is_yes")]
        success: bool,
    },
    /// The step is complete: each of its calls has exactly one result (decision).
    StepClosed {
        /// The step number.
        step: u32,
    },
    /// The session was forked: all earlier events were written by another session, up to a
    /// checkpoint. All later events are this session's own (decision).
    Forked {
        /// The original session.
        from: SessionId,
        /// The checkpoint: a version of the original session's log.
        at: u64,
        /// The labels of this session.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        tags: BTreeMap<String, String>,
    },
    /// The session was rewound to a checkpoint (decision). Events after the checkpoint stay in the
    /// log but only count for usage.
    Rewound {
        /// The checkpoint: a version of this log, or 0 for the start of the session.
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

/// The record of one model call in the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The step number.
    pub step: u32,
    /// The assistant message. `None` for a native structured output and for an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<AssistantMessage>>,
    /// The native structured output, if any.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// The error, if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorRecord>,
    /// Whether the model (or the error) ends the turn.
    pub should_stop: bool,
    /// The normalised stop reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// The provider's stop reason, if the normalised one is `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_stop_reason: Option<String>,
    /// The token usage of the attempt that produced the reply.
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
    /// The attempts that failed before, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_attempts: Vec<FailedAttempt>,
    /// The cost, if the agent has a price for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The model that replied, as named by the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The model that was requested, if its name differs from [`model`](Self::model).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<Arc<str>>,
    /// The provider, as OpenTelemetry names it: `openai`, `anthropic`, `aws.bedrock`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Arc<str>>,
    /// The provider's id of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The time from the request to the end of the reply, in milliseconds.
    #[serde(default)]
    pub took_ms: u64,
    /// The time from the request to the first output, in milliseconds. `None` if the adapter streamed no output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_ms: Option<u64>,
    /// The time when the reply ended, by the store's clock. `None` if it was recorded immediately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
}

/// The result of one tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolFinish {
    /// The id of the call.
    pub call: CallId,
    /// The outcome of the call.
    pub outcome: ToolOutcome,
    /// The effect of a finish tool's result on the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishOutput>,
    /// The arguments that the tool ran with, if a hook changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// The images and files that the tool returned in addition to its result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Media>,
    /// The tool's change of the custom state.
    #[serde(default, skip_serializing_if = "Patch::is_empty")]
    pub state_patch: Patch,
    /// The time from start to end, in milliseconds.
    #[serde(default)]
    pub took_ms: u64,
    /// The time when the call ended, by the store's clock. `None` if its result was recorded immediately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// The number of attempts, across all processes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
    /// The usage of the child session and of the sessions below it, if the call started a
    /// sub-agent.
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
    /// Creates the result of a call for which no tool ran.
    #[must_use]
    pub fn without_run(call: CallId, outcome: ToolOutcome) -> Self {
        Self {
            call,
            outcome,
            finish: None,
            input: None,
            attachments: Vec::new(),
            state_patch: Patch::default(),
            took_ms: 0,
            ended: None,
            attempts: 0,
            child: None,
        }
    }
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// The tool returned this result.
    Success(Json),
    /// The tool failed, or did not run.
    Error(ErrorRecord),
    /// `__finish__` was acknowledged.
    Acknowledged,
}

/// The effect of a finish tool's result on the turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishOutput {
    /// The output, after the transform. It fits the agent's output type.
    Output(Json),
    /// The transform failed or the output does not fit: the run fails.
    Invalid(ErrorRecord),
}

impl Event {
    /// Returns the event's name in the log.
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
            Self::WorkItemRepeated { .. } => "work_item_repeated",
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
}

impl ModelReply {
    /// Returns the token usage of all attempts, including those that failed.
    #[must_use]
    pub fn total_usage(&self) -> Usage {
        let mut total = self.usage;
        self.failed_attempts.iter().for_each(|attempt| total += attempt.usage);
        total
    }

    /// Converts the reply into the input of the step functions.
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

    /// Builds the reply of a step from the adapter's response. Calls get ids of this session.
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
            failed_attempts: response.failed_attempts,
            cost: None,
            requested: response.requested.filter(|name| Some(name) != response.model.as_ref()),
            model: response.model,
            provider: response.provider,
            response_id: response.response_id,
            took_ms,
            first_ms: None,
            ended: None,
        };
        match response.result {
            StepResult::Text { content, thinking, should_stop, .. } => {
                // The model continues a paused reply, whatever its adapter says about the turn.
                reply.should_stop = should_stop && stop_reason != Some(StopReason::Pause);
                let content = Some(content).filter(|content| !content.is_empty());
                let tool_calls = Vec::new();
                let layout = response.layout.map(Arc::new);
                reply.message =
                    Some(Arc::new(AssistantMessage { content, tool_calls, thinking, layout }));
            }
            StepResult::ToolCalls { content, tool_calls, sub_agent_calls, thinking, .. } => {
                let mut message = create_assistant_message(AssistantMessageParts {
                    content,
                    tool_calls,
                    sub_agent_calls,
                    thinking,
                });
                for (index, call) in message.tool_calls.iter_mut().enumerate() {
                    call.provider_id = Some(call.id.as_str().into());
                    call.id = CallId::new(step, index);
                }
                message.layout = response.layout.map(Arc::new);
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

/// Reads a value that is present. `null` is a value, too.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
