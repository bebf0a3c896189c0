//! The store's clock.

use std::time::{SystemTime, UNIX_EPOCH};

use helix_agents_core::clock::Timestamp;

/// Returns the current time of the clock that decides lease expiry and timestamps appends.
#[expect(clippy::disallowed_methods, reason = "this is the store's own clock")]
pub(crate) fn now() -> Timestamp {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
}
