//! Writing streams: one transaction each, and one row per batch of chunks.

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{Attempt, Chunk, ChunkKind, Mark, StreamOp, Written};

use super::json;
use super::row::StreamRow;
use crate::error::Failure;

/// Chunks that are written together.
pub(super) struct Batch {
    attempt: Option<Attempt>,
    count: u64,
    body: String,
}

impl Batch {
    pub(super) fn new(attempt: Option<Attempt>, chunks: &[Chunk]) -> Result<Self> {
        Ok(Self { attempt, count: chunks.len() as u64, body: json(&chunks)? })
    }
}

pub(super) fn write(
    connection: &mut Connection,
    session: &SessionId,
    batch: Vec<StreamOp>,
    retention: u64,
) -> Result<Written, Failure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut written = Written::default();
    for op in batch {
        match op {
            StreamOp::Begin { effect, origin } => {
                let effect = json(&effect)?;
                written.begun.push(begin(&transaction, session, &origin, &effect)?);
            }
            StreamOp::Chunks { attempt, chunks } => {
                let attempt = attempt.map(|named| written.attempt(named)).transpose()?;
                let batch = Batch::new(attempt, &chunks)?;
                if !append(&transaction, session, &batch, retention)? {
                    written.refused.extend(attempt);
                }
            }
            StreamOp::Mark(it) => mark(&transaction, session, &it)?,
        }
    }
    written.last_seq = StreamRow::find(&transaction, session)?.map_or(0, |row| row.last_seq);
    transaction.commit()?;
    Ok(written)
}

fn begin(
    transaction: &Transaction<'_>,
    session: &SessionId,
    origin: &Chunk,
    effect: &str,
) -> Result<Attempt, Failure> {
    let mut row = StreamRow::find_or_begin(transaction, session)?;
    let earlier = transaction
        .prepare_cached(
            "SELECT attempt FROM attempts
             WHERE stream = ?1 AND effect = ?2 AND discarded_at IS NULL",
        )?
        .query_row(params![row.key, effect], |row| row.get(0).map(Attempt))
        .optional()?;
    if let Some(earlier) = earlier {
        discard(transaction, &mut row, &[earlier], origin)?;
    }
    row.last_attempt += 1;
    transaction
        .prepare_cached("INSERT INTO attempts (stream, attempt, effect) VALUES (?1, ?2, ?3)")?
        .execute(params![row.key, row.last_attempt, effect])?;
    row.save(transaction)?;
    Ok(Attempt(row.last_attempt))
}

/// Whether the chunks were taken.
fn append(
    transaction: &Transaction<'_>,
    session: &SessionId,
    batch: &Batch,
    retention: u64,
) -> Result<bool, Failure> {
    let found = StreamRow::find(transaction, session)?;
    if let Some(attempt) = batch.attempt {
        let key = found.as_ref().map_or(0, |row| row.key);
        if !is_open(transaction, key, attempt)? {
            return Ok(false);
        }
    }
    if batch.count == 0 {
        return Ok(true);
    }
    let mut row = match found {
        Some(row) => row,
        None => StreamRow::find_or_begin(transaction, session)?,
    };
    write_chunks(transaction, &mut row, batch)?;
    trim(transaction, &mut row, retention)?;
    row.save(transaction)?;
    Ok(true)
}

fn mark(transaction: &Transaction<'_>, session: &SessionId, mark: &Mark) -> Result<(), Failure> {
    let mut row = StreamRow::find_or_begin(transaction, session)?;
    let settled = only_open(transaction, row.key, &mark.settled)?;
    if !settled.is_empty() {
        for attempt in &settled {
            // Nothing has to be known of it any more: its chunks stay, and no more are taken.
            transaction
                .prepare_cached("DELETE FROM attempts WHERE stream = ?1 AND attempt = ?2")?
                .execute(params![row.key, attempt.0])?;
        }
        let kind = ChunkKind::StepCommitted { attempts: settled, version: mark.version };
        let announcement = Chunk { kind, ..mark.origin.clone() };
        write_chunks(transaction, &mut row, &Batch::new(None, &[announcement])?)?;
    }
    discard(transaction, &mut row, &mark.discarded, &mark.origin)?;
    if mark.version > row.marked {
        if !mark.boundaries.is_empty() {
            write_chunks(transaction, &mut row, &Batch::new(None, &mark.boundaries)?)?;
        }
        row.marked = mark.version;
    }
    row.save(transaction)
}

