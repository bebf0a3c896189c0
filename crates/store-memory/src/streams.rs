//! The stream manager: all streams and their readers.

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

/// Streams by the session that they belong to. One lock guards the table and is held only for
/// lookups. Each stream has a lock of its own.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    clock: StoreClock,
    options: MemoryOptions,
    table: RwLock<HashMap<SessionId, Arc<StreamEntry>>>,
}

/// A table entry. It exists while the stream is kept or has readers, and wakes these readers.
#[derive(Debug, Default)]
struct StreamEntry {
    slot: Mutex<Slot>,
    written: Notify,
}

#[derive(Debug, Default)]
struct Slot {
    /// The stream. `None` before the first batch and after the stream was forgotten.
    stream: Option<Stream>,
    /// The number of streams of this session that were forgotten while this entry existed.
    forgotten: u64,
}

impl StreamEntry {
    // Ignoring poison is safe: a panic under this lock is a bug in this crate and has already been
    // reported.
    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Streams {
    pub(crate) fn new(options: MemoryOptions, clock: StoreClock) -> Self {
        Self { clock, options, ..Self::default() }
    }

    fn find(&self, session: &SessionId) -> Option<Arc<StreamEntry>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.get(session).cloned()
    }

    fn find_or_create(&self, session: &SessionId) -> Arc<StreamEntry> {
        self.find(session).unwrap_or_else(|| {
            let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(table.entry(session.clone()).or_default())
        })
    }

    /// Removes the streams of the given sessions. Their readers wait for the next stream of the
    /// same session.
    pub(crate) fn forget(&self, sessions: &[SessionId]) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        for session in sessions {
            Self::remove_stream(&mut table, session, |_| true);
        }
    }

    /// Removes the stream if its info equals `seen`. Returns `false` if it is kept.
    fn forget_if(&self, session: &SessionId, seen: &StreamInfo) -> bool {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        Self::remove_stream(&mut table, session, |stream| stream.info() == *seen)
    }

    /// Removes a stream if `condition` holds. Returns `false` if it is kept.
    fn remove_stream(
        table: &mut HashMap<SessionId, Arc<StreamEntry>>,
        session: &SessionId,
        condition: impl FnOnce(&Stream) -> bool,
    ) -> bool {
        let Some(entry) = table.get(session) else { return true };
        let mut slot = entry.lock();
        if slot.stream.as_ref().is_some_and(|stream| !condition(stream)) {
            return false;
        }
        if slot.stream.take().is_some() {
            slot.forgotten += 1;
        }
        drop(slot);
        entry.written.notify_waiters();
        Self::remove_unused(table, session, 1);
        true
    }

    /// Removes an entry without a stream if it has at most `holders` strong references. The table
    /// is locked, so no other caller can find the entry in the meantime.
    fn remove_unused(
        table: &mut HashMap<SessionId, Arc<StreamEntry>>,
        session: &SessionId,
        holders: usize,
    ) {
        let unused = |entry: &Arc<StreamEntry>| {
            Arc::strong_count(entry) <= holders && entry.lock().stream.is_none()
        };
        if table.get(session).is_some_and(unused) {
            table.remove(session);
        }
    }

    /// Changes a stream and wakes its readers.
    fn write<T>(&self, session: &SessionId, work: impl FnOnce(&mut Stream, usize) -> T) -> T {
        let entry = self.find_or_create(session);
        let retention = usize::try_from(self.options.stream_retention).unwrap_or(usize::MAX);
        let result = work(entry.lock().stream.get_or_insert_default(), retention);
        entry.written.notify_waiters();
        result
    }
}

/// A stream reader and its cursor.
struct Reader {
    store: MemoryStore,
    entry: Arc<StreamEntry>,
    session: SessionId,
    cursor: u64,
    /// The number of streams that were forgotten before the one that the reader last saw. `None` if
    /// it has not seen a stream.
    seen: Option<u64>,
}

impl Reader {
    async fn next(&mut self) -> StoredChunk {
        let entry = Arc::clone(&self.entry);
        loop {
            // Register for notification before reading, so that a later write wakes this reader.
            let written = entry.written.notified();
            if let Some(chunk) = self.poll_chunk(&entry.lock()) {
                return chunk;
            }
            written.await;
        }
    }

    fn poll_chunk(&mut self, slot: &Slot) -> Option<StoredChunk> {
        let now = self.store.inner.streams.clock.now();
        let Some(stream) = &slot.stream else {
            return Stream::default().next(&self.session, &mut self.cursor, now);
        };
        let is_new_stream =
            self.seen.replace(slot.forgotten).is_some_and(|seen| seen != slot.forgotten);
        if is_new_stream && self.cursor > 1 {
            return Some(stream.restart(&self.session, &mut self.cursor, now));
        }
        stream.next(&self.session, &mut self.cursor, now)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut table =
            self.store.inner.streams.table.write().unwrap_or_else(PoisonError::into_inner);
        // The two remaining references are the table's and this reader's.
        Streams::remove_unused(&mut table, &self.session, 2);
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
            entry: self.inner.streams.find_or_create(session),
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
        let entry = self.inner.streams.find(session);
        let info = entry.and_then(|entry| entry.lock().stream.as_ref().map(Stream::info));
        Ok(info.unwrap_or_default())
    }

    async fn reset(&self, session: &SessionId) -> Result<()> {
        if let Some(entry) = self.inner.streams.find(session) {
            if let Some(stream) = &mut entry.lock().stream {
                stream.reset();
            }
            entry.written.notify_waiters();
        }
        Ok(())
    }

    async fn forget(&self, session: &SessionId, seen: &StreamInfo) -> Result<bool> {
        Ok(self.inner.streams.forget_if(session, seen))
    }
}

#[cfg(test)]
mod tests;
