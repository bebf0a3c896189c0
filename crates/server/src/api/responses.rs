//! The bodies of responses.

use std::collections::BTreeMap;
use std::sync::Arc;

use helix_agents_core::error::ErrorRecord;
use helix_agents_core::event::{RecordedEvent, Suspension};
use helix_agents_core::json::Json;
use helix_agents_core::message::{Message, SharedMessage};
use helix_agents_core::session::{Checkpoint, PendingCallView, RunRecord};
use helix_agents_core::store::Head;
use helix_agents_core::stream::StoredChunk;
use helix_agents_core::usage::UsageRollup;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::schema::{AnyObject, StoredChunkSchema};
use crate::metadata;
use crate::redaction::Redaction;

/// The run that a request has started, or to which it is attached.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StartedBody {
    /// The session.
    pub(crate) session_id: String,
    /// The session whose stream contains the chunks of the run.
    pub(crate) stream_id: String,
    /// The run.
    pub(crate) run_id: String,
}

/// The outcome of a request to stop a run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoppedBody {
    /// The session.
    pub(crate) session_id: String,
    /// Whether the run had ended before, so that there was nothing to stop.
    pub(crate) ended: bool,
}

/// A recorded answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AnsweredBody {
    /// The root session.
    pub(crate) session_id: String,
    /// The call that was answered, as `session#id`.
    pub(crate) call: String,
    /// The effect on the session.
    pub(crate) resumption: ResumptionBody,
    /// The run that continues the session, if this request has started one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run_id: Option<String>,
}

/// The outcome of resuming a session after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResumptionBody {
    /// The request asked not to resume the session, or the server is shutting down. A later request or a sweep does.
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

/// A queued message.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueuedBody {
    /// The session.
    pub(crate) session_id: String,
}

/// A fork.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForkedBody {
    /// The new session.
    pub(crate) session_id: String,
}

/// The state of a session without its history.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusBody {
    /// The session.
    #[serde(flatten)]
    pub(crate) summary: SummaryBody,
    /// The last run.
    pub(crate) run: Option<RunBody>,
    /// The number of runs.
    pub(crate) runs: u32,
    /// The number of steps that are no longer open, including those that a rewind removed.
    pub(crate) steps: u32,
    /// Whether `POST /resume` would start a run now.
    pub(crate) can_resume: bool,
    /// The calls of the session's tree that wait for an answer. Only for a root session.
    #[schemars(with = "Vec<AnyObject>")]
    pub(crate) pending_calls: Vec<PendingCallView>,
    /// The usage of the session and all its descendants.
    #[schemars(with = "AnyObject")]
    pub(crate) usage: UsageRollup,
    /// The usage of the session alone.
    #[schemars(with = "AnyObject")]
    pub(crate) own_usage: UsageRollup,
    /// The sequence number of the stream's last chunk.
    pub(crate) last_seq: u64,
}

/// The head of a session.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SummaryBody {
    /// The session.
    pub(crate) session_id: String,
    /// The root session of the tree.
    pub(crate) root_session_id: String,
    /// The parent, if the session is a child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_session_id: Option<String>,
    /// The name of the agent.
    pub(crate) agent_type: String,
    /// The status: `active`, `completed`, `failed`, `interrupted` or `aborted`.
    pub(crate) status: String,
    /// The status in more detail: `running` or `stopped` for an unfinished run, `waiting` or `answered` for a suspended
    /// session, otherwise the status.
    pub(crate) state: String,
    /// The run in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run_id: Option<String>,
    /// The version of the log.
    pub(crate) version: u64,
    /// The number of calls and children that the session waits for.
    pub(crate) pending: u32,
    /// The time of the creation, in milliseconds since 1970.
    pub(crate) created_at: i64,
    /// The time of the last change, in milliseconds since 1970.
    pub(crate) updated_at: i64,
    /// The labels that were given when the session was created.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) metadata: BTreeMap<String, String>,
}

