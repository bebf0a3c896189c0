//! `POST /messages`.

use helix_agents_core::executor::MessageOptions;
use helix_agents_core::id::SessionId;

use super::answers::checked_request;
use crate::api::{MessageRequest, QueuedBody};
use crate::api_error::ApiError;
use crate::auth::Principal;
use crate::ownership::accessible;
use crate::service::Service;

/// Queues a message for a session, with or without a run.
pub(crate) async fn send(
    service: &Service,
    principal: &Principal,
    request: MessageRequest,
) -> Result<QueuedBody, ApiError> {
    let session = SessionId::from(request.session_id);
    let found = accessible(&*service.store, principal, &session).await?;
    let message = request.message.into_message()?;
    let mut options = MessageOptions::default();
    options.request = request.request_id.map(checked_request).transpose()?;
    options.required_tags = found.required_tags();
    options.trace = principal.trace();
    service.executor.queue_message(&session, message, options).await?;
    Ok(QueuedBody { session_id: session.to_string() })
}
