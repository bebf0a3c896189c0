//! All streams: the stream manager, and its readers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use tokio::sync::Notify;

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{
    Batch, ChunkStream, StoredChunk, StreamInfo, StreamManager, Written,
};

use crate::clock::StoreClock;
use crate::stream::Stream;
use crate::{MemoryOptions, MemoryStore};

/// Streams by the session they belong to. A lock for the table, held only to look up, and one per
/// stream.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    clock: StoreClock,
    options: MemoryOptions,
    table: RwLock<HashMap<SessionId, Arc<Live>>>,
}

/// A stream, and a way to wake its readers.
#[derive(Debug, Default)]
struct Live {
    stream: Mutex<Stream>,
    written: Notify,
}

impl Live {
    // A panic under this lock is a bug of ours that has been reported already.
    fn lock(&self) -> MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Streams {
    pub(crate) fn new(options: MemoryOptions, clock: StoreClock) -> Self {
        Self { clock, options, ..Self::default() }
    }

    fn find(&self, session: &SessionId) -> Option<Arc<Live>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.get(session).cloned()
    }

    fn find_or_begin(&self, session: &SessionId) -> Arc<Live> {
        self.find(session).unwrap_or_else(|| {
            let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(table.entry(session.clone()).or_default())
        })
    }

    /// Takes streams out. Who reads one waits on.
    pub(crate) fn forget(&self, sessions: &[SessionId]) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        for session in sessions {
            table.remove(session);
        }
    }

    /// Changes a stream and wakes its readers.
    fn write<T>(&self, session: &SessionId, work: impl FnOnce(&mut Stream, usize) -> T) -> T {
        let live = self.find_or_begin(session);
        let retention = usize::try_from(self.options.stream_retention).unwrap_or(usize::MAX);
        let result = work(&mut live.lock(), retention);
        live.written.notify_waiters();
        result
    }
}

/// A reader: which chunk of which stream it wants next.
struct Reader {
    live: Arc<Live>,
    session: SessionId,
    cursor: u64,
    clock: StoreClock,
}

impl Reader {
    async fn next(&mut self) -> StoredChunk {
        loop {
            // Made before looking, so that a write after the look wakes it.
            let written = self.live.written.notified();
            let next = self.live.lock().next(&self.session, &mut self.cursor, self.clock.now());
            if let Some(chunk) = next {
                return chunk;
            }
            written.await;
        }
    }
}

#[async_trait]
impl StreamManager for MemoryStore {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<Written> {
        self.inner
            .streams
            .write(stream, |stream, retention| stream.write(&batch, retention))
            .map_err(|error| error.with_operation("stream::write").with_context("session", stream))
    }

    async fn read(&self, session: &SessionId, from: u64) -> Result<ChunkStream> {
        let reader = Reader {
            live: self.inner.streams.find_or_begin(session),
            session: session.clone(),
            cursor: from.max(1),
            clock: self.inner.streams.clock.clone(),
        };
        let chunks = futures_util::stream::unfold(reader, async |mut reader| {
            let chunk = reader.next().await;
            Some((Ok(chunk), reader))
        });
        Ok(chunks.boxed())
    }

    async fn info(&self, session: &SessionId) -> Result<StreamInfo> {
        let live = self.inner.streams.find(session);
        Ok(live.map_or_else(StreamInfo::default, |it| it.lock().info()))
    }

    async fn reset(&self, session: &SessionId) -> Result<()> {
        if self.inner.streams.find(session).is_some() {
            self.inner.streams.write(session, |stream, _| stream.reset());
        }
        Ok(())
    }
}
