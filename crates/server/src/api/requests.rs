//! The bodies and queries of requests.

use std::collections::BTreeMap;

use helix_agents_core::budget::Budget;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::MessageBody;

/// The body of `POST /start`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StartRequest {
    /// The session: one of the caller, or the id of a new one. Default: a new session with a generated id.
    pub(crate) session_id: Option<String>,
    /// The name of the agent.
    pub(crate) agent_type: String,
    /// The message of the user.
    pub(crate) message: MessageBody,
    /// Members of the custom state to set before the turn starts.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub(crate) state: Option<Value>,
    /// Labels of a new session.
    #[serde(default)]
    pub(crate) metadata: BTreeMap<String, String>,
    /// The id of the run. A repeated request with the same id returns the run of the first one.
    pub(crate) run_id: Option<String>,
    /// Limits on the session's usage: `steps`, `tokens`, `tool_calls`, `wall_time_ms` and `cost`.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub(crate) budget: Option<Budget>,
}

/// The body of `POST /resume`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ResumeRequest {
    /// The root session.
    pub(crate) session_id: String,
    /// A message to continue with.
    pub(crate) message: Option<MessageBody>,
    /// The id of the last run that the caller has seen. If another one has started since, the request fails.
    pub(crate) after: Option<String>,
    /// The version of the checkpoint to rewind to first.
    pub(crate) checkpoint: Option<u64>,
    /// Limits on the session's usage, replacing the previous ones.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub(crate) budget: Option<Budget>,
}

/// The body of `POST /interrupt` and `POST /abort`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StopRequest {
    /// The session.
    pub(crate) session_id: String,
    /// The run to stop. Default: the last one.
    pub(crate) run_id: Option<String>,
    /// The reason, which the log records.
    pub(crate) reason: Option<String>,
}

/// The body of `POST /submit-tool-result`. It has exactly one of `result`, `error` and `approved`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AnswerRequest {
    /// The root session, or the session that made the call.
    pub(crate) session_id: String,
    /// The call: its id, or `session#id`.
    pub(crate) call: String,
    /// The result of a client tool. `null` is a result.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Value")]
    pub(crate) result: Option<Value>,
    /// The failure of a client tool, which the model receives.
    pub(crate) error: Option<String>,
    /// Whether the call is approved.
    pub(crate) approved: Option<bool>,
    /// The reason of a denial, which the model receives.
    pub(crate) reason: Option<String>,
    /// Other arguments for an approved call.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub(crate) edited: Option<Value>,
    /// The digest of the arguments that the answer is for.
    pub(crate) digest: Option<String>,
    /// The id of the answer. A repeated request with the same id succeeds and records nothing.
    pub(crate) request_id: Option<String>,
    /// Whether to resume the session. Default: `true`.
    pub(crate) resume: Option<bool>,
}

/// Keeps an explicit `null` apart from a missing member.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The body of `POST /messages`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MessageRequest {
    /// The session.
    pub(crate) session_id: String,
    /// The message.
    pub(crate) message: MessageBody,
    /// The id of the message. A repeated request with the same id succeeds and queues nothing.
    pub(crate) request_id: Option<String>,
}

/// The body of `POST /fork`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ForkRequest {
    /// The session to fork.
    pub(crate) session_id: String,
    /// The version of the checkpoint. Default: the last one.
    pub(crate) checkpoint: Option<u64>,
    /// The id of the new session. Default: a generated one.
    pub(crate) new_session_id: Option<String>,
}

/// The query of `GET /status`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StatusQuery {
    /// The session.
    pub(crate) session_id: String,
}

/// The query of `GET /sse`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StreamQuery {
    /// The root session.
    pub(crate) session_id: String,
    /// The sequence number of the first chunk. Default: the first one that is kept. The header `Last-Event-ID` takes
    /// precedence.
    pub(crate) from: Option<u64>,
    /// `0` leaves out the chunks of child sessions.
    pub(crate) children: Option<u8>,
}

/// The query of `GET /sessions`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// Sessions of this agent.
    pub(crate) agent: Option<String>,
    /// Sessions with this status: `active`, `completed`, `failed`, `interrupted` or `aborted`.
    pub(crate) status: Option<String>,
    /// `1` selects the sessions that wait for an answer.
    pub(crate) pending: Option<u8>,
    /// Labels that the sessions were created with, as a JSON object of strings, such as `{"project":"x"}`.
    pub(crate) metadata: Option<String>,
    /// The `next` of the previous part.
    pub(crate) after: Option<String>,
    /// The maximum number of sessions, up to 1,000. Default: 100.
    pub(crate) limit: Option<usize>,
}

/// The query of `GET /sessions/{id}/log`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LogQuery {
    /// The `next` of the previous part. Default: 0, the start of the log.
    pub(crate) after: Option<u64>,
    /// The maximum number of appends, up to 1,000. Default: 100. A part also ends when its appends have 1 MiB.
    pub(crate) limit: Option<u32>,
}
