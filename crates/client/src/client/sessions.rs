//! Reading, listing, forking and deleting sessions.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::id::SessionId;
use helix_agents_core::session::Checkpoint;
use reqwest::Method;
use serde_json::json;

use super::Client;
use super::runs::without_nulls;
use crate::api::{CheckpointsBody, ForkedBody, Listing, SessionDetails, SessionQuery, Status};
use crate::error::Result;
use crate::transport::{Repeat, Request};

impl Client {
    /// Returns the state of a session: its last run, pending calls and usage.
    ///
    /// # Errors
    /// Returns `session_not_found`, and the errors of [requests](Self#errors).
    pub async fn status(&self, session: &SessionId) -> Result<Status> {
        let request = Request::get(&["status"]).query("sessionId", Some(session));
        self.transport.json(&request).await
    }

    /// Returns a part of the list of the caller's root sessions, newest first. [`Listing::next`] is the position of the
    /// next part.
    ///
    /// # Errors
    /// Returns the errors of [requests](Self#errors).
    pub async fn sessions(&self, query: &SessionQuery) -> Result<Listing> {
        let labels = (!query.labels.is_empty()).then(|| json!(query.labels).to_string());
        let request = Request::get(&["sessions"])
            .query("agent", query.agent.as_deref())
            .query("status", query.status)
            .query("pending", query.pending.then_some(1))
            .query("metadata", labels)
            .query("after", query.after.as_deref())
            .query("limit", query.limit);
        self.transport.json(&request).await
    }

    /// Returns a session with its messages, and the position at which its stream continues.
    ///
    /// # Errors
    /// Returns `session_not_found`, and the errors of [requests](Self#errors).
    pub async fn session(&self, session: &SessionId) -> Result<SessionDetails> {
        self.transport.json(&Request::get(&["sessions", session.as_str()])).await
    }

    /// Returns the checkpoints of a session, to which it can be forked or rewound.
    ///
    /// # Errors
    /// Returns `session_not_found`, and the errors of [requests](Self#errors).
    pub async fn checkpoints(&self, session: &SessionId) -> Result<Vec<Checkpoint>> {
        let request = Request::get(&["sessions", session.as_str(), "checkpoints"]);
        Ok(self.transport.json::<CheckpointsBody>(&request).await?.checkpoints)
    }

    /// Creates a session with the conversation of another one up to a checkpoint: by default, the last one. The id of
    /// the new session is generated unless it is given.
    ///
    /// A response may be lost after the session was created. The request is not repeated then; with a chosen id, a
    /// repetition fails with `session_exists`.
    ///
    /// # Errors
    /// Returns `session_not_found`, `checkpoint_not_found`, `session_exists` and `session_limit`, and the errors of
    /// [requests](Self#errors).
    pub async fn fork(
        &self,
        session: &SessionId,
        checkpoint: Option<u64>,
        new_session: Option<&SessionId>,
    ) -> Result<SessionId> {
        let body = without_nulls(json!({
            "sessionId": session,
            "checkpoint": checkpoint,
            "newSessionId": new_session,
        }));
        let request = Request::post(&["fork"], &body, Repeat::IfUnprocessed)?;
        Ok(self.transport.json::<ForkedBody>(&request).await?.session)
    }

    /// Deletes a root session with all its descendants and its stream.
    ///
    /// # Errors
    /// Returns `session_not_found` and `not_root`, and the errors of [requests](Self#errors).
    pub async fn delete(&self, session: &SessionId) -> Result<()> {
        let request = Request::new(Method::DELETE, &["sessions", session.as_str()], Repeat::Always);
        match self.transport.send_noting_repetition(&request).await {
            (Ok(_), _) => Ok(()),
            // The attempt whose response was lost has deleted it.
            (Err(error), true) if error.is(ErrorCode::SessionNotFound) => Ok(()),
            (Err(error), _) => Err(error),
        }
    }
}
