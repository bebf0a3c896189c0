//! Options of the in-memory store.

/// Options of a [`MemoryStore`](crate::MemoryStore).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryOptions {
    /// The number of chunks that are kept per stream. Older chunks are trimmed. Zero is treated as
    /// one. Defaults to 100,000.
    pub stream_retention: u64,
}

impl MemoryOptions {
    /// Creates the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of chunks that are kept per stream, at least one.
    #[must_use]
    pub const fn stream_retention(mut self, chunks: u64) -> Self {
        self.stream_retention = chunks;
        self
    }
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self { stream_retention: 100_000 }
    }
}
