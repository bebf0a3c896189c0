//! Stores with random faults: replies are late or lost, and requests do not arrive.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Renewal,
    SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend, WriteQueue,
};
use helix_agents_core::stream::{Batch, BatchReceipt, ChunkStream, StreamInfo, StreamManager};

use crate::retrying;
use crate::rng::Rng;
use crate::store_suite::StoreHarness;
use crate::stream_suite::StreamHarness;

/// The fault of one operation.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// No fault.
    Fine,
    /// The operation waits this long before it reaches the store.
    Late(Duration),
    /// The operation does not reach the store. The error leaves open whether it did.
    Lost,
    /// The operation takes effect, and its reply is lost.
    ReplyLost,
    /// The operation reaches the store twice, as on a network that retransmits.
    Duplicated,
}

/// Random faults, in about one of three operations. They follow from the seed and the order of the
/// operations.
#[derive(Debug, Clone)]
struct FaultPlan(Arc<Mutex<Rng>>);

impl FaultPlan {
    fn of(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Rng::of(seed))))
    }

    fn below(&self, bound: usize) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).below(bound)
    }

    fn next_fault(&self) -> Fault {
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match rng.below(12) {
            0 => Fault::Late(Duration::from_millis(rng.below(5) as u64)),
            1 => Fault::Lost,
            2 => Fault::ReplyLost,
            3 => Fault::Duplicated,
            _ => Fault::Fine,
        }
    }

    async fn apply<T, F>(&self, operation: impl Fn() -> F + Send + Sync) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send,
    {
        match self.next_fault() {
            Fault::Fine => operation().await,
            Fault::Late(wait) => {
                tokio::time::sleep(wait).await;
                operation().await
            }
            Fault::Lost => Err(lost()),
            Fault::ReplyLost => {
                operation().await?;
                Err(lost())
            }
            Fault::Duplicated => {
                operation().await?;
                operation().await
            }
        }
    }
}

fn lost() -> Error {
    Error::new(ErrorCode::StoreUnavailable, "injected fault: the reply was lost")
}

/// A store with random faults.
#[derive(Debug, Clone)]
pub struct ChaosStore {
    inner: Arc<dyn StateStore>,
    faults: FaultPlan,
}

impl ChaosStore {
    /// Wraps a store with the faults of a seed.
    pub fn new(inner: Arc<dyn StateStore>, seed: u64) -> Self {
        Self { inner, faults: FaultPlan::of(seed) }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for ChaosStore {
    fn scope(&self) -> StoreScope {
        self.inner.scope()
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.inner.guarantees()
    }

    fn max_append_bytes(&self) -> usize {
        self.inner.max_append_bytes()
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        None
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        self.faults.apply(|| self.inner.create_session(new.clone(), first.clone())).await
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        self.faults.apply(|| self.inner.fork(from, new.clone(), first.clone())).await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        self.faults.apply(|| self.inner.append(append.clone())).await
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        self.faults.apply(|| self.inner.read_log(session, after, limit)).await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        self.faults.apply(|| self.inner.head(session)).await
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        self.faults.apply(|| self.inner.list(filter, page)).await
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        self.faults.apply(|| self.inner.list_usage(filter, page)).await
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        self.faults.apply(|| self.inner.renew(session, run, ttl)).await
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        self.faults.apply(|| self.inner.save_snapshot(session, snapshot.clone())).await
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        self.faults.apply(|| self.inner.snapshot(session)).await
    }

    /// Deletions reach the store once, because only the first one reports that the session existed.
    async fn delete(&self, session: &SessionId) -> Result<bool> {
        self.inner.delete(session).await
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        self.inner.delete_if(session, required_tags).await
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        self.inner.purge(purge).await
    }
}

/// Streams with random faults. Readers are cut off as well, each new one after more chunks, so a reader that
/// reconnects reaches the end.
#[derive(Debug, Clone)]
pub struct ChaosStreams {
    inner: Arc<dyn StreamManager>,
    faults: FaultPlan,
    readers: Arc<AtomicU32>,
}

impl ChaosStreams {
    /// Wraps streams with the faults of a seed.
    pub fn new(inner: Arc<dyn StreamManager>, seed: u64) -> Self {
        Self { inner, faults: FaultPlan::of(seed), readers: Arc::default() }
    }

    /// Returns the number of chunks after which the next reader is cut off.
    fn until_cut(&self) -> usize {
        let readers = self.readers.fetch_add(1, Ordering::Relaxed);
        self.faults.below(4 << readers.min(20))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StreamManager for ChaosStreams {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        self.faults.apply(|| self.inner.write(stream, batch.clone())).await
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        None
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        let chunks = self.faults.apply(|| self.inner.read(stream, from)).await?;
        let cut = futures_util::stream::once(async { Err(lost()) });
        Ok(chunks.take(self.until_cut()).chain(cut).boxed())
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        self.faults.apply(|| self.inner.info(stream)).await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.faults.apply(|| self.inner.reset(stream)).await
    }

    async fn forget(&self, stream: &SessionId, seen: &StreamInfo) -> Result<bool> {
        self.faults.apply(|| self.inner.forget(stream, seen)).await
    }
}

/// A harness whose handles have random faults and retries. The whole contract holds for it.
#[derive(Debug)]
pub struct ChaosHarness<H> {
    harness: H,
    seeds: AtomicU64,
}

impl<H> ChaosHarness<H> {
    /// Wraps a harness.
    pub fn of(harness: H) -> Self {
        Self { harness, seeds: AtomicU64::new(1) }
    }

    fn seed(&self) -> u64 {
        self.seeds.fetch_add(1, Ordering::Relaxed)
    }
}

#[async_trait]
impl<H: StoreHarness> StoreHarness for ChaosHarness<H> {
    fn scope(&self) -> StoreScope {
        self.harness.scope()
    }

    async fn open(&self) -> Arc<dyn StateStore> {
        let store = ChaosStore::new(self.harness.open().await, self.seed());
        Arc::new(retrying::store(Arc::new(store)))
    }

    fn keeps_snapshots(&self) -> bool {
        self.harness.keeps_snapshots()
    }

    async fn contains_bytes(&self, bytes: &[u8]) -> Option<bool> {
        self.harness.contains_bytes(bytes).await
    }
}

#[async_trait]
impl<H: StreamHarness> StreamHarness for ChaosHarness<H> {
    async fn open(&self) -> Arc<dyn StreamManager> {
        let streams = ChaosStreams::new(self.harness.open().await, self.seed());
        Arc::new(retrying::streams(Arc::new(streams)))
    }

    async fn open_keeping(&self, chunks: u64) -> Arc<dyn StreamManager> {
        let streams = ChaosStreams::new(self.harness.open_keeping(chunks).await, self.seed());
        Arc::new(retrying::streams(Arc::new(streams)))
    }

    fn keeps_readers(&self) -> bool {
        false
    }
}
