//! The buffer of chunks between two writes of a stream.

use std::sync::Arc;

use helix_agents_core::stream::{
    Attempt, AttemptRef, Boundary, Chunk, ChunkKind, Effect, StreamOp, Watermark,
};

use super::AttemptHandle;

/// The size in bytes at which a batch is written without waiting for more chunks.
const BATCH_BYTES: usize = 4 * 1024;

/// The size in bytes and the number of pending operations at which a failed earlier batch is dropped.
const MAX_PENDING: (usize, usize) = (1024 * 1024, 4 * 1024);

/// The operations to write next, and the state of the attempts that they belong to.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pending: Vec<Pending>,
    /// `true` if operations were added since the last write started.
    has_news: bool,
    /// The approximate size of the buffered chunks.
    bytes: usize,
    last_handle: u32,
    /// The attempts that are neither settled nor restarted.
    open: Vec<OpenAttempt>,
    /// Recorded attempts whose watermark could not be written. The next watermark settles them. Otherwise their chunks
    /// would be discarded although the log contains the outcome.
    carried_over: Vec<Attempt>,
    /// Attempts that were discarded before the stream had assigned their numbers, each with the template of the
    /// announcing chunk. They are discarded in the stream once their numbers are known.
    discarded_early: Vec<(AttemptHandle, Arc<Chunk>)>,
}

#[derive(Debug)]
enum Pending {
    Begin {
        handle: AttemptHandle,
        effect: Effect,
        origin: Arc<Chunk>,
    },
    Chunks {
        handle: Option<AttemptHandle>,
        chunks: Vec<Arc<Chunk>>,
    },
    /// A watermark with the attempts that it settles. Their numbers may not be known yet.
    Watermark {
        watermark: Box<Watermark>,
        handles: Vec<AttemptHandle>,
    },
}

/// The operations that can be written in one batch.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) ops: Vec<StreamOp>,
    /// The attempts that the batch starts.
    pub(super) started: Vec<AttemptHandle>,
    /// `true` if more operations follow, which need the numbers of these attempts.
    pub(super) has_more: bool,
}

#[derive(Debug)]
struct OpenAttempt {
    handle: AttemptHandle,
    effect: Effect,
    /// The attempt number, once the start was written.
    attempt: Option<Attempt>,
}

/// The stream update for one log append.
#[derive(Debug, Default)]
pub(crate) struct WatermarkUpdate {
    /// The log version after the append.
    pub(crate) version: u64,
    /// The attempts of this run whose outcome is in the log.
    pub(crate) settled: Vec<AttemptHandle>,
    /// The attempts of earlier runs whose outcome is in the log.
    pub(crate) settled_before: Vec<Attempt>,
    /// The attempts of earlier runs whose outcome will never be in the log.
    pub(crate) discarded: Vec<Attempt>,
    /// The chunks of the appended events.
    pub(crate) boundaries: Vec<Boundary>,
}

impl Batch {
    pub(super) fn begin(&mut self, effect: Effect, origin: Arc<Chunk>) -> AttemptHandle {
        self.last_handle += 1;
        let handle = AttemptHandle(self.last_handle);
        self.open.retain(|open| open.effect != effect);
        self.open.push(OpenAttempt { handle, effect: effect.clone(), attempt: None });
        self.pending.push(Pending::Begin { handle, effect, origin });
        handle
    }

    /// Adds a chunk of an attempt, or a boundary chunk. It is merged with the previous chunk if both are deltas of the
    /// same content.
    pub(super) fn push(
        &mut self,
        handle: Option<AttemptHandle>,
        kind: ChunkKind,
        chunk: impl FnOnce(ChunkKind) -> Arc<Chunk>,
    ) {
        self.bytes += weight(&kind);
        match self.pending.last_mut() {
            Some(Pending::Chunks { handle: owner, chunks }) if *owner == handle => {
                let last = chunks.last_mut().and_then(kind_mut);
                if let Some(kind) = merged(last, kind) {
                    chunks.push(chunk(kind));
                }
            }
            _ => {
                // Most chunks come in pairs of a start and an end.
                let mut chunks = Vec::with_capacity(2);
                chunks.push(chunk(kind));
                self.pending.push(Pending::Chunks { handle, chunks });
            }
        }
    }

