//! The store's clock.

use std::time::{SystemTime, UNIX_EPOCH};

use helix_agents_core::clock::Timestamp;

/// The present, by the clock that leases and times of appends are of.
#[expect(clippy::disallowed_methods, reason = "a store has a clock of its own; this is it")]
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
