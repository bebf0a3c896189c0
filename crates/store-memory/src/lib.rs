//! Sessions and streams in the memory of one process.
//!
//! This is the reference implementation of the store contracts. Use it in tests, in programs whose sessions need not
//! survive the process, and as a model when you write another store.

use std::sync::Arc;

use helix_agents_core::clock::Clock;

mod clock;
mod config;
mod log;
mod state;
mod stream;
mod streams;

pub use config::MemoryOptions;

/// An in-memory [`StateStore`] and [`StreamManager`]. Clones are handles to the same store.
///
/// # Durability
///
/// None. All data is lost when the last handle is dropped.
///
/// # Cancel safety
///
/// Only stream readers ever wait. All other operations complete the first time their futures are
/// polled.
///
/// # Examples
///
/// ```
/// use helix_agents_core::store::{StateStore as _, StoreScope};
/// use helix_agents_store_memory::MemoryStore;
///
/// # #[tokio::main]
/// # async fn main() -> helix_agents_core::error::Result<()> {
/// let store = MemoryStore::new();
/// assert_eq!(store.scope(), StoreScope::Process);
/// assert!(store.head(&"ticket-7".into()).await?.is_none());
/// # Ok(())
/// # }
/// ```
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
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty store with the given options.
    #[must_use]
    pub fn with_options(options: MemoryOptions) -> Self {
        Self::build(options, clock::StoreClock::default())
    }

    /// Creates an empty store that uses `clock` for lease expiry and append timestamps instead of
    /// the system clock. Tests and simulations use it to control time.
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
