//! Starting, resuming and stopping runs, and messages to them.

use helix_agents_core::clock::{IdSource, IdSourceExt as _};
use helix_agents_core::id::{RequestId, SessionId};
use helix_agents_core::message::UserMessage;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Client;
use crate::api::{QueuedBody, ResumeRequest, StartRequest, Started, StopRequest, StoppedBody};
use crate::error::Result;
use crate::transport::{Repeat, Request};
use crate::wire::message_body;

/// The source of the ids by which the server recognises repetitions.
#[derive(Debug)]
pub(super) struct RandomIds;

impl IdSource for RandomIds {
    fn next(&self) -> u128 {
        Uuid::new_v4().as_u128()
    }
}

impl Client {
    /// Starts a turn, in a new session or in an existing one.
    ///
    /// The request has the id of the run, so it is repeated after a lost response and starts one run. To repeat it in
    /// another process, choose the id with [`StartRequest::run`].
    ///
    /// # Errors
    /// Returns `agent_not_found`, `already_running`, `run_unfinished` and `suspended` for a session with a turn in
    /// progress, `session_not_found` for a session of another owner, and the errors of [requests](Self#errors).
    pub async fn start(&self, request: StartRequest) -> Result<Started> {
        let StartRequest { agent, message, session, run, state, labels, budget, trace } = request;
        let body = without_nulls(json!({
            "sessionId": session,
            "agentType": agent,
            "message": message_body(&message)?,
            "metadata": labels,
            "runId": run.unwrap_or_else(|| RandomIds.run()),
            "budget": budget,
        }));
        let body = with_member(body, "state", state);
        let request = Request::post(&["start"], &body, Repeat::Always)?;
        self.transport.json(&request.trace(trace)).await
    }

    /// Resumes a session that was interrupted or suspended, failed, or stopped without ending.
    ///
    /// A response may be lost after the session was resumed. The request is not repeated then: read the
    /// [status](Self::status) to find out.
    ///
    /// # Errors
    /// Returns `already_running`, `already_resumed`, `nothing_to_resume`, `suspended`, `session_not_found` and
    /// `checkpoint_not_found`, and the errors of [requests](Self#errors).
    pub async fn resume(&self, request: ResumeRequest) -> Result<Started> {
        let ResumeRequest { session, message, after, checkpoint, budget, trace } = request;
        let body = without_nulls(json!({
            "sessionId": session,
            "message": message.as_ref().map(message_body).transpose()?,
            "after": after,
            "checkpoint": checkpoint,
            "budget": budget,
        }));
        let request = Request::post(&["resume"], &body, Repeat::IfUnprocessed)?;
        self.transport.json(&request.trace(trace)).await
    }

    /// Requests that a run stop at its next step boundary. The session can be resumed. Returns `false` if the run had
    /// ended before.
    ///
    /// # Errors
    /// Returns `session_not_found`, and the errors of [requests](Self#errors).
    pub async fn interrupt(&self, request: StopRequest) -> Result<bool> {
        self.stop("interrupt", request).await
    }

    /// Requests that a run stop immediately and end as aborted. Returns `false` if the run had ended before.
    ///
    /// # Errors
    /// Returns `session_not_found`, and the errors of [requests](Self#errors).
    pub async fn abort(&self, request: StopRequest) -> Result<bool> {
        self.stop("abort", request).await
    }

    async fn stop(&self, route: &str, request: StopRequest) -> Result<bool> {
        let StopRequest { session, run, reason } = request;
        // A repetition without a run could stop a run that has started since.
        let repeat = if run.is_some() { Repeat::Always } else { Repeat::IfUnprocessed };
        let body = without_nulls(json!({ "sessionId": session, "runId": run, "reason": reason }));
        let stopped: StoppedBody =
            self.transport.json(&Request::post(&[route], &body, repeat)?).await?;
        Ok(!stopped.ended)
    }

    /// Queues a message for a session. It enters the transcript between two steps, or with the next run.
    ///
    /// # Errors
    /// Returns `session_not_found`, and the errors of [requests](Self#errors).
    pub async fn send_message(
        &self,
        session: &SessionId,
        message: impl Into<UserMessage>,
    ) -> Result<()> {
        self.send_message_once(session, message, RandomIds.request()).await
    }

    /// Does the same as [`send_message`](Self::send_message) with an id that the caller chooses. A message that is sent
    /// again with the same id is queued once.
    ///
    /// # Errors
    /// Returns the errors of [`send_message`](Self::send_message).
    pub async fn send_message_once(
        &self,
        session: &SessionId,
        message: impl Into<UserMessage>,
        request: RequestId,
    ) -> Result<()> {
        let message = message_body(&message.into())?;
        let body = json!({ "sessionId": session, "message": message, "requestId": request });
        let request = Request::post(&["messages"], &body, Repeat::Always)?;
        self.transport.json::<QueuedBody>(&request).await.map(drop)
    }
}

/// Removes the members that have no value.
pub(super) fn without_nulls(mut body: Value) -> Value {
    if let Value::Object(members) = &mut body {
        members.retain(|_, value| !value.is_null());
    }
    body
}

/// Adds a member whose value may be `null`.
fn with_member(mut body: Value, name: &str, value: Option<Value>) -> Value {
    if let (Value::Object(members), Some(value)) = (&mut body, value) {
        members.insert(name.to_owned(), value);
    }
    body
}
