//! One stream: the rules of chunks, attempts and marks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::Result;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::stream::{
    Attempt, Chunk, ChunkKind, Effect, Mark, Marked, OpenAttempt, StoredChunk, StreamInfo,
    StreamOp, Written, check_batch,
};

/// The chunks that are kept, and what is known of attempts. Only open ones have to be known: a
/// settled attempt's chunks stay, and a discarded one's are emptied at once.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The last chunk that is not kept any more.
    trimmed: u64,
    /// The chunks after it; `None` where one was discarded.
    chunks: VecDeque<Option<StoredChunk>>,
    last_attempt: u64,
    open: Vec<Open>,
    marked: BTreeMap<SessionId, Marked>,
}

#[derive(Debug)]
struct Open {
    attempt: Attempt,
    session: SessionId,
    effect: Effect,
    /// The last chunk before it began.
    began: u64,
}

impl Stream {
    /// Writes a batch; nothing of one that names an attempt which it does not begin before.
    pub(crate) fn write(&mut self, batch: Vec<StreamOp>, retention: usize) -> Result<Written> {
        check_batch(&batch)?;
        let mut written = Written::default();
        for op in batch {
            match op {
                StreamOp::Begin { effect, origin } => {
                    written.begun.push(self.begin(effect, &origin, retention));
                }
                StreamOp::Chunks { attempt, chunks } => {
                    let attempt = attempt.map(|named| written.attempt(named)).transpose()?;
                    if !self.append(attempt, chunks, retention) {
                        written.refused.extend(attempt);
                    }
                }
                StreamOp::Mark(mark) => self.mark(*mark, retention),
            }
        }
        written.last_seq = self.last_seq();
        Ok(written)
    }

    fn begin(&mut self, effect: Effect, origin: &Chunk, retention: usize) -> Attempt {
        let same = |it: &&Open| it.effect == effect && it.session == origin.session;
        let earlier = self.open.iter().find(same);
        if let Some(attempt) = earlier.map(|it| it.attempt) {
            let discarded = self.discard(&[attempt]);
            self.announce(origin, discarded, retention);
        }
        self.last_attempt += 1;
        let attempt = Attempt(self.last_attempt);
        let session = origin.session.clone();
        self.open.push(Open { attempt, session, effect, began: self.last_seq() });
        attempt
    }

    /// Whether the chunks were taken.
    fn append(&mut self, attempt: Option<Attempt>, chunks: Vec<Chunk>, retention: usize) -> bool {
        let is_open = |attempt| self.open.iter().any(|it| it.attempt == attempt);
        if !attempt.is_none_or(is_open) {
            return false;
        }
        for chunk in chunks {
            self.push(attempt, chunk, retention);
        }
        true
    }

    fn mark(&mut self, mark: Mark, retention: usize) {
        let settled = self.close(&mark.settled);
        let settled: Vec<Attempt> = settled.iter().map(|it| it.attempt).collect();
        if !settled.is_empty() {
            let kind = ChunkKind::StepCommitted { attempts: settled, version: mark.version };
            let origin = mark.origin.clone();
            self.push(None, Chunk { kind, ..origin }, retention);
        }
        let discarded = self.discard(&mark.discarded);
        self.announce(&mark.origin, discarded, retention);
        // Most streams are of one session.
        if !self.marked.contains_key(&mark.origin.session) {
            self.marked.insert(mark.origin.session.clone(), Marked::default());
        }
        let known = self.marked.get(&mark.origin.session).map_or(0, |marked| marked.version);
        if mark.version > known {
            for boundary in mark.boundaries.into_iter().filter(|it| it.version > known) {
                self.push(None, boundary.chunk, retention);
            }
            let seq = self.last_seq();
            if let Some(marked) = self.marked.get_mut(&mark.origin.session) {
                *marked = Marked { version: mark.version, seq };
            }
        }
    }

