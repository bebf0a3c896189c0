//! What a batch makes of a stream, before anything is written: the new state, the chunks with their numbers, and what
//! else has to be noted.

use std::sync::Arc;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{
    Attempt, AttemptRef, Chunk, ChunkKind, Effect, Marked, StreamOp, Written, check_batch,
};

use super::body::{Body, Encoder, Part};
use super::row::{Known, Open};

/// A batch whose chunks are encoded, however often it is then tried to write it.
pub(super) struct Batch(Vec<Op>);

enum Op {
    Begin { effect: Effect, origin: Origin },
    Chunks { attempt: Option<AttemptRef>, chunks: Vec<Part> },
    Mark(Mark),
}

/// Where announcements come from.
struct Origin {
    session: SessionId,
    text: Arc<str>,
    at: Timestamp,
}

struct Mark {
    version: u64,
    settled: Vec<Attempt>,
    discarded: Vec<Attempt>,
    origin: Origin,
    /// With their versions.
    boundaries: Vec<(u64, Part)>,
}

impl Batch {
    pub(super) fn new(batch: Vec<StreamOp>) -> Result<Self> {
        check_batch(&batch)?;
        let mut encoder = Encoder::default();
        let mut ops = Vec::with_capacity(batch.len());
        for op in batch {
            ops.push(match op {
                StreamOp::Begin { effect, origin } => {
                    Op::Begin { effect, origin: Origin::new(&mut encoder, &origin)? }
                }
                StreamOp::Chunks { attempt, chunks } => {
                    Op::Chunks { attempt, chunks: encoder.parts(&chunks)? }
                }
                StreamOp::Mark(mark) => Op::Mark(Mark {
                    version: mark.version,
                    settled: mark.settled,
                    discarded: mark.discarded,
                    origin: Origin::new(&mut encoder, &mark.origin)?,
                    boundaries: encoder.boundaries(&mark.boundaries)?,
                }),
            });
        }
        Ok(Self(ops))
    }

    /// What becomes of a stream that stands so.
    pub(super) fn apply(&self, session: &SessionId, known: Known) -> Result<Change> {
        let mut change = Change::of(session, known);
        for op in &self.0 {
            match op {
                Op::Begin { effect, origin } => {
                    let begun = change.begin(effect, origin)?;
                    change.written.begun.push(begun);
                }
                Op::Chunks { attempt, chunks } => {
                    let attempt = attempt.map(|named| change.written.attempt(named)).transpose()?;
                    if attempt.is_none_or(|attempt| change.after.is_open(attempt)) {
                        change.add(attempt, chunks);
                    } else {
                        change.written.refused.extend(attempt);
                    }
                }
                Op::Mark(mark) => change.mark(mark)?,
            }
        }
        change.written.last_seq = change.after.last_seq;
        Ok(change)
    }
}

impl Origin {
    fn new(encoder: &mut Encoder, chunk: &Chunk) -> Result<Self> {
        let session = chunk.session.clone();
        Ok(Self { session, text: encoder.origin(chunk)?, at: chunk.at })
    }
}

/// What is to be written.
pub(super) struct Change {
    session: SessionId,
    /// How the stream stands then.
    pub(super) after: Known,
    pub(super) is_changed: bool,
    /// Chunks that have numbers and no row yet.
    pub(super) body: Body,
    /// Attempts that were discarded, and the last chunk then.
    pub(super) discarded: Vec<(Attempt, u64)>,
    /// Children whose logs are marked further than before.
    pub(super) children: Vec<SessionId>,
    pub(super) written: Written,
}

impl Change {
    fn of(session: &SessionId, known: Known) -> Self {
        Self {
            session: session.clone(),
            after: known,
            is_changed: false,
            body: Body::default(),
            discarded: Vec::new(),
            children: Vec::new(),
            written: Written::default(),
        }
    }

    fn begin(&mut self, effect: &Effect, origin: &Origin) -> Result<Attempt> {
        let child = (origin.session != self.session).then(|| origin.session.clone());
        let same = |open: &&Open| open.effect == *effect && open.child == child;
        if let Some(earlier) = self.after.open.iter().find(same) {
            self.discard(&[earlier.attempt], origin)?;
        }
        self.after.last_attempt += 1;
        let attempt = Attempt(self.after.last_attempt);
        let began = self.after.last_seq;
        self.after.open.push(Open { attempt, effect: effect.clone(), child, began });
        self.is_changed = true;
        Ok(attempt)
    }

    fn mark(&mut self, mark: &Mark) -> Result<()> {
        // Nothing has to be known of them any more: their chunks stay, and no more are taken.
        let settled = self.after.close(&mark.settled);
        if !settled.is_empty() {
            let kind = ChunkKind::StepCommitted { attempts: settled, version: mark.version };
            self.announce(&mark.origin, &kind)?;
        }
        self.discard(&mark.discarded, &mark.origin)?;
        let of = &mark.origin.session;
        let is_own = *of == self.session;
        let before = if is_own {
            self.after.marked
        } else {
            self.after.marks.get(of).copied().unwrap_or_default()
        };
        if mark.version <= before.version {
            return Ok(());
        }
        let is_new = |(version, _): &&(u64, Part)| *version > before.version;
        for (_, boundary) in mark.boundaries.iter().filter(is_new) {
            self.add(None, std::slice::from_ref(boundary));
        }
        self.is_changed = true;
        let marked = Marked { version: mark.version, seq: self.after.last_seq };
        if is_own {
            self.after.marked = marked;
        } else {
            self.after.marks.insert(of.clone(), marked);
            if !self.children.contains(of) {
                self.children.push(of.clone());
            }
        }
        Ok(())
    }

    /// Discards those that are open, and announces it. Their chunks are left out by readers.
    fn discard(&mut self, attempts: &[Attempt], origin: &Origin) -> Result<()> {
        let attempts = self.after.close(attempts);
        if attempts.is_empty() {
            return Ok(());
        }
        let last_seq = self.after.last_seq;
        self.discarded.extend(attempts.iter().map(|attempt| (*attempt, last_seq)));
        self.announce(origin, &ChunkKind::StepDiscarded { attempts })
    }

    fn announce(&mut self, origin: &Origin, kind: &ChunkKind) -> Result<()> {
        let mut part = Part::new(Arc::clone(&origin.text));
        part.push(origin.at, kind)?;
        self.add(None, &[part]);
        Ok(())
    }

    fn add(&mut self, attempt: Option<Attempt>, chunks: &[Part]) {
        for part in chunks {
            let before = self.body.count;
            self.body.push(attempt, part);
            self.after.last_seq += self.body.count - before;
            self.is_changed = true;
        }
    }
}
