//! What whoever goes on with a session has to wait for: the process of its last run, which may live.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use helix_agents::clock::Timestamp;
use helix_agents::session::{Session, load};
use helix_agents::store::Head;

use crate::store::Store;
use crate::text::{duration, shortened};

/// How much of a tool's name is shown.
const MOST: usize = 100;

/// What to tell of it, and how long it takes at most.
///
/// # Errors
/// The store's.
pub(crate) async fn told(head: &Head, store: &Store) -> Result<Vec<String>> {
    let mut told = Vec::new();
    if head.summary.run.is_none() {
        return Ok(told);
    }
    if let Some(until) = head.lease_until.filter(|_| head.is_leased()) {
        told.push(format!(
            "The process of the last run may still live: waiting for up to {} until it counts as \
             dead.",
            duration(until.since(head.read_at))
        ));
    }
    let session = load(store, &head.session).await?;
    told.extend(in_doubt(&session, head.read_at).into_iter().map(|(tool, most)| {
        format!(
            "The process stopped in the middle of `{}`, which must not run twice: waiting for up \
             to {} until it cannot be at it any more.",
            shortened(&tool, MOST),
            duration(most)
        )
    }));
    Ok(told)
}

/// Calls whose start is on record and whose result is not, and how long a process that is slow and
/// not dead may still be at them.
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
