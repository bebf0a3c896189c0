//! What a handle of a store remembers of the streams that it writes, for those who write a store.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Known, Written};
use crate::id::{BatchId, SessionId};

/// The answers to the last batches of one stream, to give them again.
#[derive(Debug, Default)]
pub struct Answers(VecDeque<(BatchId, Written)>);

impl Answers {
    /// How many are kept.
    pub const KEPT: usize = 64;

    /// The answer to this batch, if it is one of the last that were written.
    #[must_use]
    pub fn find(&self, batch: BatchId) -> Option<&Written> {
        self.0.iter().find(|(id, _)| *id == batch).map(|(_, written)| written)
    }

    /// Notes that this batch was written.
    pub fn note(&mut self, batch: BatchId, written: Written) {
        self.0.truncate(Self::KEPT - 1);
        self.0.push_front((batch, written));
    }
}

/// What is remembered of each of many streams: `T` with a lock, for one writer at a time.
#[derive(Debug, Default)]
pub struct Memories<T>(Mutex<HashMap<SessionId, Arc<T>>>);

impl<T: Default> Memories<T> {
    /// How many streams are remembered. When there are more, those that nobody writes just then are
    /// forgotten.
    pub const KEPT: usize = 1024;

    /// What is remembered of this one.
    pub fn of(&self, stream: &SessionId) -> Arc<T> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= Self::KEPT && !entries.contains_key(stream) {
            entries.retain(|_, entry| Arc::strong_count(entry) > 1);
        }
        Arc::clone(entries.entry(stream.clone()).or_default())
    }
}

/// What is remembered of one stream that other processes write, too. For
/// [`write_shared`](super::write_shared).
#[derive(Debug, Default)]
pub struct Memory {
    /// How it stood after the last batch of this handle; none if that is not known.
    pub known: Option<Known>,
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
    pub(super) written: Written,
}

/// How many doubts are kept. More come only of a server that takes nothing, whatever it is asked.
const DOUBTS: usize = 16;

impl Memory {
    /// Notes that a batch is about to be sent; whether it may have been sent before, from there.
    pub(super) fn sending(&mut self, doubt: Doubt) -> bool {
        let same = |it: &Doubt| it.batch == doubt.batch && it.from == doubt.from;
        if self.doubts.iter().any(same) {
            return true;
        }
        if self.doubts.len() == DOUBTS {
            self.doubts.remove(0);
        }
        self.doubts.push(doubt);
        false
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
