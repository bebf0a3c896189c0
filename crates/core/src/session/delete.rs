//! Deleting sessions with their streams, wherever each of them is kept.

use crate::error::Result;
use crate::id::SessionId;
use crate::mutant;
use crate::store::StateStore;
use crate::stream::StreamManager;

/// Deletes a session and all below it, and forgets its stream. Returns whether there was a session.
///
/// The session is deleted first: a run that is still under way fails at its next append. A call that was
/// cut off in between is completed by repeating it.
///
/// # Errors
/// The store's and the stream manager's.
pub async fn delete_session(
    store: &dyn StateStore,
    streams: &dyn StreamManager,
    session: &SessionId,
) -> Result<bool> {
    let existed = store.delete(session).await?;
    if !mutant!("stream-left") {
        streams.forget(session).await?;
    }
    Ok(existed)
}

/// Forgets what an earlier session of this id left in the streams, before a session is created under it.
///
/// Nothing is left where sessions and streams are in one store. Elsewhere a session may have been deleted
/// or purged in the store alone, and its old marks would hide what the new one shows.
///
/// # Errors
/// The store's and the stream manager's.
pub async fn clear_stream(
    store: &dyn StateStore,
    streams: &dyn StreamManager,
    session: &SessionId,
) -> Result<()> {
    let info = streams.info(session).await?;
    let is_empty = info.last_seq == 0 && info.marked.is_empty() && info.open.is_empty();
    // Looked at after the stream: what a session has written there comes after its creation.
    if is_empty || mutant!("stream-left") || store.head(session).await?.is_some() {
        return Ok(());
    }
    streams.forget(session).await
}
