//! Writing to streams: a batch is one statement that names the stream revision it follows.

use std::collections::HashSet;

use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use helix_agents_core::error::Error;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{
    BatchPosition, CachedStream, Change, Discarded, Encoded, SessionWatermark, SharedStream,
    StreamLookup, encode_open,
};

use super::Statements as All;
use super::row;
use crate::connections::{Connections, drive};
use crate::error::Failure;
use crate::groups::{Group, Groups, LARGE_BYTES, Turn};
use crate::sql::{Schema, Sql, signed};

/// The maximum number of chunk rows that one trim deletes.
const TRIMMED_ROWS: i64 = 500;

#[derive(Debug)]
pub(super) struct Statements {
    begin: Sql,
    /// Two variants: without and with changes outside the stream's own row.
    chunks: Sql,
    all: Sql,
    many: Sql,
    places: Sql,
    trim: Sql,
    reset: Sql,
}

/// Commits without waiting for the disk, because streams may lose their last chunks.
const LAZY: &str = "lazy AS MATERIALIZED (
        SELECT set_config('synchronous_commit', 'off', true) AS set
    )";

/// The statement of one batch. `{more}` stands for writes outside the stream's own row.
const WRITE: &str = "
    WITH {lazy}, stream AS (
        UPDATE {s}.streams
        SET revision = $3, last_seq = $4, last_attempt = $5, marked = $6, marked_seq = $7, open = $8,
            fencing_token = $11
        FROM lazy
        WHERE session = $1 AND revision = $2 AND lazy.set IS NOT NULL
        RETURNING id
    ), chunks AS (
        INSERT INTO {s}.chunks (stream, last, count, revision, body)
        SELECT id, $4, $9, $3, $10 FROM stream WHERE $9 > 0
    ){more}
    SELECT true FROM stream";

const MORE: &str = ", discarded AS (
        INSERT INTO {s}.discarded (stream, attempt, at_seq)
        SELECT stream.id, gone.attempt, gone.at_seq
        FROM stream, unnest($12::bigint[], $13::bigint[]) AS gone (attempt, at_seq)
    ), marks AS (
        INSERT INTO {s}.marks (stream, session, version, seq, fencing_token)
        SELECT stream.id, child.session, child.version, child.seq, child.fencing_token
        FROM stream, unnest($14::text[], $15::bigint[], $16::bigint[], $17::bigint[])
            AS child (session, version, seq, fencing_token)
        ON CONFLICT (stream, session) DO UPDATE SET version = excluded.version,
            seq = excluded.seq, fencing_token = excluded.fencing_token
    )";

/// The statement of batches for several streams. It skips streams that another transaction has
/// locked. For the `LIMIT`, see `APPEND_MANY`.
const WRITE_MANY: &str = "
    WITH {lazy}, wanted AS MATERIALIZED (
        SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
            $6::bigint[], $7::bigint[], $8::text[], $9::bigint[], $10::bytea[], $11::bigint[])
        AS wanted (session, revision, next, last_seq, last_attempt, marked, marked_seq, open, count, body,
            fencing_token)
        LIMIT $12
    ), here AS MATERIALIZED (
        SELECT stream.session FROM wanted JOIN {s}.streams AS stream
            ON stream.session = wanted.session COLLATE \"C\" AND stream.revision = wanted.revision
        FOR NO KEY UPDATE OF stream SKIP LOCKED
    ), stream AS (
        UPDATE {s}.streams AS stream
        SET revision = w.next, last_seq = w.last_seq, last_attempt = w.last_attempt,
            marked = w.marked, marked_seq = w.marked_seq, open = w.open,
            fencing_token = w.fencing_token
        FROM lazy, here, wanted AS w
        WHERE stream.session = here.session AND w.session COLLATE \"C\" = here.session
            AND stream.revision = w.revision AND lazy.set IS NOT NULL
        RETURNING stream.id, w.session, w.last_seq, w.count, w.next, w.body
    ), chunks AS (
        INSERT INTO {s}.chunks (stream, last, count, revision, body)
        SELECT id, last_seq, count, next, body FROM stream WHERE count > 0
    )
    SELECT session FROM stream";

