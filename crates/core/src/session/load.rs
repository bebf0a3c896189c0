//! Reading a log back.

use super::Session;
use crate::error::{Error, ErrorCode, Result};
use crate::event::{RecordedEvent, decode};
use crate::id::SessionId;
use crate::store::StateStore;

/// How many appends are read at once.
const PAGE: u32 = 256;

/// Folds the whole log of a session.
///
/// # Errors
/// [`ErrorCode::SessionNotFound`], the store's, and those of a log that cannot be read or is not
/// legal. The log is never touched.
pub async fn load(store: &dyn StateStore, session: &SessionId) -> Result<Session> {
    let mut fold = Session::new(session.clone());
    loop {
        let page = store.read_log(session, fold.position().version, PAGE).await?;
        if page.is_empty() {
            break;
        }
        for append in &page {
            fold.apply_append(append)?;
        }
    }
    if fold.position().version == 0 {
        return Err(Error::new(ErrorCode::SessionNotFound, "there is no session of this id")
            .with_context("session", session));
    }
    Ok(fold)
}

/// The events of a session after a version, for people and programs that look at a log.
///
/// # Errors
/// As [`load`].
pub async fn load_events(
    store: &dyn StateStore,
    session: &SessionId,
    after: u64,
) -> Result<Vec<RecordedEvent>> {
    let mut events = Vec::new();
    let mut version = after;
    loop {
        let page = store.read_log(session, version, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(events);
        };
        version = last.version();
        for append in &page {
            events.extend(decode(session, append)?);
        }
    }
}
