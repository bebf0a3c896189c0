//! The stream manager.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{
    Batch, BatchReceipt, CacheEntry, CachedStream, ChunkStream, Encoded, StreamInfo, StreamManager,
    write_shared,
};

use crate::PostgresStore;
use crate::connections::drive;
use crate::detached::detached;
use crate::error::located;
use crate::sql::{Schema, Sql};
use crate::state::delete;

pub(crate) mod notify;
mod read;
mod row;
pub(crate) mod watch;
pub(crate) mod write;

/// The statements on streams.
#[derive(Debug)]
pub(crate) struct Statements {
    read: read::Statements,
    write: write::Statements,
    row: Sql,
}

impl Statements {
    pub(crate) fn new(schema: &Schema) -> Self {
        Self {
            read: read::Statements::new(schema),
            write: write::Statements::new(schema),
            row: row::statement(schema),
        }
    }
}

impl PostgresStore {
    /// Wakes the readers of a stream in all processes.
    pub(crate) fn wake(&self, session: &SessionId) {
        self.inner.watch.written(session);
        self.inner.notifier.written(session, &self.inner.connections);
    }

    async fn write_batch(
        &self,
        entry: &tokio::sync::Mutex<CacheEntry>,
        stream: &SessionId,
        batch: &Batch,
    ) -> Result<BatchReceipt> {
        const OPERATION: &str = "stream::write";
        let encoded = located(Encoded::new(&batch.ops), OPERATION, stream)?;
        // Within this process, writes to a stream are serialized. Each write continues from the
        // cached state of the previous one.
        let mut entry = entry.lock().await;
        let shared = write::Stream {
            connections: &self.inner.connections,
            statements: &self.inner.streams,
            writes: &self.inner.writes,
            session: stream,
            encoded: &encoded,
        };
        let written = write_shared(shared, &mut entry, batch).await;
        let written = located(written, OPERATION, stream)?;
        self.wake(stream);
        self.trim(stream, &mut entry).await;
        Ok(written)
    }

    /// Trims a stream that exceeds its retention. A failure is harmless: the next batch tries
    /// again.
    async fn trim(&self, session: &SessionId, entry: &mut CacheEntry) {
        let (statements, retention) = (&self.inner.streams.write, self.inner.stream_retention);
        let Some(mut known) = entry.known.take_if(|known| write::is_too_long(known, retention))
        else {
            return;
        };
        let trimmed = drive!(self.inner.connections, |connection| {
            write::trim(connection, statements, session, &mut known, retention)
        });
        match trimmed {
            Ok(()) => entry.known = Some(known),
            Err(error) => tracing::debug!(%error, "a stream could not be trimmed"),
        }
    }
}

#[async_trait]
impl StreamManager for PostgresStore {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        let pending = self.inner.stream_cache.register(stream, batch.id);
        let (store, entry, stream) = (self.clone(), pending.cached(), stream.clone());
        let written = detached(async move { store.write_batch(&entry, &stream, &batch).await });
        pending.complete(written.await)
    }

    async fn read(&self, session: &SessionId, from: u64) -> Result<ChunkStream> {
        let subscription = self.inner.watch.subscribe(session)?;
        let reader = read::Reader::new(Arc::clone(&self.inner), subscription, session, from);
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
        let (inner, session) = (Arc::clone(&self.inner), session.clone());
        let lookup = async move {
            let sql = &inner.streams.row;
            let known =
                drive!(inner.connections, |connection| row::find(connection, sql, &session));
            let CachedStream { state, trimmed, .. } = located(known, "stream::info", &session)?;
            Ok(state.info(trimmed))
        };
        detached(lookup).await
    }

    async fn reset(&self, session: &SessionId) -> Result<()> {
        let (store, session) = (self.clone(), session.clone());
        let reset = async move {
            let statements = &store.inner.streams.write;
            let reset = drive!(store.inner.connections, |connection| write::reset(
                connection, statements, &session
            ));
            located(reset, "stream::reset", &session)?;
            store.wake(&session);
            Ok(())
        };
        detached(reset).await
    }

    async fn forget(&self, session: &SessionId, seen: &StreamInfo) -> Result<bool> {
        let (store, session, seen) = (self.clone(), session.clone(), seen.clone());
        let forget = async move {
            let (row, statements) = (&store.inner.streams.row, &store.inner.state.delete);
            let known =
                drive!(store.inner.connections, |connection| row::find(connection, row, &session));
            let CachedStream { state, trimmed, revision, .. } =
                located(known, "stream::forget", &session)?;
            let info = state.info(trimmed);
            if info.is_empty() || info != seen {
                return Ok(info.is_empty());
            }
            let forgotten = drive!(store.inner.connections, |connection| {
                delete::forget_stream(connection, statements, &session, revision)
            });
            let forgotten = located(forgotten, "stream::forget", &session)?;
            store.wake(&session);
            Ok(forgotten)
        };
        detached(forget).await
    }
}
