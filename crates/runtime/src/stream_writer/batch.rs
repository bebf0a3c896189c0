//! What gathers between two writes of a stream.

use helix_agents_core::stream::{
    Attempt, AttemptRef, Boundary, Chunk, ChunkKind, Effect, StreamOp, Watermark,
};

use super::AttemptHandle;

/// From how many bytes on a batch does not wait.
const BATCH_BYTES: usize = 4 * 1024;

/// From how much on it does not wait for the batch before, which cannot be written: bytes, and parts.
const TOO_MUCH: (usize, usize) = (1024 * 1024, 4 * 1024);

/// What is to be written next, and what is known of the tries that it belongs to.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pending: Vec<Pending>,
    /// How much of it people wait for.
    bytes: usize,
    last_ticket: u32,
    /// Tries that are neither settled nor begun anew.
    open: Vec<Open>,
    /// Attempts on record whose mark the stream could not take: the next mark settles them. Otherwise a mark
    /// would discard those of earlier runs.
    owed: Vec<Attempt>,
}

#[derive(Debug)]
enum Pending {
    Begin {
        ticket: AttemptHandle,
        effect: Effect,
        origin: Chunk,
    },
    Chunks {
        ticket: Option<AttemptHandle>,
        chunks: Vec<Chunk>,
    },
    /// With the tries that it settles, of which the numbers may not be known yet.
    Watermark {
        mark: Box<Watermark>,
        tickets: Vec<AttemptHandle>,
    },
}

/// What can be written in one go.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) ops: Vec<StreamOp>,
    /// The tries that it begins.
    pub(super) begun: Vec<AttemptHandle>,
    /// Whether there is more, which needs the numbers of these tries.
    pub(super) has_more: bool,
}

#[derive(Debug)]
struct Open {
    ticket: AttemptHandle,
    effect: Effect,
    /// Its number, once it was written.
    attempt: Option<Attempt>,
}

/// What an append of the log means for the stream.
#[derive(Debug, Default)]
pub(crate) struct FeedMark {
    /// The log's version.
    pub(crate) version: u64,
    /// Tries of this run whose outcome is in the log.
    pub(crate) settled: Vec<AttemptHandle>,
    /// Attempts of earlier runs whose outcome is in the log.
    pub(crate) settled_before: Vec<Attempt>,
    /// Attempts of earlier runs whose outcome never will be.
    pub(crate) discarded: Vec<Attempt>,
    /// What the appended events show.
    pub(crate) boundaries: Vec<Boundary>,
}

impl Batch {
    pub(super) fn begin(&mut self, effect: Effect, origin: Chunk) -> AttemptHandle {
        self.last_ticket += 1;
        let ticket = AttemptHandle(self.last_ticket);
        self.open.retain(|open| open.effect != effect);
        self.open.push(Open { ticket, effect: effect.clone(), attempt: None });
        self.pending.push(Pending::Begin { ticket, effect, origin });
        ticket
    }

    /// Adds a chunk of this try, or a boundary: to the one before it, if both are pieces of one.
    pub(super) fn push(
        &mut self,
        ticket: Option<AttemptHandle>,
        kind: ChunkKind,
        chunk: impl FnOnce(ChunkKind) -> Chunk,
    ) {
        self.bytes += weight(&kind);
        match self.pending.last_mut() {
            Some(Pending::Chunks { ticket: of, chunks }) if *of == ticket => {
                let last = chunks.last_mut().map(|chunk| &mut chunk.kind);
                if let Some(kind) = joined(last, kind) {
                    chunks.push(chunk(kind));
                }
            }
            _ => {
                // Most come in twos: the start and the end of something.
                let mut chunks = Vec::with_capacity(2);
                chunks.push(chunk(kind));
                self.pending.push(Pending::Chunks { ticket, chunks });
            }
        }
    }

    /// Adds text to the last chunk, if that is text of the same try.
    pub(super) fn extend_text(&mut self, ticket: AttemptHandle, delta: &str) -> bool {
        let Some(Pending::Chunks { ticket: of, chunks }) = self.pending.last_mut() else {
            return false;
        };
        let last = chunks.last_mut().filter(|_| *of == Some(ticket));
        let Some(ChunkKind::TextDelta { delta: before }) = last.map(|chunk| &mut chunk.kind) else {
            return false;
        };
        before.push_str(delta);
        self.bytes += delta.len();
        true
    }

