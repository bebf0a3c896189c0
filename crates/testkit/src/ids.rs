//! Fresh ids for tests that have no source of them.

use std::sync::atomic::{AtomicU64, Ordering};

use helix_agents_core::id::BatchId;

/// One that no other batch of this process has.
#[must_use]
pub fn batch_id() -> BatchId {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // Another process that writes the same stream has others.
    BatchId(u128::from(std::process::id()) << 64 | u128::from(count))
}