impl Statements {
    pub(super) fn new(schema: &Schema) -> Self {
        let write = |more| schema.sql(&WRITE.replace("{more}", more).replace("{lazy}", LAZY));
        Self {
            begin: schema.sql(
                "INSERT INTO {s}.streams (session) VALUES ($1) ON CONFLICT (session) DO NOTHING",
            ),
            chunks: write(""),
            all: write(MORE),
            many: schema.sql(&WRITE_MANY.replace("{lazy}", LAZY)),
            places: schema.sql(
                "SELECT chunks.last, chunks.revision
                 FROM {s}.streams AS stream, {s}.chunks,
                     unnest($2::bigint[], $3::bigint[]) AS place (last, revision)
                 WHERE stream.session = $1 AND chunks.stream = stream.id
                     AND chunks.last = place.last AND chunks.revision = place.revision",
            ),
            trim: schema.sql(
                &"WITH {lazy}, found AS MATERIALIZED (
                     SELECT id FROM {s}.streams WHERE session = $1
                 ), last AS MATERIALIZED (
                     SELECT max(last) AS seq FROM (
                         SELECT last FROM {s}.chunks
                         WHERE stream = (SELECT id FROM found) AND last <= $3
                         ORDER BY last LIMIT $4
                     ) AS old
                 ), stream AS (
                     UPDATE {s}.streams SET revision = revision + 1, trimmed = last.seq
                     FROM last, lazy
                     WHERE session = $1 AND revision = $2 AND last.seq IS NOT NULL
                         AND lazy.set IS NOT NULL
                     RETURNING id, revision, last.seq
                 ), chunks AS (
                     DELETE FROM {s}.chunks USING stream
                     WHERE chunks.stream = stream.id AND chunks.last <= stream.seq
                 ), discarded AS (
                     DELETE FROM {s}.discarded USING stream
                     WHERE discarded.stream = stream.id AND discarded.at_seq <= stream.seq
                 )
                 SELECT revision, seq FROM stream"
                    .replace("{lazy}", LAZY),
            ),
            reset: schema.sql(
                "WITH stream AS (
                     UPDATE {s}.streams SET revision = revision + 1, trimmed = last_seq,
                         marked = 0, marked_seq = 0, fencing_token = 0, open = '[]'
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

/// A stream that a batch is being written to.
pub(super) struct Stream<'a> {
    pub(super) connections: &'a Connections,
    pub(super) statements: &'a All,
    pub(super) writes: &'a Writes,
    pub(super) session: &'a SessionId,
    pub(super) encoded: &'a Encoded,
}

impl SharedStream for Stream<'_> {
    type Failure = Error;

    async fn lookup(&mut self, places: &[BatchPosition]) -> Result<StreamLookup, Error> {
        let Self { connections, statements, session, .. } = self;
        drive!(connections, |connection| lookup(connection, statements, session, places))
    }

    async fn save(
        &mut self,
        from: u64,
        after: &CachedStream,
        change: &Change,
    ) -> Result<bool, Error> {
        let Self { connections, statements, writes, session, encoded } = self;
        let statements = &statements.write;
        let own = after.state.marked.get(session).copied().unwrap_or_default();
        let write = Write {
            session: SessionId::clone(session),
            from,
            revision: after.revision,
            last_seq: after.state.last_seq,
            last_attempt: after.state.last_attempt,
            own,
            open: encode_open(session, &after.state.open)?,
            count: change.count,
            body: encoded.body(&change.placed)?,
        };
        let children: Vec<_> = change
            .marked
            .iter()
            .filter(|child| *child != *session)
            .map(|child| (child, after.state.marked.get(child).copied().unwrap_or_default()))
            .collect();
        let more = More { discarded: &change.discarded, children };
        if from == 0 || more.is_some() || write.body.len() > LARGE_BYTES {
            alone(connections, statements, &write, &more).await
        } else {
            write_together(connections, statements, writes, write).await
        }
    }
}

/// The queue of batches that share statements. The answer is `true` if the batch was accepted.
pub(crate) type Writes = Groups<Write, bool>;

/// The change that a batch makes to its stream.
#[derive(Debug)]
pub(crate) struct Write {
    session: SessionId,
    from: u64,
    revision: u64,
    last_seq: u64,
    last_attempt: u64,
    own: SessionWatermark,
    open: String,
    count: u64,
    body: Vec<u8>,
}

/// The changes outside the stream's own row.
struct More<'a> {
    discarded: &'a [Discarded],
    children: Vec<(&'a SessionId, SessionWatermark)>,
}

impl More<'_> {
    const NONE: Self = Self { discarded: &[], children: Vec::new() };

