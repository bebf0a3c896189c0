//! Messages about what a resume has to wait for: the process of the last run, which may still be running.

use anyhow::Result;
use helix_agents::AnyStore;
use helix_agents::clock::short_duration;
use helix_agents::session::SessionReader;
use helix_agents::store::Head;

use crate::text::shortened;

/// The maximum length of a tool's name.
const MAX_CHARS: usize = 100;

/// The messages for the user, with the maximum durations of the waits.
///
/// # Errors
/// Returns the errors of the store.
pub(crate) async fn messages(head: &Head, store: &AnyStore) -> Result<Vec<String>> {
    let mut messages = Vec::new();
    if head.summary.run.is_none() {
        return Ok(messages);
    }
    if let Some(until) = head.lease_until.filter(|_| head.is_leased()) {
        messages.push(format!(
            "The process of the last run may still be running: waiting up to {} for its lease to \
             expire.",
            short_duration(until.since(head.read_at))
        ));
    }
    let session = SessionReader::of(store).overview(&head.session).await?;
    messages.extend(session.calls_in_doubt(head.read_at).into_iter().map(|(tool, most)| {
        format!(
            "The process stopped during a call of `{}`, which must not run twice: waiting up to \
             {} for its timeout to pass.",
            shortened(&tool, MAX_CHARS),
            short_duration(most)
        )
    }));
    Ok(messages)
}
