//! Streams of a store that is asked again while it cannot answer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;

use super::{Batch, BatchReceipt, ChunkStream, StoredChunk, StreamInfo, StreamManager};
use crate::clock::{Clock, IdSource};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::patience::Patience;

/// The sibling of [`RetryingStore`](crate::store::RetryingStore) for streams: it repeats what another
/// manager could not answer, as patiently.
///
/// A batch is repeated under its id, and so written once. A reader whose stream ended with an error
/// that is [retryable](Error::is_retryable) is given another one behind the last chunk that it got,
/// as soon as the manager answers again.
///
/// # Cancel safety
/// As the manager's own: dropping a future leaves open whether the operation took place.
#[derive(Debug, Clone)]
pub struct RetryingStreams {
    inner: Arc<dyn StreamManager>,
    patience: Patience,
}

impl RetryingStreams {
    /// The streams, asked for so long. The ids are what jitter is made of.
    pub fn new(
        inner: Arc<dyn StreamManager>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
        patience: Duration,
    ) -> Self {
        Self { inner, patience: Patience::new(clock, ids, patience) }
    }

    /// Another reader in place of one that failed, once there is an answer again. A reader may begin
    /// without one, so that is asked for by itself.
    async fn reopen(&self, error: Error, stream: &SessionId, cursor: u64) -> Result<ChunkStream> {
        let reopened = self.patience.insist(error, async || {
            self.inner.info(stream).await?;
            self.inner.read(stream, cursor).await
        });
        reopened.await
    }
}

/// A reader that goes on.
struct Reader {
    streams: RetryingStreams,
    stream: SessionId,
    /// The next chunk that it wants.
    cursor: u64,
    chunks: ChunkStream,
}

impl Reader {
    async fn next(&mut self) -> Option<Result<StoredChunk>> {
        loop {
            match self.chunks.next().await? {
                Ok(chunk) => {
                    self.cursor = chunk.seq + 1;
                    return Some(Ok(chunk));
                }
                Err(error) => match self.streams.reopen(error, &self.stream, self.cursor).await {
                    Ok(chunks) => self.chunks = chunks,
                    Err(error) => return Some(Err(error)),
                },
            }
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StreamManager for RetryingStreams {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        self.patience.ask(|| self.inner.write(stream, batch.clone())).await
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        let chunks = self.patience.ask(|| self.inner.read(stream, from)).await?;
        let (streams, stream) = (self.clone(), stream.clone());
        let reader = Reader { streams, stream, cursor: from, chunks };
        let chunks = futures_util::stream::unfold(Some(reader), async |reader| {
            let mut reader = reader?;
            let chunk = reader.next().await?;
            let reader = chunk.is_ok().then_some(reader);
            Some((chunk, reader))
        });
        Ok(chunks.boxed())
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        self.patience.ask(|| self.inner.info(stream)).await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.patience.ask(|| self.inner.reset(stream)).await
    }

    async fn forget(&self, stream: &SessionId) -> Result<()> {
        self.patience.ask(|| self.inner.forget(stream)).await
    }
}
