//! Streams. The memory store implements them, because the contract does not require streams to
//! survive the process.

use async_trait::async_trait;
use helix_agents::error::Result;
use helix_agents::id::SessionId;
use helix_agents::store::WriteQueue;
use helix_agents::stream::{Batch, BatchReceipt, ChunkStream, StreamInfo, StreamManager};

use super::FileStore;

impl FileStore {
    fn streams(&self) -> &dyn StreamManager {
        &self.streams
    }

    /// Deletes the streams of deleted sessions.
    pub(crate) async fn forget_streams(&self, deleted: &[SessionId]) -> Result<()> {
        for session in deleted {
            let info = self.streams().info(session).await?;
            self.streams().forget(session, &info).await?;
        }
        Ok(())
    }
}

#[deny(clippy::missing_trait_methods, reason = "a wrapper forwards every method")]
#[async_trait]
impl StreamManager for FileStore {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        self.streams().write(stream, batch).await
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        self.streams().write_queue()
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        self.streams().read(stream, from).await
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        self.streams().info(stream).await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.streams().reset(stream).await
    }

    async fn forget(&self, stream: &SessionId, seen: &StreamInfo) -> Result<bool> {
        self.streams().forget(stream, seen).await
    }
}
