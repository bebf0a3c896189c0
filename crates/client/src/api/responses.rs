//! The responses of the API.

use std::collections::BTreeMap;
use std::sync::Arc;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::ErrorRecord;
use helix_agents_core::event::{RecordedEvent, Suspension};
use helix_agents_core::executor::AgentResult;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::json::Json;
use helix_agents_core::message::Message;
use helix_agents_core::session::{Checkpoint, PendingCallView, RunStatus};
use helix_agents_core::store::SessionStatus;
use helix_agents_core::stream::StoredChunk;
use helix_agents_core::usage::UsageRollup;
use serde::Deserialize;
use serde_json::Value;

use crate::wire;

/// The run that a request has started, or to which it is attached.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Started {
    /// The session.
    #[serde(rename = "sessionId")]
    pub session: SessionId,
    /// The run.
    #[serde(rename = "runId")]
    pub run: RunId,
}

/// A recorded answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Answered {
    /// The root session.
    #[serde(rename = "sessionId")]
    pub session: SessionId,
    /// The call that was answered, as `session#id`.
    pub call: String,
    /// The effect on the session.
    pub resumption: Resumption,
    /// The run that continues the session, if the answer has started one.
    #[serde(rename = "runId")]
    pub run: Option<RunId>,
}

/// The outcome of resuming a session after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Resumption {
    /// The request asked not to resume the session, or the server could not start a run now. A later request or a sweep
    /// does.
    NotRequested,
    /// A run was started.
    Started,
    /// A run is in progress already.
    Running,
    /// The session still waits for other answers or children.
    Waiting,
    /// The session has ended.
    Ended,
    /// The session could not be resumed. The answer is recorded; a later request or a sweep resumes the session.
    Failed,
}

/// The head of a session.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionSummary {
    /// The session.
    #[serde(rename = "sessionId")]
    pub session: SessionId,
    /// The root session of the tree.
    #[serde(rename = "rootSessionId")]
    pub root: SessionId,
    /// The parent, if the session is a child.
    #[serde(rename = "parentSessionId")]
    pub parent: Option<SessionId>,
    /// The name of the agent.
    #[serde(rename = "agentType")]
    pub agent: String,
    /// The status.
    pub status: SessionStatus,
    /// The status in more detail: `running` or `stopped` for an unfinished run, `waiting` or `answered` for a suspended
    /// session, otherwise the status.
    pub state: String,
    /// The run in progress.
    #[serde(rename = "runId")]
    pub run: Option<RunId>,
    /// The version of the log.
    pub version: u64,
    /// The number of calls and children that the session waits for.
    pub pending: u32,
    /// The time of the creation, by the clock of the server's store.
    pub created_at: Timestamp,
    /// The time of the last change, by the clock of the server's store.
    pub updated_at: Timestamp,
    /// The labels that were given when the session was created.
    #[serde(rename = "metadata", default)]
    pub labels: BTreeMap<String, String>,
}

/// A run of a session.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunSummary {
    /// The run.
    #[serde(rename = "runId")]
    pub run: RunId,
    /// The number of the turn.
    pub turn: u32,
    /// The status.
    pub status: RunStatus,
    /// The number of steps that the run closed.
    pub steps: u32,
    /// The sequence number of the stream's last chunk before the run.
    pub stream_from: u64,
    /// The time of the start.
    pub started_at: Option<Timestamp>,
    /// The time of the end.
    pub ended_at: Option<Timestamp>,
    /// The output, if the run completed with one.
    pub output: Option<Json>,
    /// The error, if the run failed.
    pub error: Option<ErrorRecord>,
    /// The reason, if the run was interrupted or aborted.
    pub reason: Option<String>,
    /// The pending calls and children, if the run was suspended.
    pub suspended: Option<Arc<Suspension>>,
}

impl RunSummary {
    /// Returns the result of a run that has ended.
    #[must_use]
    pub fn into_result(self) -> AgentResult {
        let mut result = AgentResult::new(self.status);
        (result.output, result.error) = (self.output, self.error);
        (result.reason, result.suspended) = (self.reason, self.suspended);
        result
    }
}

/// The state of a session without its history.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Status {
    /// The session.
    #[serde(flatten)]
    pub summary: SessionSummary,
    /// The last run.
    #[serde(rename = "run")]
    pub last_run: Option<RunSummary>,
    /// The number of runs.
    pub runs: u32,
    /// The number of steps that are no longer open, including those that a rewind removed.
    pub steps: u32,
    /// Whether a resume would start a run now.
    pub can_resume: bool,
    /// The calls of the session's tree that wait for an answer. Only for a root session.
    pub pending_calls: Vec<PendingCallView>,
    /// The usage of the session and all its descendants.
    pub usage: UsageRollup,
    /// The usage of the session alone.
    pub own_usage: UsageRollup,
    /// The sequence number of the stream's last chunk.
    pub last_seq: u64,
}

/// A part of a list of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Listing {
    /// The root sessions, newest first. It may be empty although there is a `next`.
    pub sessions: Vec<SessionSummary>,
    /// The position at which the next part starts; `None` after the last one.
    pub next: Option<String>,
}

/// A session with its history, and the position at which its stream continues.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionDetails {
    /// The session.
    #[serde(flatten)]
    pub summary: SessionSummary,
    /// The version of the log that the history shows.
    pub shown_version: u64,
    /// The runs, oldest first.
    pub runs: Vec<RunSummary>,
    /// The messages, oldest first, without those that are hidden from users.
    #[serde(deserialize_with = "wire::messages")]
    pub messages: Vec<Message>,
    /// The custom state.
    pub custom_state: Value,
    /// The chunks of effects in progress, whose outcome is not in the messages yet.
    pub live: Vec<StoredChunk>,
    /// The sequence number from which the stream continues without a gap. Only for a root session.
    pub next_seq: Option<u64>,
}

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct LogPage {
    /// The events, oldest first.
    pub events: Vec<RecordedEvent>,
    /// The position after which the next part starts; `None` at the end of the log.
    pub next: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct StoppedBody {
    pub(crate) ended: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct QueuedBody {}

#[derive(Debug, Deserialize)]
pub(crate) struct ForkedBody {
    #[serde(rename = "sessionId")]
    pub(crate) session: SessionId,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CheckpointsBody {
    pub(crate) checkpoints: Vec<Checkpoint>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct AgentsBody {
    pub(crate) agents: Vec<AgentBody>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentBody {
    pub(crate) agent_type: String,
}
