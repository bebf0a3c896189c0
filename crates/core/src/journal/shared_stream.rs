//! Writes to streams that several processes write, for authors of stores on a server.
//!
//! A batch is computed in this process and written in one round trip, on the condition that the
//! stream has not changed since it was last read. The cached state of a handle is usually up to
//! date, because in most cases only one process writes a stream. If an answer is lost, it is in
//! doubt whether the batch was written; the next read of the stream resolves the doubt.

use sha2::{Digest as _, Sha256};

use super::stream_cache::Doubt;
use super::{BatchPosition, CacheEntry};
use crate::contracts::stream::{Batch, BatchReceipt};
use crate::error::{Error, ErrorCode};
use crate::id::BatchId;
use crate::machine::stream::{Change, StreamState};

/// The maximum number of attempts to write a batch while other writers win. An attempt does not
/// slow them down. Even if many processes write as fast as they can, each makes progress.
const MAX_ATTEMPTS: usize = 200;

/// The last known state of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CachedStream {
    /// The revision of this state. Every batch creates another one. 0 for a stream that does not
    /// exist.
    pub revision: u64,
    /// The sequence number of the last chunk that is not kept any more.
    pub trimmed: u64,
    /// The state of the stream.
    pub state: StreamState,
}

/// The result of a lookup.
#[derive(Debug, Clone, Default)]
pub struct StreamLookup {
    /// The stream; the default value if it does not exist.
    pub known: CachedStream,
    /// The requested positions at which chunks with that revision end.
    pub found_places: Vec<BatchPosition>,
}

/// Access to one stream on a server, for [`write_shared`].
pub trait SharedStream: Send {
    /// The error type. After any error, the operation may have taken place.
    type Failure: From<Error> + Send;

    /// Reads the stream and then, or atomically with it, looks up these positions.
    fn lookup(
        &mut self,
        places: &[BatchPosition],
    ) -> impl Future<Output = Result<StreamLookup, Self::Failure>> + Send;

    /// Writes the change atomically, on the condition that the stream has the revision `from`: the
    /// chunks with the revision that they create, the discards, the watermark, and the new state of
    /// the stream.
    ///
    /// Returns `false` if the stream has another revision. The batch itself may have created it,
    /// because drivers and stores resend a request whose response was lost. The next lookup
    /// resolves this.
    fn save(
        &mut self,
        from: u64,
        after: &CachedStream,
        change: &Change,
    ) -> impl Future<Output = Result<bool, Self::Failure>> + Send;
}

/// Writes a batch, or returns the first receipt if it was already written. The caller must not
/// write to one stream concurrently through the same handle, and passes the same `entry` to every
/// write of a stream.
///
/// # Errors
/// Returns the errors of [`StreamState::apply`], [`ErrorCode::StoreBusy`] if other writers win
/// every attempt, and the errors of the stream.
///
/// # Cancel safety
/// If the future is dropped, the batch may or may not have been written. `entry` stays valid.
pub async fn write_shared<S: SharedStream>(
    mut stream: S,
    entry: &mut CacheEntry,
    batch: &Batch,
) -> Result<BatchReceipt, S::Failure> {
    for _ in 0..MAX_ATTEMPTS {
        if let Some(written) = try_write(&mut stream, entry, batch).await? {
            return Ok(written);
        }
    }
    let message = "too many concurrent writers: the stream changed during every attempt";
    Err(Error::new(ErrorCode::StoreBusy, message).into())
}

/// Tries once to write the batch. Returns `None` if another writer was first.
async fn try_write<S: SharedStream>(
    stream: &mut S,
    entry: &mut CacheEntry,
    batch: &Batch,
) -> Result<Option<BatchReceipt>, S::Failure> {
    if let Some(written) = entry.receipts.find(batch.id) {
        return Ok(Some(written.clone()));
    }
    let remembered = entry.known.take().filter(|_| entry.doubts.is_empty());
    let is_remembered = remembered.is_some();
    let mut known = match remembered {
        Some(known) => known,
        None => {
            let StreamLookup { known, found_places } = stream.lookup(&entry.places()).await?;
            entry.resolve(known.revision, &found_places);
            if let Some(written) = entry.receipts.find(batch.id) {
                entry.known = Some(known);
                return Ok(Some(written.clone()));
            }
            known
        }
    };
    let from = known.revision;
    let change = known.state.apply(batch)?;
    // The cached state may be outdated. In that case, a batch that changes the stream is rejected.
    // A batch that does not change it, or only in part, needs a fresh read.
    if is_remembered && (!change.is_changed || !change.written.refused.is_empty()) {
        return Ok(None);
    }
    let written = change.written.clone();
    if change.is_changed {
        known.revision = revision(from, batch.id);
        let (revision, has_place) = (known.revision, change.count > 0);
        let doubt = Doubt { batch: batch.id, from, revision, has_place, written: written.clone() };
        entry.sending(doubt);
        if !stream.save(from, &known, &change).await? {
            return Ok(None);
        }
        // Other batches based on the same revision cannot be written any more.
        entry.doubts.clear();
    }
    entry.known = Some(known);
    entry.receipts.insert(batch.id, written.clone());
    Ok(Some(written))
}

/// Returns the revision that a batch creates from a base revision. The same batch creates the same
/// revision from the same base, so it can be sent twice. If a server crash loses the latest state,
/// the state that replaces it has another revision.
fn revision(from: u64, batch: BatchId) -> u64 {
    let digest = Sha256::new().chain_update(from.to_be_bytes()).chain_update(batch.0.to_be_bytes());
    let digest = digest.finalize();
    let name = digest.iter().take(8).fold(0, |name, byte| (name << 8) | u64::from(*byte));
    name.max(1)
}

#[cfg(test)]
mod tests;
