//! Stream readers that are disconnected and continue. Together their chunks must be the stream.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use helix_agents_conformance::rng::Rng;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{ChunkKind, StoredChunk, StreamManager};
use tokio::time::timeout;

use crate::marks::Mark;
use crate::process::Process;

/// The chunks that one reader has received.
#[derive(Debug)]
struct Reader {
    root: SessionId,
    chunks: Vec<StoredChunk>,
}

/// The readers of a world. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Readers(Arc<Mutex<Vec<Reader>>>);

impl Readers {
    /// Reads a stream from its start, and continues at the next chunk after each disconnect.
    pub(crate) async fn follow(&self, process: &Process, root: &SessionId, mut rng: Rng) {
        let reader = {
            let mut readers = self.lock();
            readers.push(Reader { root: root.clone(), chunks: Vec::new() });
            readers.len() - 1
        };
        for _ in 0..1 + rng.below(6) {
            let from = self.lock()[reader].chunks.last().map_or(1, |last| last.seq + 1);
            let limit = Duration::from_millis(rng.below(2_000) as u64);
            let most = 1 + rng.below(40);
            if let Ok(stream) = process.executor.follow(root, from).await {
                let mut chunks = stream.take(most);
                while let Ok(Some(Ok(stored))) = timeout(limit, chunks.next()).await {
                    self.lock()[reader].chunks.push(stored);
                }
            }
            process.wire.reached.note(Mark::ReaderCut);
            tokio::time::sleep(limit).await;
        }
    }

    /// Compares the chunks that readers of a stream received with the stream.
    pub(crate) async fn check(&self, streams: &dyn StreamManager, root: &SessionId) -> Vec<String> {
        let Ok(shown) = read(streams, root).await else {
            return vec![format!("{root}: the stream cannot be read")];
        };
        let discarded: BTreeSet<_> = shown
            .values()
            .filter_map(|stored| match &stored.chunk.kind {
                ChunkKind::StepDiscarded { attempts } => Some(attempts),
                _ => None,
            })
            .flatten()
            .copied()
            .collect();
        let readers = self.lock();
        let of_root = readers.iter().filter(|reader| reader.root == *root);
        let mut problems = Vec::new();
        for Reader { chunks, .. } in of_root {
            if let Some(pair) = chunks.windows(2).find(|pair| pair[0].seq >= pair[1].seq) {
                problems
                    .push(format!("{root}: a reader read {} after {}", pair[1].seq, pair[0].seq));
            }
            let (Some(first), Some(last)) = (chunks.first(), chunks.last()) else { continue };
            let seen: BTreeMap<_, _> = chunks.iter().map(|stored| (stored.seq, stored)).collect();
            for (seq, stored) in shown.range(first.seq..=last.seq) {
                if seen.get(seq).is_none_or(|seen| *seen != stored) {
                    problems.push(format!("{root}: a reader missed {stored:?}"));
                }
            }
            for stored in chunks {
                let is_shown = shown.contains_key(&stored.seq);
                if !is_shown && stored.attempt.is_none_or(|attempt| !discarded.contains(&attempt)) {
                    problems.push(format!(
                        "{root}: a reader read {stored:?}, which is not in the stream"
                    ));
                }
            }
        }
        problems
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Reader>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the chunks of a stream by sequence number.
async fn read(
    streams: &dyn StreamManager,
    root: &SessionId,
) -> helix_agents_core::error::Result<BTreeMap<u64, StoredChunk>> {
    let last = streams.info(root).await?.last_seq;
    let mut shown = BTreeMap::new();
    let mut reader = streams.read(root, 1).await?;
    while shown.last_key_value().is_none_or(|(seq, _)| *seq < last) && last > 0 {
        let Some(stored) = reader.next().await else { break };
        let stored = stored?;
        shown.insert(stored.seq, stored);
    }
    Ok(shown)
}
