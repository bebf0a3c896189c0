//! What a handle of a store remembers of the streams that it writes, for those who write a store.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{BatchReceipt, CachedStream};
use crate::error::{Error, Result};
use crate::id::{BatchId, SessionId};

/// The answers to the last batches of one stream, to give them again.
#[derive(Debug, Default)]
pub struct Answers(VecDeque<(BatchId, BatchReceipt)>);

impl Answers {
    /// How many are kept.
    pub const KEPT: usize = 64;

    /// The answer to this batch, if it is one of the last that were written.
    #[must_use]
    pub fn find(&self, batch: BatchId) -> Option<&BatchReceipt> {
        self.0.iter().find(|(id, _)| *id == batch).map(|(_, written)| written)
    }

    /// Notes that this batch was written.
    pub fn note(&mut self, batch: BatchId, written: BatchReceipt) {
        self.0.truncate(Self::KEPT - 1);
        self.0.push_front((batch, written));
    }
}

/// What a handle remembers of each of the streams that it writes: `T`, with a lock for one writer at
/// a time.
///
/// Of a stream with a batch that was not [answered](Asked::answer) nothing is forgotten while other
/// streams are written, because that batch may be written again. Of the others, those written last
/// are remembered.
#[derive(Debug, Default)]
pub struct StreamCache<T>(Mutex<Table<T>>);

#[derive(Debug)]
struct Table<T> {
    entries: HashMap<SessionId, Entry<T>>,
    /// Counts what is asked, so that the oldest entries can be told.
    asked: u64,
    /// How many entries there may be before some are looked for that can go.
    room: usize,
}

#[derive(Debug)]
struct Entry<T> {
    memory: Arc<T>,
    /// Batches without an answer, the oldest first.
    open: Vec<BatchId>,
    /// When it was last asked for.
    asked: u64,
}

impl<T: Default> StreamCache<T> {
    /// How many streams are remembered whose batches were all answered.
    pub const KEPT: usize = 4096;

    /// How many streams are remembered beside those, each with a batch that was not answered.
    pub const KEPT_OPEN: usize = 16_384;

    /// Notes that a batch is about to be written, and returns what is remembered of its stream.
    pub fn ask(&self, stream: &SessionId, batch: BatchId) -> Asked<'_, T> {
        let mut table = self.lock();
        if table.entries.len() >= table.room && !table.entries.contains_key(stream) {
            table.forget_some();
        }
        table.asked += 1;
        let asked = table.asked;
        let entry = table.entries.entry(stream.clone()).or_default();
        entry.asked = asked;
        entry.open.retain(|open| *open != batch);
        if entry.open.len() == Answers::KEPT {
            entry.open.remove(0);
        }
        entry.open.push(batch);
        let memory = Arc::clone(&entry.memory);
        Asked { memories: self, stream: stream.clone(), batch, memory }
    }

    fn lock(&self) -> MutexGuard<'_, Table<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Default> Table<T> {
    /// Forgets the streams that were not written for longest, of those that no writer uses.
    fn forget_some(&mut self) {
        for (is_open, kept) in
            [(false, StreamCache::<T>::KEPT), (true, StreamCache::<T>::KEPT_OPEN)]
        {
            let unused = |entry: &Entry<T>| Arc::strong_count(&entry.memory) == 1;
            let meant = |entry: &Entry<T>| unused(entry) && entry.open.is_empty() != is_open;
            let meant = self.entries.iter().filter(|(_, entry)| meant(entry));
            let mut oldest: Vec<_> = meant.map(|(id, entry)| (entry.asked, id.clone())).collect();
            let gone = oldest.len().saturating_sub(kept);
            oldest.sort_unstable();
            for (_, stream) in oldest.drain(..gone) {
                self.entries.remove(&stream);
            }
        }
        // So that looking costs each new stream little.
        self.room = self.entries.len() + StreamCache::<T>::KEPT / 8;
    }
}

