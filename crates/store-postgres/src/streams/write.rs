//! Writing streams: a batch is one statement. It says which state of the stream it goes on from, which the last writer
//! of this process remembers; if somebody else wrote meanwhile, nothing is written and the state is read.

use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Row as _};

use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::Written;

use super::batch::{Batch, Change};
use super::row::{self, Known};
use super::{Statements as All, json};
use crate::error::Failure;
use crate::sql::{Schema, Sql, signed};

/// How many rows of chunks are deleted at once.
const TRIMMED_ROWS: i64 = 500;

/// How often a batch is tried before others are made to wait.
const TRIES: u32 = 5;

#[derive(Debug)]
pub(super) struct Statements {
    begin: Sql,
    lock: Sql,
    /// Without and with what is not in the stream's own row.
    chunks: Sql,
    all: Sql,
    trim: Sql,
    reset: Sql,
}

/// Nobody waits for the disk: streams are for watching.
const LAZY: &str = "lazy AS MATERIALIZED (
        SELECT set_config('synchronous_commit', 'off', true) AS set
    )";

/// `{more}` is what else is written. The writer tells a revision from another one of that number, which there may be
/// after a crash of the server that took the first one back.
const WRITE: &str = "
    WITH {lazy}, stream AS (
        UPDATE {s}.streams
        SET revision = revision + 1, writer = $10, last_seq = $3, last_attempt = $4, marked = $5,
            marked_seq = $6, open = $7
        FROM lazy
        WHERE id = $1 AND revision = $2 AND writer = $11 AND lazy.set IS NOT NULL
        RETURNING id
    ), chunks AS (
        INSERT INTO {s}.chunks (stream, last, count, body)
        SELECT id, $3, $8, $9 FROM stream WHERE $8 > 0
    ){more}
    SELECT true FROM stream";

const MORE: &str = ", discarded AS (
        INSERT INTO {s}.discarded (stream, attempt, at_seq)
        SELECT stream.id, gone.attempt, gone.at_seq
        FROM stream, unnest($12::bigint[], $13::bigint[]) AS gone (attempt, at_seq)
    ), marks AS (
        INSERT INTO {s}.marks (stream, session, version, seq)
        SELECT stream.id, child.session, child.version, child.seq
        FROM stream, unnest($14::text[], $15::bigint[], $16::bigint[])
            AS child (session, version, seq)
        ON CONFLICT (stream, session)
            DO UPDATE SET version = excluded.version, seq = excluded.seq
    )";

impl Statements {
    pub(super) fn new(schema: &Schema) -> Self {
        let write = |more| schema.sql(&WRITE.replace("{more}", more).replace("{lazy}", LAZY));
        Self {
            begin: schema.sql(
                "INSERT INTO {s}.streams (session) VALUES ($1) ON CONFLICT (session) DO NOTHING",
            ),
            lock: schema.sql("SELECT true FROM {s}.streams WHERE session = $1 FOR UPDATE"),
            chunks: write(""),
            all: write(MORE),
            trim: schema.sql(
                &"WITH {lazy}, last AS MATERIALIZED (
                     SELECT max(last) AS seq FROM (
                         SELECT last FROM {s}.chunks WHERE stream = $1 AND last <= $3
                         ORDER BY last LIMIT $4
                     ) AS old
                 ), stream AS (
                     UPDATE {s}.streams SET revision = revision + 1, writer = 0, trimmed = last.seq
                     FROM last, lazy
                     WHERE id = $1 AND revision = $2 AND writer = $5 AND last.seq IS NOT NULL
                         AND lazy.set IS NOT NULL
                     RETURNING id, last.seq
                 ), chunks AS (
                     DELETE FROM {s}.chunks USING stream
                     WHERE chunks.stream = stream.id AND chunks.last <= stream.seq
                 ), discarded AS (
                     DELETE FROM {s}.discarded USING stream
                     WHERE discarded.stream = stream.id AND discarded.at_seq <= stream.seq
                 )
                 SELECT seq FROM stream"
                    .replace("{lazy}", LAZY),
            ),
            reset: schema.sql(
                "WITH stream AS (
                     UPDATE {s}.streams SET revision = revision + 1, writer = 0, trimmed = last_seq,
                         marked = 0, marked_seq = 0, open = '[]'
                     WHERE session = $1
                     RETURNING id, last_seq
                 ), chunks AS (
                     DELETE FROM {s}.chunks USING stream
                     WHERE chunks.stream = stream.id AND chunks.last <= stream.last_seq
                 ), marks AS (
                     DELETE FROM {s}.marks USING stream WHERE marks.stream = stream.id
                 )
                 DELETE FROM {s}.discarded USING stream WHERE discarded.stream = stream.id",
            ),
        }
    }
}

/// What this process remembers of a stream.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// How it stood when this process had last to do with it.
    pub(super) known: Option<Known>,
    /// What was sent, and has not been answered.
    doubt: Option<Doubt>,
}

/// A batch of which is not known whether it was written.
#[derive(Debug)]
struct Doubt {
    /// The revision that it goes on from.
    from: i64,
    after: Known,
    written: Written,
}

/// Writes a batch. Called again with the same memory if the connection was lost on the way.
pub(super) async fn write(
    connection: &mut PgConnection,
    all: &All,
    writer: i64,
    session: &SessionId,
    batch: &Batch,
    memory: &mut Memory,
) -> Result<Written, Failure> {
    for _ in 0..TRIES {
        if let Some(done) = try_write(connection, all, writer, session, batch, memory).await? {
            return Ok(done);
        }
    }
    // There are too many others: nobody else writes it for a moment.
    let mut transaction = connection.begin().await?;
    all.write.lock.query().bind(session.as_str()).execute(&mut transaction).await?;
    let done = try_write(&mut transaction, all, writer, session, batch, memory).await?;
    transaction.commit().await?;
    done.ok_or_else(|| {
        let message = "the stream was deleted again and again while it was written";
        Error::new(ErrorCode::StoreBusy, message).into()
    })
}