    pub(crate) fn info(&self) -> StreamInfo {
        StreamInfo {
            first_seq: if self.chunks.is_empty() { 0 } else { self.trimmed + 1 },
            last_seq: self.last_seq(),
            marked: self.marked.clone(),
            open: self.open.iter().map(Open::public).collect(),
        }
    }

    pub(crate) fn reset(&mut self) {
        *self =
            Self { trimmed: self.last_seq(), last_attempt: self.last_attempt, ..Self::default() };
    }

    /// The next chunk for a reader that wants `cursor`, which moves on behind it.
    pub(crate) fn next(
        &self,
        session: &SessionId,
        cursor: &mut u64,
        now: Timestamp,
    ) -> Option<StoredChunk> {
        if *cursor <= self.trimmed {
            *cursor = self.trimmed + 1;
            return Some(self.resync(session, self.trimmed, now));
        }
        let last = self.last_seq();
        if *cursor > last + 1 {
            *cursor = last + 1;
            return Some(self.resync(session, last, now));
        }
        loop {
            let index = usize::try_from(*cursor - self.trimmed - 1).ok()?;
            let chunk = self.chunks.get(index)?;
            *cursor += 1;
            if chunk.is_some() {
                return chunk.clone();
            }
        }
    }

    fn last_seq(&self) -> u64 {
        self.trimmed + self.chunks.len() as u64
    }

    fn push(&mut self, attempt: Option<Attempt>, chunk: Chunk, retention: usize) {
        let seq = self.last_seq() + 1;
        let chunk = Arc::new(chunk);
        self.chunks.push_back(Some(StoredChunk { seq, attempt, chunk }));
        while self.chunks.len() > retention.max(1) {
            self.chunks.pop_front();
            self.trimmed += 1;
        }
    }

    /// Takes those that are open off the list of open attempts; returns them.
    fn close(&mut self, attempts: &[Attempt]) -> Vec<Open> {
        self.open.extract_if(.., |it| attempts.contains(&it.attempt)).collect()
    }

    fn discard(&mut self, attempts: &[Attempt]) -> Vec<Attempt> {
        let closed = self.close(attempts);
        let discarded: Vec<Attempt> = closed.iter().map(|it| it.attempt).collect();
        let Some(began) = closed.iter().map(|it| it.began).min() else {
            return discarded;
        };
        let since = usize::try_from(self.last_seq() - began).unwrap_or(usize::MAX);
        for slot in self.chunks.iter_mut().rev().take(since) {
            let attempt = slot.as_ref().and_then(|it| it.attempt);
            if attempt.is_some_and(|it| discarded.contains(&it)) {
                *slot = None;
            }
        }
        discarded
    }

    fn announce(&mut self, origin: &Chunk, discarded: Vec<Attempt>, retention: usize) {
        if !discarded.is_empty() {
            let kind = ChunkKind::StepDiscarded { attempts: discarded };
            let origin = origin.clone();
            self.push(None, Chunk { kind, ..origin }, retention);
        }
    }

    /// What a reader gets instead of chunks that are not kept. It looks as if it came from whoever
    /// wrote last.
    fn resync(&self, session: &SessionId, seq: u64, now: Timestamp) -> StoredChunk {
        let last = self.chunks.iter().rev().flatten().next();
        let last = last.map(|it| &*it.chunk);
        let chunk = Chunk {
            agent: last.map_or_else(|| "".into(), |it| Arc::clone(&it.agent)),
            session: session.clone(),
            run: last.map_or_else(|| RunId::from(""), |it| it.run.clone()),
            step: last.map_or(0, |it| it.step),
            at: last.map_or(now, |it| it.at),
            kind: ChunkKind::StreamResync,
        };
        StoredChunk { seq, attempt: None, chunk: Arc::new(chunk) }
    }
}

impl Open {
    fn public(&self) -> OpenAttempt {
        let (session, effect) = (self.session.clone(), self.effect.clone());
        OpenAttempt { attempt: self.attempt, session, effect, began: self.began }
    }
}
