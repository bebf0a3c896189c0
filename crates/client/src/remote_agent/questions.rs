//! Questions of a remote agent to people and clients, as calls of tools of the local agent, and their answers.

use std::time::Duration;

use helix_agents_core::error::Result;
use helix_agents_core::event::PendingKind;
use helix_agents_core::id::RequestId;
use helix_agents_core::json::Json;
use helix_agents_core::message::{Arguments, ToolCall, ToolResultMessage};
use helix_agents_core::session::{CallRef, PendingCallView, Submission};
use helix_agents_core::step::ParsedToolCall;
use helix_agents_core::tool::{EffectClass, Tool, ToolContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The client tool for a call that a client of the remote agent executes.
const CLIENT_CALL: &str = "remote_tool";
/// The tool for a call of the remote agent that needs an approval.
const APPROVAL: &str = "remote_approval";
/// The client tool whose deadline wakes a session that waits for its server.
const WAIT: &str = "remote_wait";

/// The arguments of [`CLIENT_CALL`] and [`APPROVAL`].
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Question {
    /// The tool of the remote agent.
    tool: String,
    /// The arguments of the call.
    arguments: Value,
    /// The call of the remote session.
    call: String,
    /// The digest of the arguments.
    digest: String,
    /// The sequence number of the last chunk of the remote stream that was shown.
    after: u64,
    /// The time that the remote call waits for an answer, in milliseconds.
    #[serde(default)]
    expires_in_ms: Option<u64>,
}

/// The time for which a local call outlasts the deadline of the remote one, so that the server decides whether an
/// answer is in time.
const MARGIN: Duration = Duration::from_secs(1);

/// Returns the deadline of the call that passes on a question.
fn deadline(arguments: &Value) -> Option<Duration> {
    let expires_in = arguments.get("expires_in_ms")?.as_u64()?;
    Some(Duration::from_millis(expires_in).saturating_add(MARGIN))
}

/// The arguments of [`WAIT`].
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
pub(super) struct Wait {
    /// The sequence number of the last chunk of the remote stream that was shown.
    pub(super) after: u64,
    /// Whether the server has the messages and answers before the call.
    pub(super) sent: bool,
    /// Whether the remote session still has to be resumed after an interrupt.
    pub(super) resumes: bool,
}

/// Returns the tools of a remote agent.
pub(super) fn tools(retry_every: Duration) -> [Tool; 3] {
    let approved = |question: Question, _: ToolContext| async move {
        Ok(json!({ "approved": true, "arguments": question.arguments }))
    };
    [
        Tool::client::<Question>(CLIENT_CALL, "A call that a client of the remote agent executes.")
            .deadline_by(deadline),
        Tool::function(APPROVAL, "A call of the remote agent that needs an approval.", approved)
            .requires_approval()
            .editable()
            .deadline_by(deadline)
            .effect(EffectClass::Pure),
        Tool::client::<Wait>(WAIT, "Waits for the server of the remote agent.")
            .deadline(retry_every),
    ]
}

/// Returns the local call that passes on a question from the remote agent. Returns `None` for a call that can only be
/// answered at the server. `after` is the position in the remote stream.
pub(super) fn ask(view: &PendingCallView, after: u64) -> Option<ParsedToolCall> {
    let (call, pending) = (view.reference().to_string(), &view.pending);
    let tool = match pending.kind {
        PendingKind::Client if *pending.tool == *WAIT => return None,
        PendingKind::Client => CLIENT_CALL,
        PendingKind::Approval { .. } => APPROVAL,
        // Kinds that this version does not know.
        _ => return None,
    };
    let expires_in =
        pending.deadline.zip(view.since).map(|(deadline, since)| deadline.since(since));
    let question = json!({
        "tool": pending.tool,
        "arguments": view.arguments.to_value(),
        "call": call,
        "digest": pending.digest,
        "after": after,
        "expires_in_ms": expires_in.and_then(|time| u64::try_from(time.as_millis()).ok()),
    });
    Some(ParsedToolCall::new(call.as_str(), tool, Arguments::from(question)))
}

/// Returns the call that suspends the local session until its deadline.
pub(super) fn wait(reason: &str, wait: Wait) -> ParsedToolCall {
    let Wait { after, sent, resumes } = wait;
    let arguments = json!({ "reason": reason, "after": after, "sent": sent, "resumes": resumes });
    ParsedToolCall::new(WAIT, WAIT, Arguments::from(arguments))
}

/// Parses the arguments of a call of [`wait`].
pub(super) fn waited(call: &ToolCall) -> Option<Wait> {
    let arguments = call.arguments.as_json().filter(|_| *call.name == *WAIT)?;
    arguments.to_typed().ok()
}

/// Returns the position in the remote stream that a question recorded.
pub(super) fn asked_after(call: &ToolCall) -> Option<u64> {
    question_of(call).map(|question| question.after)
}

fn question_of(call: &ToolCall) -> Option<Question> {
    let is_question = *call.name == *APPROVAL || *call.name == *CLIENT_CALL;
    call.arguments.as_json().filter(|_| is_question)?.to_typed().ok()
}

/// Returns the answer that a result of the local session gives to a question of the remote agent. `request` identifies
/// the answer, so that the server records it once.
pub(super) fn answer(
    call: &ToolCall,
    result: &ToolResultMessage,
    request: impl Into<RequestId>,
) -> Result<Option<Submission>> {
    let is_approval = *call.name == *APPROVAL;
    let Some(Question { call, digest, arguments, .. }) = question_of(call) else {
        return Ok(None);
    };
    let call = CallRef::from(call.as_str());
    let submission = match (is_approval, result.failed) {
        (true, false) => match value_of(result).get_mut("arguments").map(Value::take) {
            Some(edited) if edited != arguments => Submission::approve_edited(call, &edited)?,
            _ => Submission::approve(call),
        },
        (true, true) => Submission::deny(call, error_of(result)),
        (false, true) => Submission::error(call, error_of(result)),
        (false, false) => Submission::result(call, &value_of(result))?,
    };
    Ok(Some(submission.digest(digest).request(request)))
}

fn value_of(result: &ToolResultMessage) -> Value {
    Json::parse(&result.content)
        .map_or_else(|_| result.content.clone().into(), |json| json.to_value())
}

fn error_of(result: &ToolResultMessage) -> String {
    let value = value_of(result);
    value.get("error").and_then(Value::as_str).map_or_else(|| result.content.clone(), str::to_owned)
}
