//! The cache of a store handle for the streams that it writes, for authors of stores.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::CachedStream;
use crate::contracts::stream::BatchReceipt;
use crate::error::{Error, Result};
use crate::id::{BatchId, SessionId};

/// The receipts of the last batches of one stream, for retries.
#[derive(Debug, Default)]
pub struct Receipts {
    /// The batches, newest first. Every write searches them, so they are kept apart from the larger receipts.
    batches: VecDeque<BatchId>,
    receipts: VecDeque<BatchReceipt>,
}

impl Receipts {
    /// The maximum number of receipts.
    pub const KEPT: usize = 64;

    /// Returns the receipt of this batch, if it is one of the last ones.
    #[must_use]
    pub fn find(&self, batch: BatchId) -> Option<&BatchReceipt> {
        let index = self.batches.iter().position(|id| *id == batch)?;
        self.receipts.get(index)
    }

    /// Stores the receipt of this batch.
    pub fn insert(&mut self, batch: BatchId, written: BatchReceipt) {
        self.batches.truncate(Self::KEPT - 1);
        self.receipts.truncate(Self::KEPT - 1);
        self.batches.push_front(batch);
        self.receipts.push_front(written);
    }
}

/// The per-stream cache of a store handle. Each entry `T` serves one writer at a time.
///
/// A batch that was not [completed](PendingBatch::complete) may be retried, so entries with such a
/// batch are kept longer: about [`KEPT_OPEN`](Self::KEPT_OPEN) of them, in addition to about
/// [`KEPT`](Self::KEPT) others. Beyond these numbers, the least recently written entries are
/// evicted, except those in use.
#[derive(Debug, Default)]
pub struct StreamCache<T>(Mutex<Table<T>>);

#[derive(Debug)]
struct Table<T> {
    entries: HashMap<SessionId, Entry<T>>,
    /// The number of requests so far, used to find the oldest entries.
    last_request: u64,
    /// The number of entries at which the next eviction takes place.
    room: usize,
}

#[derive(Debug)]
struct Entry<T> {
    cached: Arc<T>,
    /// The batches without an outcome, the oldest first.
    open: Vec<BatchId>,
    /// The request number of the last access.
    last_request: u64,
}

impl<T: Default> StreamCache<T> {
    /// The number of cached streams without an incomplete batch that an eviction keeps. Up to an eighth more can
    /// accumulate between evictions.
    pub const KEPT: usize = 4096;

    /// The number of cached streams with an incomplete batch that an eviction keeps, in addition to
    /// [`KEPT`](Self::KEPT).
    pub const KEPT_OPEN: usize = 16_384;

    /// Registers a batch that is about to be written, and returns the cache entry of its stream.
    pub fn register(&self, stream: &SessionId, batch: BatchId) -> PendingBatch<'_, T> {
        let mut table = self.lock();
        if table.entries.len() >= table.room && !table.entries.contains_key(stream) {
            table.evict();
        }
        table.last_request += 1;
        let last_request = table.last_request;
        let entry = table.entries.entry(stream.clone()).or_default();
        entry.last_request = last_request;
        entry.open.retain(|open| *open != batch);
        if entry.open.len() == Receipts::KEPT {
            entry.open.remove(0);
        }
        entry.open.push(batch);
        let cached = Arc::clone(&entry.cached);
        PendingBatch { cache: self, stream: stream.clone(), batch, cached }
    }

    fn lock(&self) -> MutexGuard<'_, Table<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Default> Table<T> {
    /// Evicts the least recently written streams that no writer uses.
    fn evict(&mut self) {
        for (is_open, kept) in
            [(false, StreamCache::<T>::KEPT), (true, StreamCache::<T>::KEPT_OPEN)]
        {
            let unused = |entry: &Entry<T>| Arc::strong_count(&entry.cached) == 1;
            let meant = |entry: &Entry<T>| unused(entry) && entry.open.is_empty() != is_open;
            let meant = self.entries.iter().filter(|(_, entry)| meant(entry));
            let mut oldest: Vec<_> =
                meant.map(|(id, entry)| (entry.last_request, id.clone())).collect();
            let gone = oldest.len().saturating_sub(kept);
            oldest.sort_unstable();
            for (_, stream) in oldest.drain(..gone) {
                self.entries.remove(&stream);
            }
        }
        // Evicts rarely, so that the cost per new stream is small.
        self.room = self.entries.len() + StreamCache::<T>::KEPT / 8;
    }
}

