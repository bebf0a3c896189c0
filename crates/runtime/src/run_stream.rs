//! The stream of one run: what its handle shows, from the run's beginning to its end.
//!
//! The chunk that ends a run may be gone: streams are trimmed, reset and forgotten, and may be kept
//! elsewhere than the log. So the log is looked at whenever the run has been silent for a while.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use helix_agents_core::error::Result;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::stream::{ChunkKind, ChunkStream, StoredChunk};

use crate::context::RuntimeContext;

/// How long a run may be silent before the log is looked at: at first, and at most.
const SILENCE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));

/// A reader of one run's chunks, in the stream of its root.
pub(crate) struct RunStream {
    pub(crate) context: Arc<RuntimeContext>,
    pub(crate) root: SessionId,
    pub(crate) session: SessionId,
    pub(crate) run: RunId,
    /// Whether this process drives the run and so brings its stream into line.
    pub(crate) is_live: bool,
}

/// Where a reader is.
struct Reader {
    of: RunStream,
    chunks: ChunkStream,
    /// The next chunk that it wants.
    cursor: u64,
    silence: Duration,
    /// When it looks at the log next, by the process's monotonic time.
    look_at: Duration,
    /// The version at which the log was seen without the run as the current one.
    ended: Option<u64>,
    /// The chunk behind which the run shows nothing more.
    last: Option<u64>,
}

impl RunStream {
    /// Chunks from this one on, up to and with the one that ends the run, or up to the run that took
    /// over from it.
    pub(crate) async fn read(self, from: u64) -> Result<ChunkStream> {
        let chunks = self.context.streams.read(&self.root, from).await?;
        let mut reader = Reader {
            look_at: Duration::ZERO,
            of: self,
            chunks,
            cursor: from,
            silence: SILENCE.0,
            ended: None,
            last: None,
        };
        if !reader.of.is_live {
            reader.look().await?;
        }
        reader.wait(SILENCE.0);
        let chunks = stream::unfold(Some(reader), |reader| async {
            let mut reader = reader?;
            let next = reader.next().await?;
            let ends = next.as_ref().map_or(true, |stored| reader.of.is_end(stored));
            Some((next, (!ends).then_some(reader)))
        });
        Ok(chunks.boxed())
    }

    fn is_own(&self, stored: &StoredChunk) -> bool {
        stored.chunk.session == self.session && stored.chunk.run == self.run
    }

    fn is_end(&self, stored: &StoredChunk) -> bool {
        self.is_own(stored) && stored.chunk.kind.ends_run()
    }

    /// Whether the chunk begins another run of the session.
    fn is_next_run(&self, stored: &StoredChunk) -> bool {
        let begins = matches!(stored.chunk.kind, ChunkKind::RunStarted | ChunkKind::RunResumed);
        begins && stored.chunk.session == self.session && stored.chunk.run != self.run
    }
}

impl Reader {
    async fn next(&mut self) -> Option<Result<StoredChunk>> {
        loop {
            if self.last.is_some_and(|last| self.cursor > last) {
                return None;
            }
            let clock = Arc::clone(&self.of.context.clock);
            let left = self.look_at.saturating_sub(clock.monotonic());
            if left.is_zero() {
                self.look_again().await;
                continue;
            }
            let stored = tokio::select! {
                biased;
                next = self.chunks.next() => match next? {
                    Ok(stored) => stored,
                    Err(error) => return Some(Err(error)),
                },
                () = clock.sleep(left) => continue,
            };
            if self.of.is_next_run(&stored) {
                return None;
            }
            self.cursor = stored.seq + 1;
            if matches!(stored.chunk.kind, ChunkKind::StreamResync) {
                // The end may be among the chunks that are missing.
                self.wait(Duration::ZERO);
            } else if self.of.is_own(&stored) {
                self.wait(SILENCE.0);
            }
            return Some(Ok(stored));
        }
    }

    /// Looks at the log after so long a silence.
    fn wait(&mut self, silence: Duration) {
        self.silence = silence;
        self.look_at = self.of.context.clock.monotonic() + silence;
    }

    /// Looks, unless the stores take too long: chunks may come meanwhile.
    async fn look_again(&mut self) {
        let clock = Arc::clone(&self.of.context.clock);
        let looked = tokio::select! {
            biased;
            looked = self.look() => looked,
            () = clock.sleep(SILENCE.1) => Ok(()),
        };
        if let Err(error) = looked {
            tracing::debug!(session = %self.of.session, %error, "a run could not be looked at");
        }
        self.wait((self.silence * 2).clamp(SILENCE.0, SILENCE.1));
    }

    /// Finds out whether the run has ended, and which chunk is its last then.
    async fn look(&mut self) -> Result<()> {
        let RunStream { context, root, session, run, is_live } = &self.of;
        let Some(head) = context.store.head(session).await? else {
            self.last = Some(0);
            return Ok(());
        };
        if head.summary.run.as_ref() == Some(run) {
            return Ok(());
        }
        let was_seen = self.ended.is_some();
        let ended = *self.ended.get_or_insert(head.position.version);
        // The driver of this process shows the end itself, and a moment later.
        if head.summary.run.is_none() && (was_seen || !is_live) {
            context.repair_ended_stream(session).await?;
        }
        let info = context.streams.info(root).await?;
        // Behind the end of the stream, the reader is first told how far it reaches.
        let is_within = self.cursor <= info.last_seq + 1;
        let marked = info.marked.get(session).filter(|it| is_within && it.version >= ended);
        self.last = marked.map(|marked| marked.seq);
        Ok(())
    }
}
