//! Queues that order writes.

use std::sync::atomic::{AtomicU64, Ordering};

/// The identity of a queue that executes writes in the order of their submission.
///
/// A state store and a [`StreamManager`](crate::stream::StreamManager) that return the same value
/// promise that their writes are executed in the order in which their futures were first polled, and
/// that a crash keeps a prefix of the executed writes. A write that fails, is retried or is cancelled
/// may be missing although a later one succeeded.
///
/// A runtime uses it to submit the chunks of an effect and the append of its outcome together and
/// then to wait for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteQueue(u64);

impl WriteQueue {
    /// Creates the identity of a queue of this process.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "each value is different")]
    pub fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed))
    }
}
