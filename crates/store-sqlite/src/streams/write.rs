//! Writing streams: a batch is one row of chunks, and one change of the stream's own.

use std::sync::Arc;

use rusqlite::{OptionalExtension as _, params};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{
    Attempt, AttemptRef, Chunk, ChunkKind, Effect, StreamOp, Written, check_batch,
};

use super::body::{Body, Encoder, Part};
use super::row::{Open, StreamRow};
use crate::error::Failure;
use crate::place;
use crate::prepared::Tables;

/// A batch whose chunks are encoded, so that the thread that writes need not.
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
}

impl Origin {
    fn new(encoder: &mut Encoder, chunk: &Chunk) -> Result<Self> {
        let session = chunk.session.clone();
        Ok(Self { session, text: encoder.origin(chunk)?, at: chunk.at })
    }
}

pub(super) fn write(
    tables: &mut Tables<'_>,
    session: &SessionId,
    batch: &Batch,
    retention: u64,
) -> Result<Written, Failure> {
    let mut stream = Stream::find(tables, session)?;
    let mut written = Written::default();
    for op in &batch.0 {
        match op {
            Op::Begin { effect, origin } => written.begun.push(stream.begin(effect, origin)?),
            Op::Chunks { attempt, chunks } => {
                let attempt = attempt.map(|named| written.attempt(named)).transpose()?;
                if attempt.is_none_or(|attempt| stream.row.is_open(attempt)) {
                    stream.add(attempt, chunks);
                } else {
                    written.refused.extend(attempt);
                }
            }
            Op::Mark(mark) => stream.mark(mark)?,
        }
    }
    written.last_seq = stream.row.last_seq;
    stream.save(retention)?;
    Ok(written)
}

pub(super) fn reset(tables: &mut Tables<'_>, session: &SessionId) -> Result<(), Failure> {
    let mut stream = Stream::find(tables, session)?;
    if stream.row.key == 0 {
        return Ok(());
    }
    let (connection, chunks) = (stream.tables.connection, place::all(stream.row.key));
    connection
        .prepare_cached("DELETE FROM chunks WHERE key BETWEEN ?1 AND ?2")?
        .execute([chunks.start(), chunks.end()])?;
    connection
        .prepare_cached("DELETE FROM discarded WHERE stream = ?1")?
        .execute([stream.row.key])?;
    connection.prepare_cached("DELETE FROM marks WHERE stream = ?1")?.execute([stream.row.key])?;
    stream.row.trimmed = stream.row.last_seq;
    stream.row.marked = 0;
    stream.row.marked_seq = 0;
    stream.row.open.clear();
    stream.is_changed = true;
    stream.save(u64::MAX)
}

/// Takes a stream out, with all that is known of it.
pub(crate) fn forget(tables: &mut Tables<'_>, session: &SessionId) -> Result<(), Failure> {
    reset(tables, session)?;
    let stream = "DELETE FROM streams WHERE session = ?1";
    tables.connection.prepare_cached(stream)?.execute([session.as_str()])?;
    Ok(())
}

/// A stream while it is written to.
struct Stream<'t, 'c> {
    tables: &'t mut Tables<'c>,
    session: &'t SessionId,
    row: StreamRow,
    is_changed: bool,
    /// Chunks that have numbers and no row yet.
    body: Body,
}

impl<'t, 'c> Stream<'t, 'c> {
    fn find(tables: &'t mut Tables<'c>, session: &'t SessionId) -> Result<Self, Failure> {
        let row = StreamRow::find(tables.streams.find.get()?, session)?.unwrap_or_default();
        Ok(Self { tables, session, row, is_changed: false, body: Body::default() })
    }

    fn begin(&mut self, effect: &Effect, origin: &Origin) -> Result<Attempt, Failure> {
        let child = (origin.session != *self.session).then(|| origin.session.clone());
        let same = |open: &&Open| open.effect == *effect && open.child == child;
        if let Some(earlier) = self.row.open.iter().find(same) {
            self.discard(&[earlier.attempt], origin)?;
        }
        self.row.last_attempt += 1;
        let attempt = Attempt(self.row.last_attempt);
        let began = self.row.last_seq;
        self.row.open.push(Open { attempt, effect: effect.clone(), child, began });
        self.is_changed = true;
        Ok(attempt)
    }

