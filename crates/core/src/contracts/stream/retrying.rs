//! Streams with retries while their store is unavailable.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;

use super::{Batch, BatchReceipt, ChunkStream, StoredChunk, StreamInfo, StreamManager};
use crate::clock::{Clock, IdSource};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::retry_window::RetryWindow;
use crate::store::WriteQueue;

/// A stream manager that retries the operations of another manager while it is unavailable. It is
/// the counterpart of [`RetryingStore`](crate::store::RetryingStore) and uses the same retry
/// policy.
///
/// A batch is retried with the same id, so it is written only once. If a reader ends with a
/// [retryable](Error::is_retryable) error, it is replaced by another one that continues after the
/// last delivered chunk, as soon as the manager is available again.
///
/// # Cancel safety
/// Same as the wrapped manager: if a future is dropped, the operation may or may not have taken
/// place.
#[derive(Debug, Clone)]
pub struct RetryingStreams {
    inner: Arc<dyn StreamManager>,
    retry_window: RetryWindow,
}

impl RetryingStreams {
    /// Wraps `inner` and retries its operations for at most `timeout`. The ids are used for retry jitter.
    pub fn new(
        inner: Arc<dyn StreamManager>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
        timeout: Duration,
    ) -> Self {
        Self { inner, retry_window: RetryWindow::new(clock, ids, timeout) }
    }

    /// Opens another reader in place of a failed one, once the manager is available again. A reader
    /// may open without a response from the backend, so `info` is called first.
    async fn reopen(&self, error: Error, stream: &SessionId, cursor: u64) -> Result<ChunkStream> {
        let reopened = self.retry_window.retry_after_error(error, async || {
            self.inner.info(stream).await?;
            self.inner.read(stream, cursor).await
        });
        reopened.await
    }
}

/// A reader that continues after errors.
struct Reader {
    streams: RetryingStreams,
    stream: SessionId,
    /// The sequence number of the next chunk.
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
        self.retry_window.retry(|| self.inner.write(stream, batch.clone())).await
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        self.inner.write_queue()
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        let chunks = self.retry_window.retry(|| self.inner.read(stream, from)).await?;
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
        self.retry_window.retry(|| self.inner.info(stream)).await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.retry_window.retry(|| self.inner.reset(stream)).await
    }

    async fn forget(&self, stream: &SessionId, seen: &StreamInfo) -> Result<bool> {
        self.retry_window.retry(|| self.inner.forget(stream, seen)).await
    }
}
