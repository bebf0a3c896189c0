//! `POST /fork`.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::ForkOptions;
use helix_agents_core::id::SessionId;

use crate::api::{ForkRequest, ForkedBody};
use crate::api_error::ApiError;
use crate::auth::Principal;
use crate::handlers::starts::check_chosen;
use crate::ownership::{OWNER_TAG, accessible, find};
use crate::service::Service;

/// Creates a session from another one. The fork has the owner of the original.
pub(crate) async fn fork(
    service: &Service,
    principal: &Principal,
    request: ForkRequest,
) -> Result<ForkedBody, ApiError> {
    service.check_open()?;
    let session = SessionId::from(request.session_id);
    let found = accessible(&*service.store, principal, &session).await?;
    // The fork counts as a session of its owner.
    if let Some(owner) = found.owner() {
        service.check_quota(owner).await?;
    }
    let mut options = ForkOptions::default();
    options.checkpoint = request.checkpoint;
    options.required_tags = found.required_tags();
    if let Some(chosen) = request.new_session_id {
        let chosen = SessionId::validated(chosen)?;
        check_new(service, principal, &chosen).await?;
        options = options.session(chosen);
    }
    // The tags of a child are not those of its root, which names the owner.
    if let Some(owner) = found.owner() {
        options = options.tag(OWNER_TAG, owner);
    }
    let chosen = options.session.clone();
    let forked = service.executor.fork(&session, options).await;
    if let (Err(error), Some(chosen)) = (&forked, &chosen)
        && error.code() == ErrorCode::SessionExists
    {
        // Another owner may have created the session meanwhile.
        check_new(service, principal, chosen).await?;
    }
    Ok(ForkedBody { session_id: forked?.to_string() })
}

/// Checks the id of a session to create. A session of another owner looks like one that the caller cannot create.
async fn check_new(
    service: &Service,
    principal: &Principal,
    chosen: &SessionId,
) -> Result<(), ApiError> {
    match find(&*service.store, principal, chosen).await? {
        Some(_) => Ok(()),
        None => check_chosen(chosen),
    }
}