impl<T: Default> Default for Table<T> {
    fn default() -> Self {
        Self { entries: HashMap::new(), last_request: 0, room: StreamCache::<T>::KEPT }
    }
}

impl<T: Default> Default for Entry<T> {
    fn default() -> Self {
        Self { cached: Arc::default(), open: Vec::new(), last_request: 0 }
    }
}

/// A batch that is being written. If it is dropped before [`complete`](Self::complete), it may be
/// retried.
#[derive(Debug)]
pub struct PendingBatch<'m, T: Default> {
    cache: &'m StreamCache<T>,
    stream: SessionId,
    batch: BatchId,
    cached: Arc<T>,
}

impl<T: Default> PendingBatch<'_, T> {
    /// Returns the cache entry of the stream.
    #[must_use]
    pub fn cached(&self) -> Arc<T> {
        Arc::clone(&self.cached)
    }

    /// Passes the outcome to the caller. Unless the outcome leaves open whether the batch was
    /// written, no retry of the batch is expected.
    ///
    /// # Errors
    /// Returns the error of the outcome.
    pub fn complete(self, outcome: Result<BatchReceipt>) -> Result<BatchReceipt> {
        if !outcome.as_ref().is_err_and(Error::is_retryable)
            && let Some(entry) = self.cache.lock().entries.get_mut(&self.stream)
        {
            entry.open.retain(|open| *open != self.batch);
        }
        outcome
    }
}

/// The cache entry of one stream that other processes also write, for
/// [`write_shared`](super::write_shared).
#[derive(Debug, Default)]
pub struct CacheEntry {
    /// The stream after the last batch of this handle; `None` if unknown.
    pub known: Option<CachedStream>,
    pub(super) doubts: Vec<Doubt>,
    pub(super) receipts: Receipts,
}

/// The position of a batch in the stream, if it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPosition {
    /// The sequence number of the batch's last chunk.
    pub last_seq: u64,
    /// The revision that the batch created. It is stored with the chunks.
    pub revision: u64,
}

/// A batch that may or may not have been written.
#[derive(Debug)]
pub(super) struct Doubt {
    pub(super) batch: BatchId,
    /// The revision that the batch was based on.
    pub(super) from: u64,
    /// The revision that the batch creates.
    pub(super) revision: u64,
    /// Whether the batch has chunks, and therefore a position.
    pub(super) has_place: bool,
    /// The receipt of the batch, if it was written.
    pub(super) written: BatchReceipt,
}

/// The maximum number of doubts. More occur only if a server fails every request.
const DOUBTS: usize = 16;

impl CacheEntry {
    /// Registers a batch that is about to be sent.
    pub(super) fn sending(&mut self, doubt: Doubt) {
        let same = |other: &Doubt| other.batch == doubt.batch && other.from == doubt.from;
        if self.doubts.iter().any(same) {
            return;
        }
        if self.doubts.len() == DOUBTS {
            self.doubts.remove(0);
        }
        self.doubts.push(doubt);
    }

    /// Returns the positions to look up.
    pub(super) fn places(&self) -> Vec<BatchPosition> {
        self.doubts.iter().filter_map(Doubt::place).collect()
    }

    /// Resolves the doubts after a lookup that found the stream at the revision `found`. `found_places`
    /// lists the positions at which the batch was found.
    pub(super) fn resolve(&mut self, found: u64, found_places: &[BatchPosition]) {
        for doubt in std::mem::take(&mut self.doubts) {
            let is_there = doubt.place().is_some_and(|place| found_places.contains(&place));
            if found == doubt.from {
                // The request may still be in flight.
                self.doubts.push(doubt);
            } else if found == doubt.revision || is_there {
                self.receipts.insert(doubt.batch, doubt.written);
            }
            // Otherwise the batch was not written and cannot be written any more, because the
            // stream has left its base revision.
        }
    }
}

impl Doubt {
    fn place(&self) -> Option<BatchPosition> {
        let (last_seq, revision) = (self.written.last_seq, self.revision);
        self.has_place.then_some(BatchPosition { last_seq, revision })
    }
}

#[cfg(test)]
mod tests;
