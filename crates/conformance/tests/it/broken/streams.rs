//! The stream manager of a broken store.

use std::collections::HashMap;

use async_trait::async_trait;
use helix_agents_conformance::ids::batch_id;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::Result;
use helix_agents_core::id::{BatchId, SessionId};
use helix_agents_core::store::WriteQueue;
use helix_agents_core::stream::{
    Batch, BatchReceipt, ChunkStream, StreamInfo, StreamManager, StreamOp, Writer,
};

use super::{Breakage, Broken, Mistake};

impl Broken {
    fn streams(&self) -> &dyn StreamManager {
        &self.shared.streams
    }

    /// Returns the id under which a batch is written: a new one if the batch is not to be recognised.
    fn known_as(&self, stream: &SessionId, batch: BatchId) -> BatchId {
        let Some(Breakage::Answers(kept)) = self.breakage() else { return batch };
        let mut written = self.shared.written.lock().unwrap();
        let batches = written.entry(stream.clone()).or_default();
        match batches.iter().position(|other| *other == batch) {
            None => {
                batches.push_front(batch);
                batch
            }
            Some(place) if place < kept => batch,
            Some(_) => batch_id(),
        }
    }

    /// Returns the writer for which a batch's writer is mistaken, or `None` if it counts as superseded.
    fn writer(&self, stream: &SessionId, batch: &Batch) -> Option<Writer> {
        let Writer { session, created_at, fencing_token } = batch.writer.clone();
        let Some(Breakage::Writers(mistake)) = self.breakage() else {
            return Some(batch.writer.clone());
        };
        let shares = mistake == Mistake::SessionsShareToken;
        let key = (stream.clone(), if shares { stream.clone() } else { session.clone() });
        let greatest = |tokens: &mut HashMap<_, u64>| -> u64 {
            let greatest = tokens.entry(key.clone()).or_default();
            std::mem::replace(greatest, fencing_token.max(*greatest))
        };
        let known = greatest(&mut self.shared.tokens.lock().unwrap());
        let own = greatest(&mut self.tokens.lock().unwrap());
        let begins = batch.ops.iter().any(|op| matches!(op, StreamOp::Begin { .. }));
        let marks = batch.ops.iter().any(|op| matches!(op, StreamOp::Watermark(_)));
        let later = fencing_token.max(known);
        let fencing_token = match mistake {
            Mistake::TokensIgnored => 0,
            Mistake::OthersUnknown if fencing_token >= own => later,
            Mistake::ChunksTaken if !begins && !marks => later,
            Mistake::TriesTaken if begins => later,
            Mistake::MarksTaken if marks => later,
            Mistake::MarksSupersedeNothing if marks => known,
            Mistake::TriesSupersedeNothing if begins => 0,
            Mistake::HandlesAreRuns => fencing_token * 100 + u64::from(self.number),
            Mistake::SessionsShareToken | Mistake::TokensKept if fencing_token < known => {
                return None;
            }
            _ => fencing_token,
        };
        let of_op = batch.ops.iter().find_map(|op| match op {
            StreamOp::Begin { origin, .. } => Some(&origin.session),
            StreamOp::Watermark(mark) => Some(&mark.origin.session),
            StreamOp::Chunks { .. } => None,
        });
        let session = match mistake {
            Mistake::SessionsUnchecked => of_op.cloned().unwrap_or(session),
            _ => session,
        };
        let created_at = match mistake {
            Mistake::CreationIgnored => Timestamp(0),
            _ => created_at,
        };
        Some(Writer { session, created_at, fencing_token })
    }
}

#[async_trait]
impl StreamManager for Broken {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        if self.claimed_queue().is_some() {
            tokio::task::yield_now().await;
        }
        let stream = self.name(stream);
        let Some(writer) = self.writer(&stream, &batch) else {
            let last_seq = self.streams().info(&stream).await?.last_seq;
            return Ok(BatchReceipt { last_seq, is_superseded: true, ..BatchReceipt::default() });
        };
        let batch = Batch { id: self.known_as(&stream, batch.id), writer, ..batch };
        self.streams().write(&stream, batch).await
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        self.claimed_queue()
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        self.streams().read(&self.name(stream), from).await
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        self.streams().info(&self.name(stream)).await
    }

    async fn forget(&self, stream: &SessionId, seen: &StreamInfo) -> Result<bool> {
        let stream = self.name(stream);
        if let Some(Breakage::ForgetsChanged) = self.breakage() {
            let seen = self.streams().info(&stream).await?;
            return self.streams().forget(&stream, &seen).await;
        }
        self.streams().forget(&stream, seen).await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.streams().reset(&self.name(stream)).await
    }
}
