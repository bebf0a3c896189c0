//! `GET /status`.

use helix_agents_core::executor::Resumable;
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{SessionReader, usage_of_tree};

use crate::api::{RunBody, StatusBody, StatusQuery, SummaryBody};
use crate::api_error::ApiError;
use crate::auth::Principal;
use crate::ownership::accessible;
use crate::service::Service;

/// Returns the state of a session: its last run, pending calls and usage.
pub(crate) async fn status(
    service: &Service,
    principal: &Principal,
    query: StatusQuery,
) -> Result<StatusBody, ApiError> {
    let session = SessionId::from(query.session_id);
    let found = accessible(&*service.store, principal, &session).await?;
    let reader = SessionReader::of(&*service.store);
    let fold = reader.overview(&session).await?;
    // The head is read after the log, so that it is not older.
    let head = service.store.head(&session).await?.ok_or_else(ApiError::no_session)?;
    let pending_calls =
        if found.is_root() { service.executor.pending_calls(&session).await? } else { Vec::new() };
    let can_resume = service.executor.can_resume(&session).await? == Resumable::Yes;
    let body = StatusBody {
        summary: SummaryBody::of(&head),
        run: fold.last_run().map(|run| RunBody::of(run, service.redaction())),
        runs: fold.run_count(),
        steps: fold.step_count(),
        can_resume,
        pending_calls,
        usage: usage_of_tree(reader, &session).await?,
        own_usage: fold.usage().clone(),
        last_seq: service.streams.info(found.root()).await?.last_seq,
    };
    found.check_current(&*service.store).await?;
    Ok(body)
}
