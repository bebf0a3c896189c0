//! Deleting sessions together with their streams, even if streams are stored elsewhere.

use crate::error::Result;
use crate::id::SessionId;
use crate::mutant;
use crate::store::StateStore;
use crate::stream::StreamManager;

/// Deletes a session, its descendants and its stream. Returns `true` if the session existed.
///
/// The session is deleted first, so a run in progress fails at its next append. If a call is cut
/// off in between, repeating it completes the deletion.
///
/// # Errors
/// Returns the errors of the store and the stream manager.
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

/// Deletes the stream of an earlier session with this id, before a new session is created under the
/// id.
///
/// If sessions and streams are in one store, nothing is left over. Otherwise a session may have
/// been deleted or purged only in the store. Its old watermarks would then hide chunks of the new
/// session.
///
/// # Errors
/// Returns the errors of the store and the stream manager.
pub async fn clear_stream(
    store: &dyn StateStore,
    streams: &dyn StreamManager,
    session: &SessionId,
) -> Result<()> {
    let info = streams.info(session).await?;
    let is_empty = info.last_seq == 0 && info.marked.is_empty() && info.open.is_empty();
    // The head is read after the stream, because a session writes to its stream only after its
    // creation.
    if is_empty || mutant!("stream-left") || store.head(session).await?.is_some() {
        return Ok(());
    }
    streams.forget(session).await
}