impl<T: Default> Default for Table<T> {
    fn default() -> Self {
        Self { entries: HashMap::new(), asked: 0, room: StreamCache::<T>::KEPT }
    }
}

impl<T: Default> Default for Entry<T> {
    fn default() -> Self {
        Self { memory: Arc::default(), open: Vec::new(), asked: 0 }
    }
}

/// A batch on its way to a stream. Dropped without an [answer](Self::answer), it may be written again.
#[derive(Debug)]
pub struct Asked<'m, T: Default> {
    memories: &'m StreamCache<T>,
    stream: SessionId,
    batch: BatchId,
    memory: Arc<T>,
}

impl<T: Default> Asked<'_, T> {
    /// What is remembered of the stream.
    #[must_use]
    pub fn memory(&self) -> Arc<T> {
        Arc::clone(&self.memory)
    }

    /// Hands the answer to the caller. Unless it leaves open whether the batch was written, the batch is
    /// not expected again.
    ///
    /// # Errors
    /// Those of the answer.
    pub fn answer(self, answer: Result<BatchReceipt>) -> Result<BatchReceipt> {
        if !answer.as_ref().is_err_and(Error::is_retryable)
            && let Some(entry) = self.memories.lock().entries.get_mut(&self.stream)
        {
            entry.open.retain(|open| *open != self.batch);
        }
        answer
    }
}

/// What is remembered of one stream that other processes write, too. For
/// [`write_shared`](super::write_shared).
#[derive(Debug, Default)]
pub struct CacheEntry {
    /// How it stood after the last batch of this handle; none if that is not known.
    pub known: Option<CachedStream>,
    pub(super) doubts: Vec<Doubt>,
    pub(super) answers: Answers,
}

/// Where a batch stands if it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its last chunk.
    pub last_seq: u64,
    /// The revision that it made, which is kept with its chunks.
    pub revision: u64,
}

/// A batch of which is not known whether it was written.
#[derive(Debug)]
pub(super) struct Doubt {
    pub(super) batch: BatchId,
    /// The revision that it goes on from.
    pub(super) from: u64,
    /// The one that it makes.
    pub(super) revision: u64,
    /// Whether it has chunks, and so a place.
    pub(super) has_place: bool,
    /// The answer, if it was written.
    pub(super) written: BatchReceipt,
}

/// How many doubts are kept. More come only of a server that takes nothing, whatever it is asked.
const DOUBTS: usize = 16;

impl CacheEntry {
    /// Notes that a batch is about to be sent.
    pub(super) fn sending(&mut self, doubt: Doubt) {
        let same = |it: &Doubt| it.batch == doubt.batch && it.from == doubt.from;
        if self.doubts.iter().any(same) {
            return;
        }
        if self.doubts.len() == DOUBTS {
            self.doubts.remove(0);
        }
        self.doubts.push(doubt);
    }

    /// The places to look at.
    pub(super) fn places(&self) -> Vec<Place> {
        self.doubts.iter().filter_map(Doubt::place).collect()
    }

    /// Decides what can be decided, now that the stream was looked at and found at this revision, and
    /// `there` are those of the places that are taken by their batches.
    pub(super) fn resolve(&mut self, found: u64, there: &[Place]) {
        for doubt in std::mem::take(&mut self.doubts) {
            let is_there = doubt.place().is_some_and(|place| there.contains(&place));
            if found == doubt.from {
                // It may still be on its way.
                self.doubts.push(doubt);
            } else if found == doubt.revision || is_there {
                self.answers.note(doubt.batch, doubt.written);
            }
            // Otherwise it was not written, and cannot be any more: the stream has left its revision.
        }
    }
}

impl Doubt {
    fn place(&self) -> Option<Place> {
        let (last_seq, revision) = (self.written.last_seq, self.revision);
        self.has_place.then_some(Place { last_seq, revision })
    }
}

#[cfg(test)]
mod tests;
