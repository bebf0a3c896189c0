//! The stream manager.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{ChunkStream, StreamInfo, StreamManager, StreamOp, Written};

use crate::PostgresStore;
use crate::connections::carry_out;
use crate::error::located;
use crate::sql::{Schema, Sql};
use write::Memory;

mod batch;
mod body;
pub(crate) mod cache;
pub(crate) mod notify;
mod read;
mod row;
pub(crate) mod watch;
mod write;

/// The texts of all that is asked of streams.
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

/// The form in which chunks and attempts are kept.
fn json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(not_json)
}

fn not_json(error: serde_json::Error) -> Error {
    Error::new(ErrorCode::Internal, "a chunk cannot be written as JSON").with_source(error)
}

impl PostgresStore {
    /// Wakes the readers of a stream, wherever they are.
    fn wake(&self, session: &SessionId) {
        self.inner.watch.written(session);
        self.inner.notifier.written(session, &self.inner.connections);
    }

    /// Trims a stream that has become too long. That it fails hurts nobody: the next batch finds it longer still.
    async fn trim(&self, memory: &mut Memory) {
        let (statements, retention) = (&self.inner.streams.write, self.inner.stream_retention);
        let Some(mut known) = memory.known.take_if(|it| write::is_too_long(it, retention)) else {
            return;
        };
        let attempts = self.inner.connections.once();
        let trimmed = carry_out!(attempts, |connection| {
            write::trim(connection, statements, &mut known, retention)
        });
        match trimmed {
            Ok(()) => memory.known = Some(known),
            Err(error) => tracing::debug!(%error, "a stream could not be trimmed"),
        }
    }
}

#[async_trait]
impl StreamManager for PostgresStore {
    async fn write(&self, stream: &SessionId, batch: Vec<StreamOp>) -> Result<Written> {
        const OPERATION: &str = "stream::write";
        let batch = located(batch::Batch::new(batch), OPERATION, stream)?;
        // Of this process one writes a stream at a time, and goes on from what the one before knew. If this future is
        // dropped on the way, nothing is known any more.
        let entry = self.inner.cache.entry(stream);
        let mut kept = entry.lock().await;
        let mut memory = std::mem::take(&mut *kept);
        let (statements, writer) = (&self.inner.streams, self.inner.writer);
        let attempts = self.inner.connections.repeatedly();
        let written = carry_out!(attempts, |connection| {
            write::write(connection, statements, writer, stream, &batch, &mut memory)
        });
        let written = located(written, OPERATION, stream)?;
        self.wake(stream);
        self.trim(&mut memory).await;
        *kept = memory;
        Ok(written)
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
        let sql = &self.inner.streams.row;
        let attempts = self.inner.connections.repeatedly();
        let known = carry_out!(attempts, |connection| row::find(connection, sql, session));
        let known = located(known, "stream::info", session)?;
        Ok(known.map(|known| known.info(session)).unwrap_or_default())
    }

    async fn reset(&self, session: &SessionId) -> Result<()> {
        let statements = &self.inner.streams.write;
        let attempts = self.inner.connections.repeatedly();
        let reset =
            carry_out!(attempts, |connection| write::reset(connection, statements, session));
        located(reset, "stream::reset", session)?;
        self.wake(session);
        Ok(())
    }
}
