//! The stream of one run, as its handle returns it, from the start of the run to its end.
//!
//! The chunk that ends a run may be missing: streams are trimmed, reset and deleted, and may be stored separately from
//! the log. The reader therefore checks the log whenever the run has been silent for a while.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use helix_agents_core::error::Result;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::stream::{ChunkKind, ChunkStream, StoredChunk};

use crate::context::RuntimeContext;

/// The initial and the maximum time of silence after which the log is checked.
const SILENCE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));

/// A reader of one run's chunks, in the stream of its root.
pub(crate) struct RunStream {
    pub(crate) context: Arc<RuntimeContext>,
    pub(crate) root: SessionId,
    pub(crate) session: SessionId,
    pub(crate) run: RunId,
    /// `true` if this process executes the run and therefore keeps its stream consistent with the log.
    pub(crate) is_live: bool,
}

/// The state of a reader.
struct Reader {
    target: RunStream,
    chunks: ChunkStream,
    /// The sequence number of the next chunk to read.
    cursor: u64,
    silence: Duration,
    /// The monotonic time of the next check of the log.
    next_check: Duration,
    /// The log version at which the run was first found to be no longer current.
    ended: Option<u64>,
    /// The sequence number of the last chunk of the run.
    last: Option<u64>,
}

impl RunStream {
    /// Returns the chunks from this sequence number up to and including the end of the run, or up to the start of the
    /// run that took over.
    pub(crate) async fn read(self, from: u64) -> Result<ChunkStream> {
        let chunks = self.context.streams.read(&self.root, from).await?;
        let mut reader = Reader {
            next_check: Duration::ZERO,
            target: self,
            chunks,
            cursor: from,
            silence: SILENCE.0,
            ended: None,
            last: None,
        };
        if !reader.target.is_live {
            reader.check_log().await?;
        }
        reader.wait(SILENCE.0);
        let chunks = stream::unfold(Some(reader), |reader| async {
            let mut reader = reader?;
            let next = reader.next().await?;
            let ends = next.as_ref().map_or(true, |stored| reader.target.is_end(stored));
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

    /// Returns `true` if the chunk starts another run of the session.
    fn is_other_start(&self, stored: &StoredChunk) -> bool {
        let is_start =
            matches!(stored.chunk.kind, ChunkKind::RunStarted { .. } | ChunkKind::RunResumed);
        is_start && stored.chunk.session == self.session && stored.chunk.run != self.run
    }

    /// Returns `true` if this run ended before that of the chunk. The chunk may also belong to an earlier run that
    /// crashed before it wrote to the stream: its successor shows its start.
    async fn has_ended_before(&self, stored: &StoredChunk) -> bool {
        let Ok(session) = self.context.logs().load(&self.session).await else { return true };
        let number = |run: &RunId| session.runs().position(|record| record.id == *run);
        match (number(&self.run), number(&stored.chunk.run)) {
            (Some(own), Some(other)) => own < other,
            _ => true,
        }
    }
}

impl Reader {
    async fn next(&mut self) -> Option<Result<StoredChunk>> {
        loop {
            if self.last.is_some_and(|last| self.cursor > last) {
                return None;
            }
            let clock = Arc::clone(&self.target.context.clock);
            let left = self.next_check.saturating_sub(clock.monotonic());
            if left.is_zero() {
                self.check_with_timeout().await;
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
            if self.target.is_other_start(&stored) && self.target.has_ended_before(&stored).await {
                return None;
            }
            self.cursor = stored.seq + 1;
            if matches!(stored.chunk.kind, ChunkKind::StreamResync) {
                // The end may be among the chunks that are missing.
                self.wait(Duration::ZERO);
            } else if self.target.is_own(&stored) {
                self.wait(SILENCE.0);
            }
            return Some(Ok(stored));
        }
    }

    /// Schedules the next check of the log after this time of silence.
    fn wait(&mut self, silence: Duration) {
        self.silence = silence;
        self.next_check = self.target.context.clock.monotonic() + silence;
    }

    /// Checks the log with a timeout, because chunks may arrive in the meantime.
    async fn check_with_timeout(&mut self) {
        let clock = Arc::clone(&self.target.context.clock);
        let checked = tokio::select! {
            biased;
            checked = self.check_log() => checked,
            () = clock.sleep(SILENCE.1) => Ok(()),
        };
        if let Err(error) = checked {
            tracing::debug!(session = %self.target.session, %error, "the state of a run could not be read");
        }
        self.wait((self.silence * 2).clamp(SILENCE.0, SILENCE.1));
    }

    /// Checks whether the run has ended, and determines its last chunk in that case.
    async fn check_log(&mut self) -> Result<()> {
        let RunStream { context, root, session, run, is_live } = &self.target;
        let Some(head) = context.store.head(session).await? else {
            self.last = Some(0);
            return Ok(());
        };
        if head.summary.run.as_ref() == Some(run) {
            return Ok(());
        }
        let was_seen = self.ended.is_some();
        let ended = *self.ended.get_or_insert(head.position.version);
        // The driver of this process writes the end itself, shortly after the append.
        if head.summary.run.is_none() && (was_seen || !is_live) {
            context.repair_ended_stream(session).await?;
        }
        let info = context.streams.info(root).await?;
        // A cursor beyond the end means that the stream was replaced. The reader must first receive `StreamResync`.
        let is_within = self.cursor <= info.last_seq + 1;
        let marked = info.marked.get(session).filter(|marked| is_within && marked.version >= ended);
        self.last = marked.map(|marked| marked.seq);
        Ok(())
    }
}
