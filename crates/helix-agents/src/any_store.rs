//! A store of any kind.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::clock::{Clock, IdSource};
use helix_agents_core::error::Result;
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Renewal,
    RetryingStore, SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend,
    WriteQueue,
};
use helix_agents_core::stream::{
    Batch, BatchReceipt, ChunkStream, RetryingStreams, StreamInfo, StreamManager,
};

/// Closes a store.
type Close = dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync;

/// A state store and a stream manager of any kind, such as [`open_store`](crate::open_store) returns. Clones are
/// handles to the same store.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "store-memory")]
/// # fn main() {
/// use helix_agents::AnyStore;
/// use helix_agents::prelude::*;
///
/// let store = AnyStore::new(MemoryStore::new());
/// assert!(!store.guarantees().is_empty());
/// # }
/// # #[cfg(not(feature = "store-memory"))]
/// # fn main() {}
/// ```
#[derive(Clone)]
pub struct AnyStore {
    state: Arc<dyn StateStore>,
    streams: Arc<dyn StreamManager>,
    close: Option<Arc<Close>>,
}

impl AnyStore {
    /// Wraps a store that needs no closing.
    pub fn new<S: StateStore + StreamManager + Clone>(store: S) -> Self {
        Self { state: Arc::new(store.clone()), streams: Arc::new(store), close: None }
    }

    /// Wraps a store, with the function that [`close`](Self::close) calls.
    pub fn with_close<S: StateStore + StreamManager + Clone, F>(
        store: S,
        close: impl Fn(S) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let handle = store.clone();
        let close: Arc<Close> = Arc::new(move || Box::pin(close(handle.clone())));
        Self { close: Some(close), ..Self::new(store) }
    }

    /// Retries requests for up to `timeout` while the server is unavailable, see [`RetryingStore`]. Runtimes do this
    /// themselves. `ids` is the source of the jitter.
    #[must_use]
    pub fn with_retries(
        self,
        clock: &Arc<dyn Clock>,
        ids: &Arc<dyn IdSource>,
        timeout: Duration,
    ) -> Self {
        let (clock, ids) = (|| Arc::clone(clock), || Arc::clone(ids));
        Self {
            state: Arc::new(RetryingStore::new(self.state, clock(), ids(), timeout)),
            streams: Arc::new(RetryingStreams::new(self.streams, clock(), ids(), timeout)),
            close: self.close,
        }
    }

    /// Returns the state store.
    #[must_use]
    pub fn state(&self) -> Arc<dyn StateStore> {
        Arc::clone(&self.state)
    }

    /// Returns the stream manager.
    #[must_use]
    pub fn streams(&self) -> Arc<dyn StreamManager> {
        Arc::clone(&self.streams)
    }

    /// Closes the store for all handles, if it has anything to close.
    pub async fn close(&self) {
        if let Some(close) = &self.close {
            close().await;
        }
    }
}

impl fmt::Debug for AnyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyStore").field("state", &self.state).finish_non_exhaustive()
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl StateStore for AnyStore {
    fn scope(&self) -> StoreScope {
        self.state.scope()
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.state.guarantees()
    }

    fn max_append_bytes(&self) -> usize {
        self.state.max_append_bytes()
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        self.state.write_queue()
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        self.state.create_session(new, first).await
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        self.state.fork(from, new, first).await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        self.state.append(append).await
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        self.state.read_log(session, after, limit).await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        self.state.head(session).await
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        self.state.list(filter, page).await
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        self.state.list_usage(filter, page).await
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        self.state.renew(session, run, ttl).await
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        self.state.save_snapshot(session, snapshot).await
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        self.state.snapshot(session).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool> {
        self.state.delete(session).await
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        self.state.delete_if(session, required_tags).await
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        self.state.purge(purge).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl StreamManager for AnyStore {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        self.streams.write(stream, batch).await
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        self.streams.write_queue()
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        self.streams.read(stream, from).await
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        self.streams.info(stream).await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.streams.reset(stream).await
    }

    async fn forget(&self, stream: &SessionId, seen: &StreamInfo) -> Result<bool> {
        self.streams.forget(stream, seen).await
    }
}