    /// Adds text to the last chunk. Returns `false` if the last chunk is not text of the same attempt.
    pub(super) fn extend_text(&mut self, handle: AttemptHandle, delta: &str) -> bool {
        let Some(Pending::Chunks { handle: owner, chunks }) = self.pending.last_mut() else {
            return false;
        };
        let last = chunks.last_mut().filter(|_| *owner == Some(handle));
        let Some(ChunkKind::TextDelta { delta: before }) = last.and_then(kind_mut) else {
            return false;
        };
        before.push_str(delta);
        self.bytes += delta.len();
        true
    }

    /// Records that operations were added. Returns `true` if the writer has to be woken: for the first operation, so
    /// that it starts the timer, and when the batch is full.
    pub(super) fn note_news(&mut self) -> bool {
        let was_known = std::mem::replace(&mut self.has_news, true);
        !was_known || self.is_full()
    }

    /// Records that a write starts: the next operation wakes the writer.
    pub(super) fn clear_news(&mut self) {
        self.has_news = false;
    }

    /// Returns `true` if operations were added since the last write started.
    pub(super) fn has_news(&self) -> bool {
        self.has_news
    }

    /// Returns `true` if there are chunks or other operations that were not taken yet.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Returns `true` if the batch should be written without waiting for more chunks.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES
    }

    /// Returns `true` if so much is buffered that a failed earlier batch must be dropped.
    pub(super) fn exceeds_limit(&self) -> bool {
        self.bytes >= MAX_PENDING.0 || self.pending.len() >= MAX_PENDING.1
    }

    pub(super) fn watermark(&mut self, watermark: WatermarkUpdate, origin: Arc<Chunk>) {
        let WatermarkUpdate { version, settled, settled_before, discarded, boundaries } = watermark;
        let watermark =
            Watermark { version, settled: settled_before, discarded, origin, boundaries };
        self.pending.push(Pending::Watermark { watermark: Box::new(watermark), handles: settled });
    }

    /// Returns the attempts whose outcome is not recorded. The outcomes of attempts in a pending watermark are
    /// recorded.
    pub(super) fn unsettled(&self) -> Vec<AttemptHandle> {
        let is_settled = |handle: &AttemptHandle| {
            self.pending.iter().any(|pending| match pending {
                Pending::Watermark { handles, .. } => handles.contains(handle),
                Pending::Begin { .. } | Pending::Chunks { .. } => false,
            })
        };
        self.open.iter().map(|open| open.handle).filter(|handle| !is_settled(handle)).collect()
    }

    /// Returns the effect of an attempt.
    pub(super) fn effect(&self, handle: AttemptHandle) -> Option<&Effect> {
        self.open.iter().find(|open| open.handle == handle).map(|open| &open.effect)
    }

    /// Drops the pending operations of attempts, and discards their written chunks.
    pub(super) fn discard(&mut self, handles: &[AttemptHandle], origin: Arc<Chunk>) {
        let mut unwritten = Vec::new();
        self.pending.retain(|pending| match pending {
            Pending::Begin { handle, .. } if handles.contains(handle) => {
                unwritten.push(*handle);
                false
            }
            Pending::Chunks { handle: Some(handle), .. } => !handles.contains(handle),
            Pending::Begin { .. } | Pending::Chunks { handle: None, .. } => true,
            Pending::Watermark { .. } => true,
        });
        let mut discarded = Vec::new();
        for open in self.open.extract_if(.., |open| handles.contains(&open.handle)) {
            match open.attempt {
                Some(attempt) => discarded.push(attempt),
                None if unwritten.contains(&open.handle) => {}
                None => self.discarded_early.push((open.handle, Arc::clone(&origin))),
            }
        }
        self.discard_written(discarded, origin);
    }

    fn discard_written(&mut self, discarded: Vec<Attempt>, origin: Arc<Chunk>) {
        if !discarded.is_empty() {
            // Version 0 leaves the watermark version unchanged: a later watermark may be pending.
            self.watermark(
                WatermarkUpdate { version: 0, discarded, ..WatermarkUpdate::default() },
                origin,
            );
        }
    }

    /// Returns `true` if a discard is pending.
    pub(super) fn has_discard(&self) -> bool {
        self.pending.iter().any(|pending| match pending {
            Pending::Watermark { watermark, .. } => watermark.version == 0,
            Pending::Begin { .. } | Pending::Chunks { .. } => false,
        })
    }

    /// Takes all pending operations, up to a watermark that settles an attempt started in the same batch. Chunks of
    /// an attempt that could not be started are dropped.
    pub(super) fn take(&mut self) -> Taken {
        self.bytes = 0;
        self.has_news = false;
        let mut waiting = std::mem::take(&mut self.pending);
        let mut ops = Vec::with_capacity(waiting.len());
        let mut started = Vec::new();
        let mut rest = waiting.drain(..);
        while let Some(pending) = rest.next() {
            match pending {
                Pending::Begin { handle, effect, origin } => {
                    started.push(handle);
                    ops.push(StreamOp::Begin { effect, origin });
                }
                Pending::Chunks { handle: None, chunks } => {
                    ops.push(StreamOp::Chunks { attempt: None, chunks });
                }
                Pending::Chunks { handle: Some(handle), chunks } => {
                    let here =
                        started.iter().position(|other| *other == handle).map(AttemptRef::Started);
                    let attempt = here.or_else(|| self.attempt(handle).map(AttemptRef::Existing));
                    if attempt.is_some() {
                        ops.push(StreamOp::Chunks { attempt, chunks });
                    }
                }
                Pending::Watermark { handles, watermark }
                    if handles.iter().any(|handle| started.contains(handle)) =>
                {
                    self.pending.push(Pending::Watermark { watermark, handles });
                    self.pending.extend(rest);
                    return Taken { ops, started, has_more: true };
                }
                Pending::Watermark { handles, mut watermark } => {
                    // An attempt without a number could not be started.
                    watermark.settled.append(&mut self.carried_over);
                    watermark
                        .settled
                        .extend(handles.iter().filter_map(|handle| self.attempt(*handle)));
                    self.open.retain(|open| !handles.contains(&open.handle));
                    ops.push(StreamOp::Watermark(watermark));
                }
            }
        }
        drop(rest);
        // Reuse the allocation for the next batch.
        self.pending = waiting;
        Taken { ops, started, has_more: false }
    }

    /// Records that these operations were dropped.
    pub(super) fn lost(&mut self, ops: &[StreamOp]) {
        for op in ops {
            if let StreamOp::Watermark(watermark) = op {
                self.carried_over.extend(&watermark.settled);
            }
        }
    }

    /// Stores the numbers of attempts whose start was written.
    pub(super) fn set_numbers(&mut self, started: Vec<AttemptHandle>, attempts: &[Attempt]) {
        for (handle, attempt) in started.into_iter().zip(attempts) {
            if let Some(open) = self.open.iter_mut().find(|open| open.handle == handle) {
                open.attempt = Some(*attempt);
            } else if let Some(at) =
                self.discarded_early.iter().position(|(discarded, _)| *discarded == handle)
            {
                let (_, origin) = self.discarded_early.swap_remove(at);
                self.discard_written(vec![*attempt], origin);
            }
        }
    }

    fn attempt(&self, handle: AttemptHandle) -> Option<Attempt> {
        self.open.iter().find(|open| open.handle == handle)?.attempt
    }
}

