//! `GET /sse`.

use std::sync::Arc;

use helix_agents_core::id::SessionId;
use http::HeaderMap;

use crate::api::StreamQuery;
use crate::api_error::ApiError;
use crate::auth::Principal;
use crate::event_stream::{ChunkOptions, Chunks, EventStream, Reader};
use crate::ownership::accessible;
use crate::service::Service;

/// The header with which a browser that reconnects names the last event that it received.
const LAST_EVENT_ID: &str = "last-event-id";

/// Opens the stream of a root session.
pub(crate) async fn open(
    service: &Arc<Service>,
    principal: &Principal,
    query: StreamQuery,
    headers: &HeaderMap,
) -> Result<EventStream, ApiError> {
    let session = SessionId::from(query.session_id);
    let found = accessible(&*service.store, principal, &session).await?;
    found.check_root()?;
    let permit = service.admit_stream(principal)?;
    let from = match headers.get(LAST_EVENT_ID) {
        Some(id) => {
            let last = id.to_str().ok().and_then(|id| id.parse::<u64>().ok());
            let message = "`Last-Event-ID` is not an id of this stream, which is a number";
            last.ok_or_else(|| ApiError::invalid(message))?.saturating_add(1)
        }
        None => query.from.unwrap_or(1).max(1),
    };
    let has_children = query.children != Some(0);
    let options = ChunkOptions { root: found.identity(), from, has_children };
    let chunks = Chunks::open(Arc::clone(service), options).await?;
    Ok(EventStream::new(Reader::new(service, chunks, permit)))
}