pub(super) fn reset(connection: &mut Connection, session: &SessionId) -> Result<(), Failure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Some(mut row) = StreamRow::find(&transaction, session)? else { return Ok(()) };
    transaction.prepare_cached("DELETE FROM chunks WHERE stream = ?1")?.execute([row.key])?;
    transaction.prepare_cached("DELETE FROM attempts WHERE stream = ?1")?.execute([row.key])?;
    row.trimmed = row.last_seq;
    row.marked = 0;
    row.save(&transaction)?;
    transaction.commit()?;
    Ok(())
}

fn write_chunks(
    transaction: &Transaction<'_>,
    row: &mut StreamRow,
    batch: &Batch,
) -> Result<(), Failure> {
    row.last_seq += batch.count;
    transaction
        .prepare_cached(
            "INSERT INTO chunks (stream, last_seq, count, attempt, body)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            row.key,
            row.last_seq,
            batch.count,
            batch.attempt.map(|it| it.0),
            batch.body.as_bytes(),
        ])?;
    Ok(())
}

/// Discards those that are open, and announces it. Their chunks are left out by readers.
fn discard(
    transaction: &Transaction<'_>,
    row: &mut StreamRow,
    attempts: &[Attempt],
    origin: &Chunk,
) -> Result<(), Failure> {
    let attempts = only_open(transaction, row.key, attempts)?;
    if attempts.is_empty() {
        return Ok(());
    }
    for attempt in &attempts {
        transaction
            .prepare_cached(
                "UPDATE attempts SET discarded_at = ?3 WHERE stream = ?1 AND attempt = ?2",
            )?
            .execute(params![row.key, attempt.0, row.last_seq])?;
    }
    let announcement = Chunk { kind: ChunkKind::StepDiscarded { attempts }, ..origin.clone() };
    write_chunks(transaction, row, &Batch::new(None, &[announcement])?)
}

/// The open ones among the attempts, in the order in which they began.
fn only_open(
    transaction: &Transaction<'_>,
    stream: i64,
    attempts: &[Attempt],
) -> Result<Vec<Attempt>, Failure> {
    let mut open = Vec::new();
    for attempt in attempts {
        if is_open(transaction, stream, *attempt)? {
            open.push(*attempt);
        }
    }
    open.sort_unstable();
    open.dedup();
    Ok(open)
}

fn is_open(transaction: &Transaction<'_>, stream: i64, attempt: Attempt) -> Result<bool, Failure> {
    // Beyond what SQLite can count none was ever begun.
    let Ok(attempt) = i64::try_from(attempt.0) else { return Ok(false) };
    let mut statement = transaction.prepare_cached(
        "SELECT 1 FROM attempts WHERE stream = ?1 AND attempt = ?2 AND discarded_at IS NULL",
    )?;
    Ok(statement.exists(params![stream, attempt])?)
}

/// Deletes what is no longer kept: whole batches, and some at a time.
fn trim(transaction: &Transaction<'_>, row: &mut StreamRow, retention: u64) -> Result<(), Failure> {
    if row.last_seq - row.trimmed <= retention + retention / 8 {
        return Ok(());
    }
    let last: Option<u64> = transaction
        .prepare_cached("SELECT max(last_seq) FROM chunks WHERE stream = ?1 AND last_seq <= ?2")?
        .query_row(params![row.key, row.last_seq - retention], |row| row.get(0))?;
    let Some(last) = last else { return Ok(()) };
    transaction
        .prepare_cached("DELETE FROM chunks WHERE stream = ?1 AND last_seq <= ?2")?
        .execute(params![row.key, last])?;
    transaction
        .prepare_cached("DELETE FROM attempts WHERE stream = ?1 AND discarded_at <= ?2")?
        .execute(params![row.key, last])?;
    row.trimmed = last;
    Ok(())
}
