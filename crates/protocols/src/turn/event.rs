//! The events of a turn.

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::ErrorRecord;
use helix_agents_core::id::RunId;
use helix_agents_core::state::Patch;
use helix_agents_core::usage::Usage;

use super::SubAgent;

/// One event of a turn of the root session.
///
/// A call is named by the text of its [`CallRef`](helix_agents_core::session::CallRef): `1.0` for a call of the root
/// session, `session#1.0` for a call of a sub-agent that a human or a client has to answer.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum TurnEvent<'a> {
    /// A run works on the turn from here on: the first one, or one that resumed the turn or took it over.
    RunChanged {
        /// The id of the run.
        run: &'a RunId,
    },
    /// A step of the root session starts. A suspended step does not start again when it continues.
    StepStarted {
        /// The number of the step.
        step: u32,
    },
    /// The next piece of the model's text.
    Text {
        /// The piece, which is not empty.
        delta: &'a str,
    },
    /// The next piece of the model's reasoning.
    Reasoning {
        /// The piece, which is not empty.
        delta: &'a str,
    },
    /// The model starts to write a call. Calls of sub-agents have no draft, because their ids depend on the calls that
    /// follow.
    CallDrafted {
        /// The reference of the call.
        call: &'a str,
        /// The name of the tool.
        tool: &'a str,
    },
    /// The next piece of the arguments of a call that the model writes.
    CallDraft {
        /// The reference of the call.
        call: &'a str,
        /// The piece of JSON text.
        delta: &'a str,
    },
    /// A call starts, or starts again after an attempt that left no outcome.
    CallStarted {
        /// The reference of the call.
        call: &'a str,
        /// The name of the tool.
        tool: &'a str,
        /// The arguments as JSON text.
        arguments: &'a str,
        /// The party that executes the call.
        by: Executor,
    },
    /// A call waits for an approval.
    ApprovalRequested {
        /// The reference of the call.
        call: &'a str,
        /// The name of the tool.
        tool: &'a str,
        /// The arguments as JSON text.
        arguments: &'a str,
        /// The digest of the arguments.
        digest: &'a str,
        /// Whether the approver may change the arguments.
        editable: bool,
        /// The deadline of the approval.
        deadline: Option<Timestamp>,
    },
    /// A pending call has an answer, which no run has handled yet.
    CallAnswered {
        /// The reference of the call.
        call: &'a str,
        /// Whether the call was approved; `None` for the result of a client.
        approved: Option<bool>,
    },
    /// A running call reports its progress.
    CallProgress {
        /// The reference of the call.
        call: &'a str,
        /// The message for the user.
        message: &'a str,
        /// The completed fraction between 0 and 1, if known.
        fraction: Option<f64>,
    },
    /// A call has a result.
    CallSucceeded {
        /// The reference of the call.
        call: &'a str,
        /// The name of the tool.
        tool: &'a str,
        /// The result as JSON text.
        result: &'a str,
    },
    /// A call has an error instead of a result.
    CallFailed {
        /// The reference of the call.
        call: &'a str,
        /// The name of the tool.
        tool: &'a str,
        /// The error.
        error: &'a ErrorRecord,
        /// Whether the call was shown as started or pending before.
        started: bool,
        /// The arguments of a call that never started, as the model wrote them.
        draft: Option<&'a str>,
    },
    /// A sub-agent started or changed.
    SubAgentChanged {
        /// The sub-agent after the change.
        sub_agent: &'a SubAgent,
    },
    /// A custom event of a tool, hook or model adapter.
    Custom {
        /// The name of the event.
        name: &'a str,
        /// The data as JSON text.
        data: &'a str,
        /// The id of the event. A second attempt at the same effect repeats the ids.
        id: &'a str,
    },
    /// The custom state of the root session changed.
    StateChanged {
        /// The change.
        patch: &'a Patch,
    },
    /// The model call of the current step is repeated, or is given up. Everything after
    /// [`StepStarted`](Self::StepStarted) has to be taken back.
    StepReset {
        /// The number of the step.
        step: u32,
    },
    /// The shown result of a call is taken back, because its attempt was discarded.
    CallReset {
        /// The reference of the call.
        call: &'a str,
    },
    /// A step of the root session is closed.
    StepFinished {
        /// The number of the step.
        step: u32,
    },
    /// The output of the turn.
    Output {
        /// The output as JSON text.
        output: &'a str,
        /// Whether the output is the text of the last step, which was shown already.
        is_text: bool,
    },
    /// The token usage of the turn, which has ended.
    Usage {
        /// The tokens of the turn's model calls and sub-agents.
        usage: Usage,
    },
    /// The run ended, and with it the response.
    RunEnded(RunEnd<'a>),
    /// Chunks are missing. The response cannot be continued without reading the log again.
    Resync,
}

/// The party that executes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// The server, which runs the tool or the sub-agent.
    Server,
    /// The client: the call waits for a result from it.
    Client,
}

/// The way in which a run ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RunEnd<'a> {
    /// The turn is complete.
    Completed,
    /// The run failed.
    Failed {
        /// The error of the run.
        error: Option<&'a ErrorRecord>,
    },
    /// The run was stopped at a step boundary.
    Interrupted {
        /// The reason that was given with the request.
        reason: Option<&'a str>,
    },
    /// The run was stopped at once.
    Aborted,
    /// The run waits for answers or for sub-agents.
    Suspended,
}
