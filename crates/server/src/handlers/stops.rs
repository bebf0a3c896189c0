//! `POST /interrupt` and `POST /abort`.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::StopOptions;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::session::StopKind;

use crate::api::{StopRequest, StoppedBody};
use crate::api_error::ApiError;
use crate::auth::Principal;
use crate::ownership::accessible;
use crate::service::Service;

/// Requests that a run stop. The request is an append to the log, so any instance takes it.
pub(crate) async fn stop(
    service: &Service,
    principal: &Principal,
    request: StopRequest,
    kind: StopKind,
) -> Result<StoppedBody, ApiError> {
    let session = SessionId::from(request.session_id);
    let found = accessible(&*service.store, principal, &session).await?;
    let mut options = StopOptions::default();
    options.run = request.run_id.map(RunId::validated).transpose()?;
    options.reason = request.reason;
    options.required_tags = found.required_tags();
    let ended = match service.executor.stop(&session, kind, options).await {
        Ok(()) => false,
        Err(error) if error.code() == ErrorCode::NothingToStop => true,
        Err(error) => return Err(error.into()),
    };
    Ok(StoppedBody { session_id: session.to_string(), ended })
}
