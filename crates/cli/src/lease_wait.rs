//! Messages about what a resume has to wait for: the process of the last run, which may still be running.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use helix_agents::AnyStore;
use helix_agents::clock::Timestamp;
use helix_agents::session::{Session, load};
use helix_agents::store::Head;

use crate::text::{duration, shortened};

/// The maximum length of a tool's name.
const MAX_CHARS: usize = 100;

/// The messages for the user, with the maximum durations of the waits.
///
/// # Errors
/// The errors of the store.
pub(crate) async fn messages(head: &Head, store: &AnyStore) -> Result<Vec<String>> {
    let mut messages = Vec::new();
    if head.summary.run.is_none() {
        return Ok(messages);
    }
    if let Some(until) = head.lease_until.filter(|_| head.is_leased()) {
        messages.push(format!(
            "The process of the last run may still be running: waiting up to {} for its lease to \
             expire.",
            duration(until.since(head.read_at))
        ));
    }
    let session = load(store, &head.session).await?;
    messages.extend(in_doubt(&session, head.read_at).into_iter().map(|(tool, most)| {
        format!(
            "The process stopped during a call of `{}`, which must not run twice: waiting up to \
             {} for its timeout to pass.",
            shortened(&tool, MAX_CHARS),
            duration(most)
        )
    }));
    Ok(messages)
}

/// The calls that were started but have no result, with the remaining time for which a process that is
/// slow but not crashed may still execute them.
fn in_doubt(session: &Session, now: Timestamp) -> Vec<(Arc<str>, Duration)> {
    let calls = session.open_step().into_iter().flat_map(|step| step.pairs());
    let open = calls.filter(|(_, state)| state.finish.is_none());
    let started = open.filter_map(|(call, state)| {
        let started = state.started.as_ref()?;
        let limit = Duration::from_millis(started.timeout_ms?);
        let left = limit.saturating_sub(now.since(started.at?));
        (!left.is_zero()).then(|| (Arc::clone(&call.name), left))
    });
    started.collect()
}
