//! A store that is away for a while: what is asked of it waits, is done once, and goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{
    Batch, BatchReceipt, Chunk, ChunkKind, ChunkStream, RetryingStreams, StreamInfo, StreamManager,
};
use helix_agents_store_memory::MemoryStore;
use helix_agents_testkit::ids::batch_id;

use crate::support::{Counting, NoWait};

/// Streams that fail so often, with this error, and then answer.
#[derive(Debug)]
struct Away {
    inner: MemoryStore,
    failures: AtomicU32,
    code: ErrorCode,
}

impl Away {
    fn answer(&self) -> Result<()> {
        let left =
            self.failures.try_update(Ordering::SeqCst, Ordering::SeqCst, |it| it.checked_sub(1));
        left.map_or(Ok(()), |_| Err(Error::new(self.code, "as arranged")))
    }
}

#[async_trait]
impl StreamManager for Away {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        self.answer()?;
        self.inner.write(stream, batch).await
    }

    /// Readers begin without an answer, and end after one chunk.
    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        let chunks = StreamManager::read(&self.inner, stream, from).await?;
        let error = Error::new(self.code, "as arranged");
        Ok(chunks.take(1).chain(futures_util::stream::once(async { Err(error) })).boxed())
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        self.answer()?;
        self.inner.info(stream).await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.answer()?;
        self.inner.reset(stream).await
    }

    async fn forget(&self, stream: &SessionId) -> Result<()> {
        self.answer()?;
        self.inner.forget(stream).await
    }
}

/// Such streams, asked for a minute.
fn away(failures: u32, code: ErrorCode) -> (Arc<Away>, Arc<dyn StreamManager>) {
    let (inner, failures) = (MemoryStore::new(), AtomicU32::new(failures));
    let away = Arc::new(Away { inner, failures, code });
    let (clock, ids) = (Arc::<NoWait>::default(), Arc::<Counting>::default());
    let asked = Arc::<Away>::clone(&away);
    let patient = RetryingStreams::new(asked, clock, ids, Duration::from_secs(60));
    (away, Arc::new(patient))
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
        kind: ChunkKind::RunStarted,
    }
}

#[tokio::test]
async fn what_fails_in_passing_is_asked_again() {
    let (away, streams) = away(10, ErrorCode::StoreUnavailable);
    assert_eq!(streams.append(batch_id(), &session(), None, vec![chunk()]).await.unwrap(), 1);
    away.failures.store(10, Ordering::SeqCst);
    assert_eq!(streams.info(&session()).await.unwrap().last_seq, 1);
    away.failures.store(10, Ordering::SeqCst);
    streams.reset(&session()).await.unwrap();
    assert_eq!(streams.info(&session()).await.unwrap().first_seq, 0);
}

#[tokio::test]
async fn patience_ends_and_says_how_often_it_asked() {
    let (_, streams) = away(u32::MAX, ErrorCode::StoreUnavailable);
    let error = streams.info(&session()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(error.context().any(|(key, _)| key == "tries"), "{error}");
}

#[tokio::test]
async fn what_would_fail_again_is_asked_once() {
    let (away, streams) = away(u32::MAX, ErrorCode::StoreCorrupt);
    streams.info(&session()).await.unwrap_err();
    assert_eq!(away.failures.load(Ordering::SeqCst), u32::MAX - 1);
}

#[tokio::test]
async fn a_reader_that_is_cut_off_goes_on_behind_what_it_got() {
    let (away, streams) = away(0, ErrorCode::StoreUnavailable);
    streams.append(batch_id(), &session(), None, vec![chunk(); 5]).await.unwrap();
    let mut reader = streams.read(&session(), 2).await.unwrap();
    for seq in 2..=5 {
        away.failures.store(3, Ordering::SeqCst);
        assert_eq!(reader.next().await.unwrap().unwrap().seq, seq);
    }
}

#[tokio::test]
async fn a_reader_of_streams_that_stay_away_ends_with_their_error() {
    let (away, streams) = away(0, ErrorCode::StoreUnavailable);
    streams.append(batch_id(), &session(), None, vec![chunk(); 2]).await.unwrap();
    let mut reader = streams.read(&session(), 1).await.unwrap();
    reader.next().await.unwrap().unwrap();
    away.failures.store(u32::MAX, Ordering::SeqCst);
    let error = reader.next().await.unwrap().unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(reader.next().await.is_none());
}
