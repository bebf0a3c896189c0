//! Streams of a broken store.

use async_trait::async_trait;
use helix_agents_core::error::Result;
use helix_agents_core::id::{BatchId, SessionId};
use helix_agents_core::stream::{Batch, ChunkStream, StreamInfo, StreamManager, Written};
use helix_agents_testkit::ids::batch_id;

use super::{Breakage, Broken};

impl Broken {
    fn streams(&self) -> &dyn StreamManager {
        &self.shared.streams
    }

    /// The id under which a batch is written: another one where it is not known again.
    fn known_as(&self, stream: &SessionId, batch: BatchId) -> BatchId {
        let Some(Breakage::Answers(kept)) = self.breakage() else { return batch };
        let mut written = self.shared.written.lock().unwrap();
        let batches = written.entry(stream.clone()).or_default();
        match batches.iter().position(|it| *it == batch) {
            None => {
                batches.push_front(batch);
                batch
            }
            Some(place) if place < kept => batch,
            Some(_) => batch_id(),
        }
    }
}

#[async_trait]
impl StreamManager for Broken {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<Written> {
        let stream = self.name(stream);
        let batch = Batch { id: self.known_as(&stream, batch.id), ..batch };
        self.streams().write(&stream, batch).await
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        self.streams().read(&self.name(stream), from).await
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        self.streams().info(&self.name(stream)).await
    }

    async fn forget(&self, stream: &SessionId) -> Result<()> {
        self.streams().forget(&self.name(stream)).await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.streams().reset(&self.name(stream)).await
    }
}
