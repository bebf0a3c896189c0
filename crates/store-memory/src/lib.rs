//! Sessions and streams in the memory of one process.
//!
//! The reference implementation of the store contracts: what it does is what they mean. For tests,
//! for programs whose sessions need not outlive them, and to read before writing another store.

use std::sync::Arc;

use helix_agents_core::clock::Clock;

mod clock;
mod config;
mod log;
mod state;
mod stream;
mod streams;

pub use config::MemoryOptions;

/// A [`StateStore`] and [`StreamManager`] in memory. Clones are handles of the same store.
///
/// # Durability
///
/// None: everything is gone with the last handle.
///
/// # Cancel safety
///
/// Nothing ever waits but the readers of streams, so an operation whose future was polled has taken
/// place.
///
/// [`StateStore`]: helix_agents_core::store::StateStore
/// [`StreamManager`]: helix_agents_core::stream::StreamManager
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    sessions: state::Sessions,
    streams: streams::Streams,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store with options of the caller's.
    #[must_use]
    pub fn with_options(options: MemoryOptions) -> Self {
        Self::build(options, clock::StoreClock::default())
    }

    /// An empty store whose leases run out, and whose appends are dated, by the given clock. The
    /// system's clock otherwise. For tests and simulations, which decide what time it is.
    #[must_use]
    pub fn with_clock(options: MemoryOptions, clock: Arc<dyn Clock>) -> Self {
        Self::build(options, clock::StoreClock::of(clock))
    }

    fn build(options: MemoryOptions, clock: clock::StoreClock) -> Self {
        let sessions = state::Sessions::new(clock.clone());
        let streams = streams::Streams::new(options, clock);
        Self { inner: Arc::new(Inner { sessions, streams }) }
    }
}
