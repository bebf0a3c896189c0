//! The stream manager.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use rusqlite::Connection;

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::store::WriteQueue;
use helix_agents_core::stream::{Batch, BatchReceipt, ChunkStream, StreamInfo, StreamManager};

use crate::error::{Failure, of_session};
use crate::prepared::Tables;
use crate::writer::Durability;
use crate::{SqliteStore, lock};

mod read;
pub(crate) mod row;
mod saved_attempts;
pub(crate) mod watch;
pub(crate) mod write;

impl SqliteStore {
    /// Changes a stream and wakes its readers.
    async fn write_stream<T: Send + 'static>(
        &self,
        operation: &'static str,
        session: &SessionId,
        work: impl FnMut(&mut Tables<'_>) -> Result<T, Failure> + Send + 'static,
        then: impl FnOnce(&T) + Send + 'static,
    ) -> Result<T> {
        let (watch, of) = (Arc::clone(&self.inner.watch), session.clone());
        let then = move |result: &T| {
            then(result);
            watch.written(&of);
        };
        self.inner
            .writer
            .run(Durability::Process, work, then)
            .await
            .map_err(|error| of_session(error, session).with_operation(operation))
    }
}

#[async_trait]
impl StreamManager for SqliteStore {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        const OPERATION: &str = "stream::write";
        let id = batch.id;
        let pending = self.inner.receipts.register(stream, id);
        let prepared = match write::Prepared::new(batch) {
            Ok(prepared) => prepared,
            Err(error) => {
                return pending.complete(Err(of_session(error, stream).with_operation(OPERATION)));
            }
        };
        let (of, retention) = (stream.clone(), self.inner.stream_retention);
        // The writing thread looks up and records the receipt, because the caller may be dropped in
        // between.
        let (known, receipts) = (pending.cached(), pending.cached());
        let write = move |tables: &mut Tables<'_>| match lock(&known).find(id) {
            Some(written) => Ok(written.clone()),
            None => write::write(tables, &of, &prepared, retention),
        };
        let note = move |written: &BatchReceipt| {
            let mut receipts = lock(&receipts);
            if receipts.find(id).is_none() {
                receipts.insert(id, written.clone());
            }
        };
        pending.complete(self.write_stream(OPERATION, stream, write, note).await)
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        Some(self.inner.write_queue)
    }

    async fn read(&self, session: &SessionId, from: u64) -> Result<ChunkStream> {
        let reader = read::Reader::new(self.clone(), session, from)?;
        let chunks = futures_util::stream::unfold(Some(reader), async |reader| {
            let mut reader = reader?;
            match reader.next().await {
                Ok(chunk) => Some((Ok(chunk), Some(reader))),
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(chunks.boxed())
    }

    async fn info(&self, session: &SessionId) -> Result<StreamInfo> {
        let of = session.clone();
        let info = move |connection: &mut Connection| read::info(connection, &of);
        let result = self.inner.readers.run(info).await;
        result.map_err(|error| of_session(error, session).with_operation("stream::info"))
    }

    async fn reset(&self, session: &SessionId) -> Result<()> {
        let of = session.clone();
        self.write_stream(
            "stream::reset",
            session,
            move |tables| write::reset(tables, &of),
            |&()| (),
        )
        .await
    }

    async fn forget(&self, session: &SessionId, seen: &StreamInfo) -> Result<bool> {
        let (of, seen) = (session.clone(), seen.clone());
        self.write_stream(
            "stream::forget",
            session,
            move |tables| write::forget_if(tables, &of, &seen),
            |_| (),
        )
        .await
    }
}