    fn is_some(&self) -> bool {
        !self.discarded.is_empty() || !self.children.is_empty()
    }
}

/// Writes a batch together with concurrent batches of other streams. Returns `true` if it was
/// accepted.
async fn write_together(
    connections: &Connections,
    statements: &Statements,
    writes: &Writes,
    write: Write,
) -> Result<bool, Error> {
    let bytes = write.body.len();
    let mut waiter = writes.enqueue(write, bytes);
    loop {
        let Group { requests, answers, turn } = match waiter.turn().await? {
            Turn::Done(is_taken) => return is_taken,
            Turn::Alone(write) => {
                return alone(connections, statements, &write, &More::NONE).await;
            }
            Turn::Lead(group) => group,
        };
        match &*requests {
            [write] => {
                let none = More::NONE;
                answers.one(turn.during(alone(connections, statements, write, &none)).await);
            }
            several => {
                let taken = turn.during(together(connections, statements, several)).await;
                answers.each(requests, taken);
            }
        }
    }
}

/// Writes several batches in one statement. Returns `true` for those that were accepted.
async fn together(
    connections: &Connections,
    statements: &Statements,
    writes: &[Write],
) -> Result<Vec<Option<bool>>, Error> {
    drive!(connections, |connection| write_many(connection, statements, writes))
}

async fn alone(
    connections: &Connections,
    statements: &Statements,
    write: &Write,
    more: &More<'_>,
) -> Result<bool, Error> {
    drive!(connections, |connection| write_one(connection, statements, write, more))
}

async fn lookup(
    connection: &mut PgConnection,
    statements: &All,
    session: &SessionId,
    places: &[BatchPosition],
) -> Result<StreamLookup, Failure> {
    let known = row::find(&mut *connection, &statements.row, session).await?;
    if places.is_empty() {
        return Ok(StreamLookup { known, found_places: Vec::new() });
    }
    let (last, revisions): (Vec<i64>, Vec<i64>) =
        places.iter().map(|place| (signed(place.last_seq), place.revision.cast_signed())).unzip();
    let query = statements.write.places.query().bind(session.as_str());
    let rows = query.bind(last).bind(revisions).fetch_all(connection).await?;
    let place = |row: &sqlx::postgres::PgRow| {
        let revision = row.try_get::<i64, _>(1)?.cast_unsigned();
        Ok(BatchPosition { last_seq: row::unsigned(row.try_get(0)?, session)?, revision })
    };
    let found_places = rows.iter().map(place).collect::<Result<_, Failure>>()?;
    Ok(StreamLookup { known, found_places })
}

