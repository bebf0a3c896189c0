//! The spans of a recorded session.

use helix_agents_core::error::Result;
use helix_agents_core::event::{Event, decode};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::Session;
use helix_agents_core::store::StateStore;

use crate::options::SpanOptions;
use crate::span::Span;
use crate::spans::spans;

/// The number of appends that are read at once.
const PAGE: u32 = 256;

/// Returns the spans of a session from its log, without those of its sub-agents. They equal those that were exported while the
/// session ran, if the options are the same. A receiver recognises them by their ids. The events that a fork shares with its
/// original belong to the original.
///
/// # Errors
/// Returns [`SessionNotFound`](helix_agents_core::error::ErrorCode::SessionNotFound), the errors of the store, and those of a
/// log that cannot be read.
pub async fn session_spans(
    store: &dyn StateStore,
    session: &SessionId,
    options: &SpanOptions,
) -> Result<Vec<Span>> {
    let mut fold = Session::new(session.clone());
    let mut found = Vec::new();
    loop {
        let page = store.read_log(session, fold.position().version, PAGE).await?;
        if page.is_empty() {
            return Ok(found);
        }
        for append in page {
            fold.apply_append(&append)?;
            let events = decode(session, &append)?;
            if events.iter().any(|recorded| matches!(recorded.event, Event::Forked { .. })) {
                found.clear();
            }
            found.extend(spans(&fold, &events, options));
        }
    }
}