/// None if somebody else wrote meanwhile.
async fn try_write(
    connection: &mut PgConnection,
    all: &All,
    writer: i64,
    session: &SessionId,
    batch: &Batch,
    memory: &mut Memory,
) -> Result<Option<Written>, Failure> {
    let remembered = memory.known.take().filter(|_| memory.doubt.is_none());
    let is_remembered = remembered.is_some();
    let known = match remembered {
        Some(known) => Some(known),
        None => row::find(connection, &all.row, session).await?,
    };
    if let Some(done) = resolve(known.as_ref(), writer, memory)? {
        return Ok(Some(done));
    }
    let exists = known.is_some();
    let change = batch.apply(session, known.unwrap_or_default())?;
    // What was remembered may be old. If it is, a batch that changes the stream is not taken; but one that does not, or
    // not in all its parts, has to look.
    if is_remembered && (!change.is_changed || !change.written.refused.is_empty()) {
        return Ok(None);
    }
    if !change.is_changed {
        memory.known = exists.then_some(change.after);
        return Ok(Some(change.written));
    }
    if !exists {
        all.write.begin.query().bind(session.as_str()).execute(connection).await?;
        return Ok(None);
    }
    let Change { mut after, body, discarded, children, written, .. } = change;
    let doubt = Doubt { from: after.revision, after: after.clone(), written: written.clone() };
    let was_sent = memory.doubt.replace(doubt).is_some();
    let (count, marked) = (signed(body.count), after.marked);
    let is_more = !discarded.is_empty() || !children.is_empty();
    let sql = if is_more { &all.write.all } else { &all.write.chunks };
    let mut query = sql
        .query()
        .bind(after.id)
        .bind(after.revision)
        .bind(signed(after.last_seq))
        .bind(signed(after.last_attempt))
        .bind(signed(marked.version))
        .bind(signed(marked.seq))
        .bind(json(&after.open)?)
        .bind(count)
        .bind(body.finish())
        .bind(writer)
        .bind(after.writer);
    if is_more {
        let (attempts, at_seqs): (Vec<i64>, Vec<i64>) =
            discarded.iter().map(|(attempt, seq)| (signed(attempt.0), signed(*seq))).unzip();
        let marks: Vec<_> = children
            .iter()
            .map(|child| (child.as_str(), after.marks.get(child).copied().unwrap_or_default()))
            .collect();
        query = query
            .bind(attempts)
            .bind(at_seqs)
            .bind(marks.iter().map(|(child, _)| *child).collect::<Vec<_>>())
            .bind(marks.iter().map(|(_, it)| signed(it.version)).collect::<Vec<_>>())
            .bind(marks.iter().map(|(_, it)| signed(it.seq)).collect::<Vec<_>>());
    }
    let row = query.fetch_optional(connection).await?;
    if row.is_none() {
        // This one was not written; the same one may have been, when it was sent before.
        memory.doubt.take_if(|_| !was_sent);
        return Ok(None);
    }
    (after.revision, after.writer) = (after.revision + 1, writer);
    *memory = Memory { known: Some(after), doubt: None };
    Ok(Some(written))
}

/// What came of a batch that was not answered, now that the stream was looked at. It and its repetition go on from the
/// same revision, so at most one of them is written.
fn resolve(
    found: Option<&Known>,
    writer: i64,
    memory: &mut Memory,
) -> Result<Option<Written>, Failure> {
    let Some(doubt) = memory.doubt.take() else { return Ok(None) };
    let Some(found) = found.filter(|found| found.id == doubt.after.id) else { return Ok(None) };
    if found.revision == doubt.from {
        // It may still be on its way; the next look tells.
        memory.doubt = Some(doubt);
        return Ok(None);
    }
    if found.revision < doubt.from {
        // The server crashed and lost what this one goes on from: then it has not got this one, either.
        return Ok(None);
    }
    let next = found.revision == doubt.from + 1;
    if next && found.writer == writer {
        let Doubt { mut after, written, .. } = doubt;
        (after.revision, after.writer) = (found.revision, writer);
        memory.known = Some(after);
        return Ok(Some(written));
    }
    if next {
        return Ok(None);
    }
    let message = "the connection was lost, and whether the batch was written is not known";
    Err(Error::new(ErrorCode::StoreUnavailable, message).into())
}

/// Whether so much is kept that some of it should go.
pub(super) fn is_too_long(known: &Known, retention: u64) -> bool {
    known.last_seq - known.trimmed > retention.saturating_add(retention / 8)
}

/// Deletes what is no longer kept: whole rows, and some at a time.
pub(super) async fn trim(
    connection: &mut PgConnection,
    statements: &Statements,
    known: &mut Known,
    retention: u64,
) -> Result<(), Failure> {
    let up_to = signed(known.last_seq.saturating_sub(retention));
    let query = statements.trim.query().bind(known.id).bind(known.revision).bind(up_to);
    let query = query.bind(TRIMMED_ROWS).bind(known.writer);
    let row = query.fetch_optional(connection).await?;
    if let Some(row) = row {
        known.trimmed = row.try_get::<i64, _>(0)?.unsigned_abs();
        (known.revision, known.writer) = (known.revision + 1, 0);
    }
    Ok(())
}

pub(super) async fn reset(
    connection: &mut PgConnection,
    statements: &Statements,
    session: &SessionId,
) -> Result<(), Failure> {
    statements.reset.query().bind(session.as_str()).execute(connection).await?;
    Ok(())
}