/// Returns the kind of a buffered chunk. A buffered chunk is not shared yet.
fn kind_mut(chunk: &mut Arc<Chunk>) -> Option<&mut ChunkKind> {
    Arc::get_mut(chunk).map(|chunk| &mut chunk.kind)
}

/// Merges a delta into the previous chunk if both belong to the same content. Otherwise returns it.
fn merged(last: Option<&mut ChunkKind>, next: ChunkKind) -> Option<ChunkKind> {
    match (last, next) {
        (Some(ChunkKind::TextDelta { delta: before }), ChunkKind::TextDelta { delta })
        | (
            Some(ChunkKind::Thinking { content: before, complete: false }),
            ChunkKind::Thinking { content: delta, complete: false },
        ) => before.push_str(&delta),
        (
            Some(ChunkKind::ToolArgDelta { index: same, delta: before }),
            ChunkKind::ToolArgDelta { index, delta },
        ) if *same == index => before.push_str(&delta),
        (_, next) => return Some(next),
    }
    None
}

/// Returns the approximate size of a chunk. No kind of chunk is urgent enough to be written before a batch is due.
fn weight(kind: &ChunkKind) -> usize {
    match kind {
        ChunkKind::TextDelta { delta } | ChunkKind::ToolArgDelta { delta, .. } => delta.len(),
        ChunkKind::Thinking { content, .. } => content.len(),
        ChunkKind::ToolStart { arguments, .. } | ChunkKind::SubagentStart { arguments, .. } => {
            arguments.len()
        }
        ChunkKind::ToolEnd { result: Some(result), .. } => result.len(),
        ChunkKind::Custom { data, .. } => data.len(),
        _ => 64,
    }
}

#[cfg(test)]
mod tests;
