//! Options of the in-memory store.

/// Options of a [`MemoryStore`](crate::MemoryStore).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryOptions {
    /// The number of chunks that are kept per stream, at least one. Older chunks are trimmed.
    /// Defaults to 100,000.
    pub stream_retention: u64,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self { stream_retention: 100_000 }
    }
}