impl SummaryBody {
    pub(crate) fn of(head: &Head) -> Self {
        Self {
            session_id: head.session.to_string(),
            root_session_id: head.created.root.to_string(),
            parent_session_id: head.created.parent.as_ref().map(ToString::to_string),
            agent_type: head.created.agent.to_string(),
            status: head.summary.status.to_string(),
            state: head.state_name().to_owned(),
            run_id: head.summary.run.as_ref().map(ToString::to_string),
            version: head.position.version,
            pending: head.summary.pending,
            created_at: head.created_at.0,
            updated_at: head.updated_at.0,
            metadata: metadata::of_tags(&head.created.tags),
        }
    }
}

/// A run of a session.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunBody {
    /// The run.
    pub(crate) run_id: String,
    /// The number of the turn.
    pub(crate) turn: u32,
    /// The status.
    pub(crate) status: String,
    /// The number of steps that the run closed.
    pub(crate) steps: u32,
    /// The sequence number of the stream's last chunk before the run.
    pub(crate) stream_from: u64,
    /// The time of the start, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) started_at: Option<i64>,
    /// The time of the end, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<i64>,
    /// The output, if the run completed with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    pub(crate) output: Option<Json>,
    /// The error, if the run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "AnyObject")]
    pub(crate) error: Option<ErrorRecord>,
    /// The reason, if the run was interrupted or aborted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The pending calls and children, if the run was suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "AnyObject")]
    pub(crate) suspended: Option<Arc<Suspension>>,
}

impl RunBody {
    pub(crate) fn of(run: &RunRecord, redaction: Redaction) -> Self {
        Self {
            run_id: run.id.to_string(),
            turn: run.turn,
            status: run.status.as_str().to_owned(),
            steps: run.steps,
            stream_from: run.stream_from,
            started_at: run.started.map(|at| at.0),
            ended_at: run.ended.map(|at| at.0),
            output: run.output.clone(),
            error: redaction.run_error(run),
            reason: run.reason.clone(),
            suspended: run.suspended.clone(),
        }
    }
}

/// A part of a list of sessions.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionsBody {
    /// The root sessions, newest first. It may be empty although there is a `next`.
    pub(crate) sessions: Vec<SummaryBody>,
    /// The value of `after` for the next part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// A session with its history, and the position at which its stream continues.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionBody {
    /// The session.
    #[serde(flatten)]
    pub(crate) summary: SummaryBody,
    /// The version of the log that this body shows.
    pub(crate) shown_version: u64,
    /// The runs, oldest first.
    pub(crate) runs: Vec<RunBody>,
    /// The number of older runs that are left out, because the response would be too large.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) omitted_runs: usize,
    /// The messages, oldest first, without those that are hidden from users.
    #[schemars(with = "Vec<AnyObject>")]
    pub(crate) messages: Vec<ShownMessage>,
    /// The number of older messages that are left out, because the response would be too large.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) omitted_messages: usize,
    /// The custom state.
    #[schemars(with = "Value")]
    pub(crate) custom_state: Arc<Value>,
    /// The chunks of effects in progress, whose outcome is not in the messages yet.
    #[schemars(with = "Vec<StoredChunkSchema>")]
    pub(crate) live: Vec<StoredChunk>,
    /// The value of `from` with which `GET /sse` continues without a gap. Only for a root session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_seq: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A message of the transcript.
#[derive(Debug)]
pub(crate) struct ShownMessage(pub(crate) SharedMessage);

impl Serialize for ShownMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Message::serialize(&self.0, serializer)
    }
}

/// A part of a log.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LogBody {
    /// The events, oldest first.
    #[schemars(with = "Vec<AnyObject>")]
    pub(crate) events: Vec<RecordedEvent>,
    /// The value of `after` for the next part. Missing at the end of the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<u64>,
}

/// The checkpoints of a session.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CheckpointsBody {
    /// The checkpoints, oldest first.
    #[schemars(with = "Vec<AnyObject>")]
    pub(crate) checkpoints: Vec<Checkpoint>,
}

/// The agents of the server.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentsBody {
    /// The agents, by name.
    pub(crate) agents: Vec<AgentBody>,
}

/// An agent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentBody {
    /// The name, which is the `agentType` of `POST /start`.
    pub(crate) agent_type: String,
}

/// The health of the server.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HealthBody {
    /// `ok`.
    pub(crate) status: String,
}
