//! Answers to pending calls.

use helix_agents_core::clock::IdSourceExt as _;
use helix_agents_core::id::SessionId;
use helix_agents_core::session::Submission;

use super::Client;
use super::runs::RandomIds;
use crate::api::Answered;
use crate::error::Result;
use crate::transport::{Repeat, Request};
use crate::wire::AnswerBody;

impl Client {
    /// Answers a pending call of a session or of one of its descendants, and resumes the root session.
    ///
    /// The server records the owner of the token as the author; [`Submission::by`] has no effect. Use
    /// [`Submission::digest`] to ensure that an approval is for the arguments that the user has seen. The answer is
    /// recorded once, however often the request is repeated.
    ///
    /// # Errors
    /// Returns `call_not_found`, `already_answered`, `answer_expired`, `answer_to_aborted`, `answer_invalid`,
    /// `answer_wrong_kind`, `arguments_changed` and `session_not_found`, and the errors of [requests](Self#errors).
    pub async fn submit(&self, session: &SessionId, submission: &Submission) -> Result<Answered> {
        self.answer(session, submission, true).await
    }

    /// Answers a pending call and does not resume the session.
    ///
    /// # Errors
    /// Returns the errors of [`submit`](Self::submit).
    pub async fn submit_only(
        &self,
        session: &SessionId,
        submission: &Submission,
    ) -> Result<Answered> {
        self.answer(session, submission, false).await
    }

    async fn answer(
        &self,
        session: &SessionId,
        submission: &Submission,
        resume: bool,
    ) -> Result<Answered> {
        let request = submission.request_id().cloned().unwrap_or_else(|| RandomIds.request());
        let body = AnswerBody::new(session.as_str(), submission, request.as_str(), resume)?;
        let request = Request::post(&["submit-tool-result"], &body, Repeat::Always)?;
        self.transport.json(&request).await
    }
}
