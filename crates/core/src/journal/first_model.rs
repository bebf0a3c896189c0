//! The model of a session, as its log records it.

use std::sync::Arc;

use crate::error::Result;
use crate::event::{Event, decode};
use crate::id::SessionId;
use crate::store::StateStore;

/// The number of appends at the start of a log that are searched for the first reply.
const SEARCHED: u32 = 16;

/// Returns the model of the first reply that names one, as its provider names it. Searches only the first appends of
/// the log.
///
/// # Errors
/// Returns [`ErrorCode::SessionNotFound`](crate::error::ErrorCode::SessionNotFound), and the errors of the store.
pub async fn first_model(store: &dyn StateStore, session: &SessionId) -> Result<Option<Arc<str>>> {
    for append in &store.read_log(session, 0, SEARCHED).await? {
        for recorded in decode(session, append)? {
            if let Event::ModelReplied(reply) = &recorded.event
                && let Some(model) = &reply.model
            {
                return Ok(Some(Arc::clone(model)));
            }
        }
    }
    Ok(None)
}