/// Writes one batch. Returns `true` if it was accepted.
async fn write_one(
    connection: &mut PgConnection,
    statements: &Statements,
    write: &Write,
    more: &More<'_>,
) -> Result<bool, Failure> {
    if write.from == 0 {
        let begin = statements.begin.query().bind(write.session.as_str());
        begin.execute(&mut *connection).await?;
    }
    let sql = if more.is_some() { &statements.all } else { &statements.chunks };
    let mut query = sql
        .query()
        .bind(write.session.as_str())
        .bind(write.from.cast_signed())
        .bind(write.revision.cast_signed())
        .bind(signed(write.last_seq))
        .bind(signed(write.last_attempt))
        .bind(signed(write.own.version))
        .bind(signed(write.own.seq))
        .bind(&*write.open)
        .bind(signed(write.count))
        .bind(&*write.body)
        .bind(signed(write.own.fencing_token));
    if more.is_some() {
        let discarded =
            more.discarded.iter().map(|attempt| (signed(attempt.attempt.0), signed(attempt.ended)));
        let (attempts, at_seqs): (Vec<i64>, Vec<i64>) = discarded.unzip();
        let children = &more.children;
        query = query
            .bind(attempts)
            .bind(at_seqs)
            .bind(children.iter().map(|(child, _)| child.as_str()).collect::<Vec<_>>())
            .bind(children.iter().map(|(_, marked)| signed(marked.version)).collect::<Vec<_>>())
            .bind(children.iter().map(|(_, marked)| signed(marked.seq)).collect::<Vec<_>>())
            .bind(
                children.iter().map(|(_, marked)| signed(marked.fencing_token)).collect::<Vec<_>>(),
            );
    }
    Ok(query.fetch_optional(connection).await?.is_some())
}

/// Writes several batches in one statement. Returns `true` for those that were accepted.
async fn write_many(
    connection: &mut PgConnection,
    statements: &Statements,
    writes: &[Write],
) -> Result<Vec<Option<bool>>, Failure> {
    let numbers =
        |of: fn(&Write) -> u64| writes.iter().map(|write| signed(of(write))).collect::<Vec<_>>();
    let revisions = |of: fn(&Write) -> u64| {
        writes.iter().map(|write| of(write).cast_signed()).collect::<Vec<_>>()
    };
    let query = statements
        .many
        .query()
        .bind(writes.iter().map(|write| write.session.as_str()).collect::<Vec<_>>())
        .bind(revisions(|write| write.from))
        .bind(revisions(|write| write.revision))
        .bind(numbers(|write| write.last_seq))
        .bind(numbers(|write| write.last_attempt))
        .bind(numbers(|write| write.own.version))
        .bind(numbers(|write| write.own.seq))
        .bind(writes.iter().map(|write| &*write.open).collect::<Vec<_>>())
        .bind(numbers(|write| write.count))
        .bind(writes.iter().map(|write| &*write.body).collect::<Vec<_>>())
        .bind(numbers(|write| write.own.fencing_token))
        .bind(i64::try_from(writes.len()).unwrap_or(i64::MAX));
    let rows = query.fetch_all(connection).await?;
    let taken = rows.iter().map(|row| row.try_get::<&str, _>(0));
    let taken = taken.collect::<Result<HashSet<_>, _>>()?;
    Ok(writes.iter().map(|write| taken.contains(write.session.as_str()).then_some(true)).collect())
}

/// Returns `true` if a stream exceeds its retention by so much that it should be trimmed.
pub(super) fn is_too_long(known: &CachedStream, retention: u64) -> bool {
    known.state.last_seq - known.trimmed > retention.saturating_add(retention / 8)
}

/// Deletes chunks beyond the retention, in whole rows and several at a time. Updates `known` to the
/// new state of the stream, unless another process has written to it.
pub(super) async fn trim(
    connection: &mut PgConnection,
    statements: &Statements,
    session: &SessionId,
    known: &mut CachedStream,
    retention: u64,
) -> Result<(), Failure> {
    let up_to = signed(known.state.last_seq.saturating_sub(retention));
    let query = statements.trim.query().bind(session.as_str()).bind(known.revision.cast_signed());
    let row = query.bind(up_to).bind(TRIMMED_ROWS).fetch_optional(connection).await?;
    if let Some(row) = row {
        known.revision = row.try_get::<i64, _>(0)?.cast_unsigned();
        known.trimmed = row.try_get::<i64, _>(1)?.unsigned_abs();
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
