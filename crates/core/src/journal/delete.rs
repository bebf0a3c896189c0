//! Deleting sessions together with their streams, even if streams are stored elsewhere.

use std::collections::BTreeMap;

use super::conflicts::{MAX_CONFLICTS, too_many_conflicts};
use crate::error::Result;
use crate::id::SessionId;
use crate::mutant;
use crate::store::StateStore;
use crate::stream::StreamManager;

/// Deletes a session, its descendants and its stream. Returns `true` if the session existed.
///
/// The session is deleted first, so a run in progress fails at its next append. If a call is cut
/// off in between, repeating it completes the deletion. If a new session is created with the id in
/// the meantime, its stream is kept.
///
/// # Errors
/// Returns the errors of the store and the stream manager.
pub async fn delete_session(
    store: &dyn StateStore,
    streams: &dyn StreamManager,
    session: &SessionId,
) -> Result<bool> {
    delete_session_if(store, streams, session, &BTreeMap::new()).await
}

/// Deletes a session as [`delete_session`] does if it has all of these tags. Otherwise it deletes nothing and returns
/// `false`, as for a session that does not exist.
///
/// # Errors
/// Returns the errors of the store and the stream manager.
pub async fn delete_session_if(
    store: &dyn StateStore,
    streams: &dyn StreamManager,
    session: &SessionId,
    required_tags: &BTreeMap<String, String>,
) -> Result<bool> {
    let existed = store.delete_if(session, required_tags).await?;
    clear_stream(store, streams, session).await?;
    Ok(existed)
}

/// Deletes the stream of a deleted session, unless a new session exists with the id.
///
/// If sessions and streams are in one store, nothing is left over, except chunks that a run wrote
/// after its session was deleted. Otherwise a session may have been deleted or purged only in the
/// store. Its watermarks would hide chunks of a new session, so this function is also called before
/// a session is created.
///
/// # Errors
/// Returns the errors of the store and the stream manager, and
/// [`StoreBusy`](crate::error::ErrorCode::StoreBusy) if others write to the stream continuously.
pub async fn clear_stream(
    store: &dyn StateStore,
    streams: &dyn StreamManager,
    session: &SessionId,
) -> Result<()> {
    if mutant!("stream-left") {
        return Ok(());
    }
    for _ in 0..MAX_CONFLICTS {
        let info = streams.info(session).await?;
        // The head is read after the stream, because a session writes to its stream only after its
        // creation. If it is created and writes after this, the stream is no longer as it was read.
        if info.is_empty() || store.head(session).await?.is_some() {
            return Ok(());
        }
        if streams.forget(session, &info).await? {
            return Ok(());
        }
    }
    Err(too_many_conflicts(session))
}
