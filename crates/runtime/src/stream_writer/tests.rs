//! Writes between and during effects.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::stream::{
    Batch, BatchReceipt, ChunkKind, ChunkStream, StreamInfo, StreamManager, Writer,
};
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::ScriptedLlm;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{BATCH_TIME, StreamWriter};
use crate::settings::Settings;

/// Streams that refuse writes while `is_down` is set, and take `delay_ms` for each write.
#[derive(Debug, Default)]
struct Streams {
    store: MemoryStore,
    is_down: AtomicBool,
    delay_ms: AtomicU64,
}

#[async_trait]
impl StreamManager for Streams {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        sleep(Duration::from_millis(self.delay_ms.load(Ordering::Relaxed))).await;
        if self.is_down.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorCode::StoreUnavailable, "as arranged"));
        }
        self.store.write(stream, batch).await
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        StreamManager::read(&self.store, stream, from).await
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        self.store.info(stream).await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.store.reset(stream).await
    }

    async fn forget(&self, stream: &SessionId, seen: &StreamInfo) -> Result<bool> {
        self.store.forget(stream, seen).await
    }
}

fn writer(streams: &Arc<Streams>) -> StreamWriter {
    let settings = Settings {
        store: Some(Arc::new(MemoryStore::new())),
        streams: Some(Arc::clone(streams) as Arc<dyn StreamManager>),
        llm: Some(Arc::new(ScriptedLlm::new([]))),
        store_retry_timeout: Some(Duration::ZERO),
        ..Settings::default()
    };
    let session = SessionId::from("s");
    let writer = Writer { session: session.clone(), created_at: Timestamp(1), fencing_token: 2 };
    let context = settings.context().unwrap();
    StreamWriter::new(&context, session, "a".into(), writer, RunId::from("r".to_owned()))
}

async fn last_seq(streams: &Streams) -> u64 {
    streams.info(&SessionId::from("s")).await.unwrap().last_seq
}

fn chunk(version: u64) -> ChunkKind {
    ChunkKind::Checkpoint { version }
}

/// The first chunk wakes the pump of an effect that ends before the chunk is written. No chunk wakes the pump of the next
/// effect.
#[tokio::test(start_paused = true)]
async fn an_effect_retries_the_write_that_failed_before_it() {
    let streams = Arc::<Streams>::default();
    let writer = writer(&streams);
    writer.show(None, 0, chunk(1));
    writer.while_pumping(pin!(sleep(BATCH_TIME / 3))).await;
    writer.show(None, 0, chunk(2));
    streams.is_down.store(true, Ordering::Relaxed);
    writer.flush().await;
    streams.is_down.store(false, Ordering::Relaxed);
    assert_eq!(last_seq(&streams).await, 0, "the write was refused");
    writer.while_pumping(pin!(sleep(BATCH_TIME * 2))).await;
    assert_eq!(last_seq(&streams).await, 2);
}

#[tokio::test(start_paused = true)]
async fn the_rest_is_written_after_the_end_unless_it_is_stopped() {
    for (is_stopped, expected) in [(true, 0), (false, 1)] {
        let streams = Arc::<Streams>::default();
        let writer = writer(&streams);
        streams.delay_ms.store(5000, Ordering::Relaxed);
        writer.show(None, 0, chunk(1));
        assert!(!writer.close().await, "the stream was too slow");
        let stop = CancellationToken::new();
        if is_stopped {
            stop.cancel();
        }
        writer.clone().write_rest(stop).await;
        assert_eq!(last_seq(&streams).await, expected);
        assert_eq!(writer.close().await, !is_stopped);
    }
}

#[tokio::test(start_paused = true)]
async fn chunks_are_written_during_a_long_effect() {
    let streams = Arc::<Streams>::default();
    let writer = writer(&streams);
    let effect = async {
        for version in 1..=3 {
            writer.show(None, 0, chunk(version));
            sleep(BATCH_TIME * 2).await;
            assert_eq!(last_seq(&streams).await, version);
        }
    };
    writer.while_pumping(pin!(effect)).await;
}
