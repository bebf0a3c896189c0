//! Options.

/// What of a [`MemoryStore`](crate::MemoryStore) can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryOptions {
    /// How many chunks of each stream are kept; older ones are trimmed. At least one. 100,000
    /// unless told.
    pub stream_retention: u64,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self { stream_retention: 100_000 }
    }
}
