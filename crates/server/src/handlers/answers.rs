//! `POST /submit-tool-result`.

use std::sync::Arc;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{ResumeOptions, Resumption, RunHandle};
use helix_agents_core::id::{RequestId, SessionId};
use helix_agents_core::session::{CallRef, Submission};
use helix_agents_core::store::SessionStatus;

use crate::api::{AnswerRequest, AnsweredBody, ResumptionBody};
use crate::api_error::ApiError;
use crate::auth::Principal;
use crate::ownership::{Accessible, accessible};
use crate::service::Service;

/// Records an answer, and resumes the session unless the request says otherwise.
///
/// Exactly one of several answers is recorded. If resuming fails, the answer stays recorded, and the reply says so.
pub(crate) async fn answer(
    service: &Arc<Service>,
    principal: &Principal,
    request: AnswerRequest,
) -> Result<AnsweredBody, ApiError> {
    let session = SessionId::from(request.session_id.as_str());
    let found = accessible(&*service.store, principal, &session).await?;
    let resumes = request.resume.unwrap_or(true);
    let mut call = CallRef::from(request.call.as_str());
    if !found.is_root() && call.session.is_none() {
        call.session = Some(session);
    }
    let mut submission = submission(call.clone(), request)?.by(principal.id());
    for (key, value) in found.required_tags() {
        submission = submission.required_tag(key, value);
    }
    if let Some(trace) = principal.trace() {
        submission = submission.trace(trace);
    }
    let root = found.root().clone();
    let submitted = service.executor.submit_tool_result(&root, submission).await?;
    call.session = Some(submitted.session);
    let resumption = match submitted.resumption {
        Resumption::NotRequested if resumes => resume(service, principal, &found).await,
        resumption => resumption,
    };
    let (resumption, run) = match resumption {
        Resumption::Started(handle) => (ResumptionBody::Started, Some(handle)),
        Resumption::NotRequested => (ResumptionBody::NotRequested, None),
        Resumption::Running => (ResumptionBody::Running, None),
        Resumption::Waiting => (ResumptionBody::Waiting, None),
        Resumption::Ended => (ResumptionBody::Ended, None),
        _ => (ResumptionBody::Failed, None),
    };
    let run_id = run.map(|handle: RunHandle| handle.run().to_string());
    Ok(AnsweredBody { session_id: root.to_string(), call: call.to_string(), resumption, run_id })
}

/// Resumes the root session. An answer is never refused because of a limit on runs: if the server cannot start one now,
/// a sweep does later.
pub(crate) async fn resume(
    service: &Arc<Service>,
    principal: &Principal,
    found: &Accessible,
) -> Resumption {
    let Ok(permit) = service.admit_run(principal) else { return Resumption::NotRequested };
    let root = found.root();
    let resumed = async {
        let head = service.store.head(root).await?.ok_or_else(ApiError::no_session)?;
        // A repeated answer does not start a session again that was stopped or failed meanwhile.
        if head.summary.status != SessionStatus::Active {
            return Ok(None);
        }
        let agent = service.agent(&head.created.agent, root)?;
        let mut options = ResumeOptions::default();
        options.required_tags = found.required_tags();
        options.trace = principal.trace();
        let handle = service.executor.resume(agent, root, options).await?;
        Ok::<_, ApiError>(Some(handle))
    };
    let error = match resumed.await {
        Ok(None) => return Resumption::Ended,
        Ok(Some(handle)) => {
            service.watch_run(handle.clone(), permit);
            return Resumption::Started(handle);
        }
        Err(error) => error,
    };
    match error.code() {
        ErrorCode::AlreadyRunning | ErrorCode::AlreadyResumed | ErrorCode::Superseded => {
            Resumption::Running
        }
        ErrorCode::Suspended => Resumption::Waiting,
        ErrorCode::NothingToResume => Resumption::Ended,
        _ => {
            let cause = error.cause();
            tracing::warn!(session = %root, error = %cause, "the session was not resumed after an answer");
            Resumption::Failed(helix_agents_core::error::Error::new(error.code(), "not resumed"))
        }
    }
}

fn submission(call: CallRef, request: AnswerRequest) -> Result<Submission, ApiError> {
    let AnswerRequest { result, error, approved, reason, edited, digest, request_id, .. } = request;
    let is_denial = approved == Some(false);
    if edited.is_some() && approved != Some(true) {
        return Err(ApiError::invalid("`edited` belongs to an approval"));
    }
    if reason.is_some() && !is_denial {
        return Err(ApiError::invalid("`reason` belongs to a denial"));
    }
    let submission = match (result, error, approved) {
        (Some(result), None, None) => Submission::result(call, &result)?,
        (None, Some(error), None) => Submission::error(call, error),
        (None, None, Some(true)) => match edited {
            Some(edited) => Submission::approve_edited(call, &edited)?,
            None => Submission::approve(call),
        },
        (None, None, Some(false)) => Submission::deny(call, reason),
        _ => {
            let message = "an answer has exactly one of `result`, `error` and `approved`";
            return Err(ApiError::invalid(message));
        }
    };
    let submission = match digest {
        Some(digest) => submission.digest(digest),
        None => submission,
    };
    Ok(match request_id {
        Some(request) => submission.request(checked_request(request)?),
        None => submission,
    })
}

/// Returns the id of a request that a client has chosen.
pub(crate) fn checked_request(id: String) -> Result<RequestId, ApiError> {
    // Ids of requests have the same rules as those of runs.
    helix_agents_core::id::RunId::validated(id.as_str())?;
    Ok(RequestId::from(id))
}
