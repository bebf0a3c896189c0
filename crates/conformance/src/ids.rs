//! Fresh ids for tests without an id source.

use std::sync::atomic::{AtomicU64, Ordering};

use helix_agents_core::id::BatchId;

/// Returns a batch id that is unique in this process.
#[must_use]
pub fn batch_id() -> BatchId {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // The process id keeps it distinct from ids of other processes that write the same stream.
    BatchId(u128::from(std::process::id()) << 64 | u128::from(count))
}
