//! Simulated users who answer pending calls at random, and the answers that were accepted.

use std::sync::Arc;

use helix_agents_conformance::rng::Rng;
use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::event::{Answer, PendingKind};
use helix_agents_core::executor::AgentExecutor;
use helix_agents_core::id::{CallId, RequestId, SessionId};
use helix_agents_core::session::{PendingCallView, Submission};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::notes::Records;

/// An answer that an executor confirmed as recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AcceptedAnswer {
    /// The session of the call.
    pub session: SessionId,
    /// The answered call.
    pub call: CallId,
    /// The id of the answer.
    pub request: RequestId,
}

/// All accepted answers. Clones are the same list.
pub type Answers = Arc<Records<AcceptedAnswer>>;

impl Records<AcceptedAnswer> {
    /// Submits an answer of the right kind, or of a wrong kind, and records it.
    ///
    /// # Errors
    /// Returns the error of the executor.
    pub async fn give(
        &self,
        executor: &dyn AgentExecutor,
        root: &SessionId,
        pending: &PendingCallView,
        rng: &mut Rng,
        fitting: bool,
    ) -> Result<()> {
        let kind = match pending.pending.kind {
            PendingKind::Client if !fitting => PendingKind::Approval { editable: true },
            _ if !fitting => PendingKind::Client,
            kind => kind,
        };
        let word = json!({ "word": format!("answer {}", rng.below(1000)) });
        let call = pending.reference();
        let submission = match kind {
            PendingKind::Client if rng.once_in(4) => Submission::error(call, "not known"),
            PendingKind::Approval { editable: true } if rng.once_in(4) => {
                Submission::approve_edited(call, &word)?
            }
            PendingKind::Approval { .. } if rng.once_in(4) => {
                Submission::deny(call, Some("no".to_owned()))
            }
            PendingKind::Approval { .. } => Submission::approve(call),
            _ => Submission::result(call, &word)?,
        };
        let request = RequestId::from(format!("answer-{}-{:x}", pending.pending.call, rng.roll()));
        let mut submission = submission.request(request.clone()).by("ann");
        if rng.once_in(3) {
            submission = submission.digest(pending.pending.digest.clone());
        }
        executor.submit_tool_result(root, submission).await?;
        let (session, call) = (pending.session.clone(), pending.pending.call.clone());
        self.note(AcceptedAnswer { session, call, request });
        Ok(())
    }
}

/// Returns `true` for an error that a caller must expect when other callers act concurrently.
#[must_use]
pub fn is_expected(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::AlreadyRunning
            | ErrorCode::AlreadyResumed
            | ErrorCode::NothingToResume
            | ErrorCode::NothingToStop
            | ErrorCode::Suspended
            | ErrorCode::RunUnfinished
            | ErrorCode::SessionNotFound
            | ErrorCode::CallNotFound
            | ErrorCode::AlreadyAnswered
            | ErrorCode::AnswerExpired
            | ErrorCode::AnswerToAborted
            | ErrorCode::AnswerWrongKind
            | ErrorCode::NotRoot
            | ErrorCode::Superseded
    )
}

/// Returns `true` if the user denied the call or reported an error.
pub(super) fn denies(answer: &Answer) -> bool {
    matches!(answer, Answer::Denied { .. } | Answer::Error(_))
}
