//! Tests of streams that are temporarily unavailable: operations are retried, executed once, and
//! readers continue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use helix_agents_conformance::ids::batch_id;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_core::stream::{
    Batch, BatchReceipt, Chunk, ChunkKind, ChunkStream, RetryingStreams, StreamInfo, StreamManager,
};
use helix_agents_store_memory::MemoryStore;

use crate::support::{Counting, NoWait};

/// Streams that fail `failures` times with this error and then work.
#[derive(Debug)]
struct Unavailable {
    inner: MemoryStore,
    failures: AtomicU32,
    code: ErrorCode,
}

impl Unavailable {
    fn check(&self) -> Result<()> {
        let left = self
            .failures
            .try_update(Ordering::SeqCst, Ordering::SeqCst, |count| count.checked_sub(1));
        left.map_or(Ok(()), |_| Err(Error::new(self.code, "injected failure")))
    }
}

#[async_trait]
impl StreamManager for Unavailable {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        self.check()?;
        self.inner.write(stream, batch).await
    }

    /// Reads never fail at the start. They fail after one chunk.
    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        let chunks = StreamManager::read(&self.inner, stream, from).await?;
        let error = Error::new(self.code, "injected failure");
        Ok(chunks.take(1).chain(futures_util::stream::once(async { Err(error) })).boxed())
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        self.check()?;
        self.inner.info(stream).await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.check()?;
        self.inner.reset(stream).await
    }

    async fn forget(&self, stream: &SessionId, seen: &StreamInfo) -> Result<bool> {
        self.check()?;
        self.inner.forget(stream, seen).await
    }
}

/// Returns such streams, and a wrapper that retries for a minute.
fn unavailable(failures: u32, code: ErrorCode) -> (Arc<Unavailable>, Arc<dyn StreamManager>) {
    let (inner, failures) = (MemoryStore::new(), AtomicU32::new(failures));
    let inner_streams = Arc::new(Unavailable { inner, failures, code });
    let (clock, ids) = (Arc::<NoWait>::default(), Arc::<Counting>::default());
    let shared = Arc::<Unavailable>::clone(&inner_streams);
    let retrying = RetryingStreams::new(shared, clock, ids, Duration::from_secs(60));
    (inner_streams, Arc::new(retrying))
}

fn session() -> SessionId {
    SessionId::from("s")
}

fn chunk() -> Chunk {
    Chunk {
        agent: "a".into(),
        session: session(),
        run: "r".into(),
        step: 1,
        at: Timestamp(0),
        kind: ChunkKind::RunStarted { turn: 1 },
    }
}

#[tokio::test]
async fn a_transient_failure_is_retried() {
    let (inner, streams) = unavailable(10, ErrorCode::StoreUnavailable);
    assert_eq!(
        streams.append_chunks(batch_id(), &session(), None, vec![chunk()]).await.unwrap(),
        1
    );
    inner.failures.store(10, Ordering::SeqCst);
    assert_eq!(streams.info(&session()).await.unwrap().last_seq, 1);
    inner.failures.store(10, Ordering::SeqCst);
    streams.reset(&session()).await.unwrap();
    assert_eq!(streams.info(&session()).await.unwrap().first_seq, 0);
}

#[tokio::test]
async fn retries_time_out_and_the_error_contains_the_number_of_attempts() {
    let (_, streams) = unavailable(u32::MAX, ErrorCode::StoreUnavailable);
    let error = streams.info(&session()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(error.context().any(|(key, _)| key == "tries"), "{error}");
}

#[tokio::test]
async fn a_permanent_stream_failure_is_not_retried() {
    let (inner, streams) = unavailable(u32::MAX, ErrorCode::StoreCorrupt);
    streams.info(&session()).await.unwrap_err();
    assert_eq!(inner.failures.load(Ordering::SeqCst), u32::MAX - 1);
}

#[tokio::test]
async fn a_disconnected_reader_continues_after_its_last_chunk() {
    let (inner, streams) = unavailable(0, ErrorCode::StoreUnavailable);
    streams.append_chunks(batch_id(), &session(), None, vec![chunk(); 5]).await.unwrap();
    let mut reader = streams.read(&session(), 2).await.unwrap();
    for seq in 2..=5 {
        inner.failures.store(3, Ordering::SeqCst);
        assert_eq!(reader.next().await.unwrap().unwrap().seq, seq);
    }
}

#[tokio::test]
async fn a_reader_of_unavailable_streams_ends_with_their_error() {
    let (inner, streams) = unavailable(0, ErrorCode::StoreUnavailable);
    streams.append_chunks(batch_id(), &session(), None, vec![chunk(); 2]).await.unwrap();
    let mut reader = streams.read(&session(), 1).await.unwrap();
    reader.next().await.unwrap().unwrap();
    inner.failures.store(u32::MAX, Ordering::SeqCst);
    let error = reader.next().await.unwrap().unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(reader.next().await.is_none());
}