    /// Whether it should be written without waiting for more.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES
    }

    /// Whether so much has gathered that what cannot be written before it is given up.
    pub(super) fn is_too_much(&self) -> bool {
        self.bytes >= TOO_MUCH.0 || self.pending.len() >= TOO_MUCH.1
    }

    pub(super) fn mark(&mut self, mark: FeedMark, origin: Chunk) {
        let FeedMark { version, settled, settled_before, discarded, boundaries } = mark;
        let mark = Watermark { version, settled: settled_before, discarded, origin, boundaries };
        self.pending.push(Pending::Watermark { mark: Box::new(mark), tickets: settled });
    }

    /// The tries whose outcome is not recorded. That of a try in a waiting mark is.
    pub(super) fn unsettled(&self) -> Vec<AttemptHandle> {
        let is_settled = |ticket: &AttemptHandle| {
            self.pending.iter().any(|pending| match pending {
                Pending::Watermark { tickets, .. } => tickets.contains(ticket),
                Pending::Begin { .. } | Pending::Chunks { .. } => false,
            })
        };
        self.open.iter().map(|open| open.ticket).filter(|ticket| !is_settled(ticket)).collect()
    }

    /// What is tried.
    pub(super) fn effect(&self, ticket: AttemptHandle) -> Option<&Effect> {
        self.open.iter().find(|open| open.ticket == ticket).map(|open| &open.effect)
    }

    /// Forgets what waits of tries, and discards what was written of them.
    pub(super) fn abandon(&mut self, tickets: &[AttemptHandle], origin: Chunk) {
        self.pending.retain(|pending| match pending {
            Pending::Begin { ticket, .. } | Pending::Chunks { ticket: Some(ticket), .. } => {
                !tickets.contains(ticket)
            }
            Pending::Chunks { ticket: None, .. } | Pending::Watermark { .. } => true,
        });
        let left = self.open.extract_if(.., |open| tickets.contains(&open.ticket));
        let discarded: Vec<_> = left.filter_map(|open| open.attempt).collect();
        if !discarded.is_empty() {
            // It says nothing of how far the log is shown: another one may be about to.
            self.mark(FeedMark { version: 0, discarded, ..FeedMark::default() }, origin);
        }
    }

    /// Everything that waits, as the stream takes it, up to a mark that settles what begins before it.
    /// What belongs to a try that could not be begun is left out.
    pub(super) fn take(&mut self) -> Taken {
        self.bytes = 0;
        let waiting = std::mem::take(&mut self.pending);
        let mut ops = Vec::with_capacity(waiting.len());
        let mut begun = Vec::new();
        let mut waiting = waiting.into_iter();
        while let Some(pending) = waiting.next() {
            match pending {
                Pending::Begin { ticket, effect, origin } => {
                    begun.push(ticket);
                    ops.push(StreamOp::Begin { effect, origin });
                }
                Pending::Chunks { ticket: None, chunks } => {
                    ops.push(StreamOp::Chunks { attempt: None, chunks });
                }
                Pending::Chunks { ticket: Some(ticket), chunks } => {
                    let here = begun.iter().position(|it| *it == ticket).map(AttemptRef::Started);
                    let attempt = here.or_else(|| self.attempt(ticket).map(AttemptRef::Existing));
                    if attempt.is_some() {
                        ops.push(StreamOp::Chunks { attempt, chunks });
                    }
                }
                Pending::Watermark { tickets, mark }
                    if tickets.iter().any(|it| begun.contains(it)) =>
                {
                    self.pending.push(Pending::Watermark { mark, tickets });
                    self.pending.extend(waiting);
                    return Taken { ops, begun, has_more: true };
                }
                Pending::Watermark { tickets, mut mark } => {
                    // One that is unknown could not be begun.
                    mark.settled.append(&mut self.owed);
                    mark.settled.extend(tickets.iter().filter_map(|it| self.attempt(*it)));
                    self.open.retain(|open| !tickets.contains(&open.ticket));
                    ops.push(StreamOp::Watermark(mark));
                }
            }
        }
        Taken { ops, begun, has_more: false }
    }

    /// Notes that these operations were given up.
    pub(super) fn lost(&mut self, ops: &[StreamOp]) {
        for op in ops {
            if let StreamOp::Watermark(mark) = op {
                self.owed.extend(&mark.settled);
            }
        }
    }

    /// Learns the numbers of tries that were written.
    pub(super) fn learn(&mut self, begun: Vec<AttemptHandle>, attempts: &[Attempt]) {
        for (ticket, attempt) in begun.into_iter().zip(attempts) {
            if let Some(open) = self.open.iter_mut().find(|open| open.ticket == ticket) {
                open.attempt = Some(*attempt);
            }
        }
    }

    fn attempt(&self, ticket: AttemptHandle) -> Option<Attempt> {
        self.open.iter().find(|open| open.ticket == ticket)?.attempt
    }
}

/// Puts a piece behind the one before it, if they are pieces of the same; else gives it back.
fn joined(last: Option<&mut ChunkKind>, next: ChunkKind) -> Option<ChunkKind> {
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

/// About how much of a batch it fills. Nothing is so urgent that nobody could wait for it as long as
/// for the text beside it.
fn weight(kind: &ChunkKind) -> usize {
    match kind {
        ChunkKind::TextDelta { delta } | ChunkKind::ToolArgDelta { delta, .. } => delta.len(),
        ChunkKind::Thinking { content, .. } => content.len(),
        ChunkKind::ToolStart { arguments, .. } => arguments.len(),
        ChunkKind::ToolEnd { result: Some(result), .. } => result.len(),
        ChunkKind::Custom { data, .. } => data.len(),
        _ => 64,
    }
}

#[cfg(test)]
mod tests;
