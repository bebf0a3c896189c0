//! Writing a stream that other processes write as well, for those who write a store on a server.
//!
//! A batch is worked out here and written in one round trip, on the condition that the stream has not
//! changed since it was last seen. What a handle remembers of it mostly still holds, because mostly
//! one process writes a stream. An answer that was lost leaves a doubt, which the next look at the
//! stream decides.

use sha2::{Digest as _, Sha256};

use super::cache::Doubt;
use super::{Batch, BatchReceipt, CacheEntry, Change, Place, StreamState};
use crate::error::{Error, ErrorCode};
use crate::id::BatchId;

/// How often a batch is tried while others come first. Each try costs them nothing; of many that
/// write as fast as they can, each still gets its turn.
const TRIES: usize = 200;

/// A stream as it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CachedStream {
    /// The name of this state: every batch makes another one. 0 for a stream that does not exist.
    pub revision: u64,
    /// The last chunk that is not kept any more.
    pub trimmed: u64,
    /// How it stands.
    pub ledger: StreamState,
}

/// What a look found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The stream; the default if there is none.
    pub known: CachedStream,
    /// Those of the places asked for at which chunks of that revision end.
    pub there: Vec<Place>,
}

/// One stream on a server, as [`write_shared`] gets at it.
pub trait SharedStream: Send {
    /// How it fails. Whatever it is, what was asked may have been done.
    type Failure: From<Error> + Send;

    /// Looks at the stream, and then or at the same moment at these places in it.
    fn look(
        &mut self,
        places: &[Place],
    ) -> impl Future<Output = Result<Found, Self::Failure>> + Send;

    /// Writes, at one moment and only if the stream has the revision `from`: the change's chunks with
    /// the revision that they make, its discards and marks, and what is known of the stream after it.
    ///
    /// Returns `false` if the stream has another revision. The batch may have made that one itself:
    /// drivers and stores send again what a lost connection left unanswered. The next look decides.
    fn save(
        &mut self,
        from: u64,
        after: &CachedStream,
        change: &Change,
    ) -> impl Future<Output = Result<bool, Self::Failure>> + Send;
}

/// Writes a batch, or answers as the first time if it was written already. One writer of a handle at
/// a time: the memory is what the one before left.
///
/// # Errors
/// [`ErrorCode::InputInvalid`] as [`StreamState::apply`], [`ErrorCode::StoreBusy`] if others come first
/// again and again, and those of the stream.
///
/// # Cancel safety
/// Dropping the future leaves open whether the batch was written; the memory is as good as before.
pub async fn write_shared<S: SharedStream>(
    mut stream: S,
    memory: &mut CacheEntry,
    batch: &Batch,
) -> Result<BatchReceipt, S::Failure> {
    for _ in 0..TRIES {
        if let Some(written) = try_write(&mut stream, memory, batch).await? {
            return Ok(written);
        }
    }
    let message = "others write the stream without a pause";
    Err(Error::new(ErrorCode::StoreBusy, message).into())
}

/// None if somebody else came first.
async fn try_write<S: SharedStream>(
    stream: &mut S,
    memory: &mut CacheEntry,
    batch: &Batch,
) -> Result<Option<BatchReceipt>, S::Failure> {
    if let Some(written) = memory.answers.find(batch.id) {
        return Ok(Some(written.clone()));
    }
    let remembered = memory.known.take().filter(|_| memory.doubts.is_empty());
    let is_remembered = remembered.is_some();
    let mut known = match remembered {
        Some(known) => known,
        None => {
            let Found { known, there } = stream.look(&memory.places()).await?;
            memory.resolve(known.revision, &there);
            if let Some(written) = memory.answers.find(batch.id) {
                memory.known = Some(known);
                return Ok(Some(written.clone()));
            }
            known
        }
    };
    let from = known.revision;
    let change = known.ledger.apply(batch)?;
    // What was remembered may be old. If it is, a batch that changes the stream is not taken; but one
    // that does not, or not in all its parts, has to look.
    if is_remembered && (!change.is_changed || !change.written.refused.is_empty()) {
        return Ok(None);
    }
    let written = change.written.clone();
    if change.is_changed {
        known.revision = revision(from, batch.id);
        let (revision, has_place) = (known.revision, change.count > 0);
        let doubt = Doubt { batch: batch.id, from, revision, has_place, written: written.clone() };
        memory.sending(doubt);
        if !stream.save(from, &known, &change).await? {
            return Ok(None);
        }
        // Whatever else was to go on from the same revision cannot any more.
        memory.doubts.clear();
    }
    memory.known = Some(known);
    memory.answers.note(batch.id, written.clone());
    Ok(Some(written))
}

/// The name of what a batch makes of a state. The same batch makes the same of the same, so it may be
/// sent twice; and a state of which a crash of the server took back the end is told from the one that
/// then comes in its place.
fn revision(from: u64, batch: BatchId) -> u64 {
    let digest = Sha256::new().chain_update(from.to_be_bytes()).chain_update(batch.0.to_be_bytes());
    let digest = digest.finalize();
    let name = digest.iter().take(8).fold(0, |name, byte| (name << 8) | u64::from(*byte));
    name.max(1)
}

#[cfg(test)]
mod tests;
