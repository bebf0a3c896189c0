//! All streams: the stream manager, and its readers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use tokio::sync::Notify;

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{
    Batch, BatchReceipt, ChunkStream, StoredChunk, StreamInfo, StreamManager,
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

/// The place of a stream, which is there while the stream is kept or read, and a way to wake its
/// readers.
#[derive(Debug, Default)]
struct Live {
    slot: Mutex<Slot>,
    written: Notify,
}

#[derive(Debug, Default)]
struct Slot {
    /// `None` before the first batch, and once it was forgotten.
    stream: Option<Stream>,
    /// How many streams of the session were forgotten here.
    forgotten: u64,
}

impl Live {
    // A panic under this lock is a bug of ours that has been reported already.
    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Takes streams out. Their readers wait for the next ones of these sessions.
    pub(crate) fn forget(&self, sessions: &[SessionId]) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        for session in sessions {
            let Some(live) = table.get(session) else { continue };
            let mut slot = live.lock();
            if slot.stream.take().is_some() {
                slot.forgotten += 1;
            }
            drop(slot);
            live.written.notify_waiters();
            Self::tidy(&mut table, session, 1);
        }
    }

    /// Removes a place that has no stream, if only so many hold it: no other caller can find it
    /// meanwhile.
    fn tidy(table: &mut HashMap<SessionId, Arc<Live>>, session: &SessionId, holders: usize) {
        let unused =
            |live: &Arc<Live>| Arc::strong_count(live) <= holders && live.lock().stream.is_none();
        if table.get(session).is_some_and(unused) {
            table.remove(session);
        }
    }

    /// Changes a stream and wakes its readers.
    fn write<T>(&self, session: &SessionId, work: impl FnOnce(&mut Stream, usize) -> T) -> T {
        let live = self.find_or_begin(session);
        let retention = usize::try_from(self.options.stream_retention).unwrap_or(usize::MAX);
        let result = work(live.lock().stream.get_or_insert_default(), retention);
        live.written.notify_waiters();
        result
    }
}

/// A reader: which chunk of which stream it wants next.
struct Reader {
    store: MemoryStore,
    live: Arc<Live>,
    session: SessionId,
    cursor: u64,
    /// How many streams were forgotten before the one that it has seen; `None` if it has seen none.
    seen: Option<u64>,
}

impl Reader {
    async fn next(&mut self) -> StoredChunk {
        let live = Arc::clone(&self.live);
        loop {
            // Made before looking, so that a write after the look wakes it.
            let written = live.written.notified();
            if let Some(chunk) = self.look(&live.lock()) {
                return chunk;
            }
            written.await;
        }
    }

    fn look(&mut self, slot: &Slot) -> Option<StoredChunk> {
        let now = self.store.inner.streams.clock.now();
        let Some(stream) = &slot.stream else {
            return Stream::default().next(&self.session, &mut self.cursor, now);
        };
        let is_next = self.seen.replace(slot.forgotten).is_some_and(|it| it != slot.forgotten);
        if is_next && self.cursor > 1 {
            return Some(stream.begin_anew(&self.session, &mut self.cursor, now));
        }
        stream.next(&self.session, &mut self.cursor, now)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut table =
            self.store.inner.streams.table.write().unwrap_or_else(PoisonError::into_inner);
        // The table and this reader.
        Streams::tidy(&mut table, &self.session, 2);
    }
}

#[async_trait]
impl StreamManager for MemoryStore {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        self.inner
            .streams
            .write(stream, |stream, retention| stream.write(&batch, retention))
            .map_err(|error| error.with_operation("stream::write").with_context("session", stream))
    }

    async fn read(&self, session: &SessionId, from: u64) -> Result<ChunkStream> {
        let reader = Reader {
            store: self.clone(),
            live: self.inner.streams.find_or_begin(session),
            session: session.clone(),
            cursor: from.max(1),
            seen: None,
        };
        let chunks = futures_util::stream::unfold(reader, async |mut reader| {
            let chunk = reader.next().await;
            Some((Ok(chunk), reader))
        });
        Ok(chunks.boxed())
    }

    async fn info(&self, session: &SessionId) -> Result<StreamInfo> {
        let live = self.inner.streams.find(session);
        let info = live.and_then(|it| it.lock().stream.as_ref().map(Stream::info));
        Ok(info.unwrap_or_default())
    }

    async fn reset(&self, session: &SessionId) -> Result<()> {
        if let Some(live) = self.inner.streams.find(session) {
            if let Some(stream) = &mut live.lock().stream {
                stream.reset();
            }
            live.written.notify_waiters();
        }
        Ok(())
    }

    async fn forget(&self, session: &SessionId) -> Result<()> {
        self.inner.streams.forget(std::slice::from_ref(session));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