    fn mark(&mut self, mark: &Mark) -> Result<(), Failure> {
        // Nothing has to be known of them any more: their chunks stay, and no more are taken.
        let settled = self.row.close(&mark.settled);
        if !settled.is_empty() {
            let kind = ChunkKind::StepCommitted { attempts: settled, version: mark.version };
            self.announce(&mark.origin, &kind)?;
        }
        self.discard(&mark.discarded, &mark.origin)?;
        let known = self.marked(&mark.origin.session)?;
        if mark.version > known {
            for (_, boundary) in mark.boundaries.iter().filter(|(version, _)| *version > known) {
                self.add(None, std::slice::from_ref(boundary));
            }
            self.note_mark(&mark.origin.session, mark.version)?;
        }
        Ok(())
    }

    /// The version of the session's last mark; 0 if there is none.
    fn marked(&self, session: &SessionId) -> Result<u64, Failure> {
        if *session == *self.session {
            return Ok(self.row.marked);
        }
        let version = self
            .tables
            .connection
            .prepare_cached("SELECT version FROM marks WHERE stream = ?1 AND session = ?2")?
            .query_row(params![self.row.key, session.as_str()], |row| row.get(0))
            .optional()?;
        Ok(version.unwrap_or(0))
    }

    /// Notes that the session is marked at this version with what was written so far.
    fn note_mark(&mut self, session: &SessionId, version: u64) -> Result<(), Failure> {
        let seq = self.row.last_seq;
        self.is_changed = true;
        if *session == *self.session {
            (self.row.marked, self.row.marked_seq) = (version, seq);
            return Ok(());
        }
        let key = self.key()?;
        self.tables
            .connection
            .prepare_cached(
                "INSERT INTO marks (stream, session, version, seq) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET version = ?3, seq = ?4",
            )?
            .execute(params![key, session.as_str(), version, seq])?;
        Ok(())
    }

    /// Discards those that are open, and announces it. Their chunks are left out by readers.
    fn discard(&mut self, attempts: &[Attempt], origin: &Origin) -> Result<(), Failure> {
        let attempts = self.row.close(attempts);
        if attempts.is_empty() {
            return Ok(());
        }
        let key = self.key()?;
        for attempt in &attempts {
            self.tables
                .connection
                .prepare_cached(
                    "INSERT INTO discarded (stream, attempt, at_seq) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![key, attempt.0, self.row.last_seq])?;
        }
        self.announce(origin, &ChunkKind::StepDiscarded { attempts })
    }

    fn announce(&mut self, origin: &Origin, kind: &ChunkKind) -> Result<(), Failure> {
        let mut part = Part::new(Arc::clone(&origin.text));
        part.push(origin.at, kind)?;
        self.add(None, &[part]);
        Ok(())
    }

    fn add(&mut self, attempt: Option<Attempt>, chunks: &[Part]) {
        for part in chunks {
            let before = self.body.count;
            self.body.push(attempt, part);
            self.row.last_seq += self.body.count - before;
            self.is_changed = true;
        }
    }

    /// The stream's own row, which is made if it has none yet.
    fn key(&mut self) -> Result<i64, Failure> {
        if self.row.key == 0 {
            self.row.key = StreamRow::begin(self.tables.connection, self.session)?.key;
        }
        Ok(self.row.key)
    }

    fn save(mut self, retention: u64) -> Result<(), Failure> {
        if !self.is_changed {
            return Ok(());
        }
        let key = self.key()?;
        if self.body.count > 0 {
            let (place, count) = (place::of(key, self.row.last_seq)?, self.body.count);
            let body = std::mem::take(&mut self.body).finish();
            self.tables.streams.add.get()?.execute(params![place, count, body])?;
        }
        self.trim(retention)?;
        self.row.save(self.tables.streams.save.get()?)
    }

    /// Deletes what is no longer kept: whole rows, and some at a time.
    fn trim(&mut self, retention: u64) -> Result<(), Failure> {
        let row = &mut self.row;
        if row.last_seq - row.trimmed <= retention.saturating_add(retention / 8) {
            return Ok(());
        }
        let connection = self.tables.connection;
        let (first, last) =
            (place::up_to(row.key, 0), place::up_to(row.key, row.last_seq - retention));
        let last: Option<i64> = connection
            .prepare_cached("SELECT max(key) FROM chunks WHERE key BETWEEN ?1 AND ?2")?
            .query_row([first, last], |row| row.get(0))?;
        let Some(last) = last else { return Ok(()) };
        connection
            .prepare_cached("DELETE FROM chunks WHERE key BETWEEN ?1 AND ?2")?
            .execute([first, last])?;
        row.trimmed = place::number(last);
        connection
            .prepare_cached("DELETE FROM discarded WHERE stream = ?1 AND at_seq <= ?2")?
            .execute(params![row.key, row.trimmed])?;
        Ok(())
    }
}
