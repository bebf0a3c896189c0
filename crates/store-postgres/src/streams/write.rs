//! Writing streams: a batch is one statement, which says which revision of the stream it goes on from.

use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{
    Change, Encoded, Found, Known, Place, Saved, SharedStream, encode_open,
};

use super::Statements as All;
use super::row;
use crate::error::Failure;
use crate::sql::{Schema, Sql, signed};

/// How many rows of chunks are deleted at once.
const TRIMMED_ROWS: i64 = 500;

#[derive(Debug)]
pub(super) struct Statements {
    begin: Sql,
    /// Without and with what is not in the stream's own row.
    chunks: Sql,
    all: Sql,
    places: Sql,
    trim: Sql,
    reset: Sql,
}

/// Nobody waits for the disk: streams are for watching.
const LAZY: &str = "lazy AS MATERIALIZED (
        SELECT set_config('synchronous_commit', 'off', true) AS set
    )";

/// `{more}` is what else is written.
const WRITE: &str = "
    WITH {lazy}, stream AS (
        UPDATE {s}.streams
        SET revision = $3, last_seq = $4, last_attempt = $5, marked = $6, marked_seq = $7, open = $8
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
        FROM stream, unnest($11::bigint[], $12::bigint[]) AS gone (attempt, at_seq)
    ), marks AS (
        INSERT INTO {s}.marks (stream, session, version, seq)
        SELECT stream.id, child.session, child.version, child.seq
        FROM stream, unnest($13::text[], $14::bigint[], $15::bigint[])
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
            chunks: write(""),
            all: write(MORE),
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

/// A stream while a batch is written to it.
pub(super) struct Stream<'a> {
    pub(super) connection: &'a mut PgConnection,
    pub(super) statements: &'a All,
    pub(super) session: &'a SessionId,
    pub(super) encoded: &'a Encoded,
}

impl SharedStream for Stream<'_> {
    type Failure = Failure;

    async fn look(&mut self, places: &[Place]) -> Result<Found, Failure> {
        let known = row::find(self.connection, &self.statements.row, self.session).await?;
        let there = if places.is_empty() { Vec::new() } else { self.there(places).await? };
        Ok(Found { known, there })
    }

    async fn save(&mut self, from: u64, after: &Known, change: &Change) -> Result<Saved, Failure> {
        let statements = &self.statements.write;
        if from == 0 {
            let begin = statements.begin.query().bind(self.session.as_str());
            begin.execute(&mut *self.connection).await?;
        }
        let ledger = &after.ledger;
        let own = ledger.marked.get(self.session).copied().unwrap_or_default();
        let children: Vec<_> = change
            .marked
            .iter()
            .filter(|it| *it != self.session)
            .map(|it| (it.as_str(), ledger.marked.get(it).copied().unwrap_or_default()))
            .collect();
        let is_more = !change.discarded.is_empty() || !children.is_empty();
        let sql = if is_more { &statements.all } else { &statements.chunks };
        let mut query = sql
            .query()
            .bind(self.session.as_str())
            .bind(from.cast_signed())
            .bind(after.revision.cast_signed())
            .bind(signed(ledger.last_seq))
            .bind(signed(ledger.last_attempt))
            .bind(signed(own.version))
            .bind(signed(own.seq))
            .bind(encode_open(self.session, &ledger.open)?)
            .bind(signed(change.count))
            .bind(self.encoded.body(&change.placed)?);
        if is_more {
            let discarded =
                change.discarded.iter().map(|it| (signed(it.attempt.0), signed(it.ended)));
            let (attempts, at_seqs): (Vec<i64>, Vec<i64>) = discarded.unzip();
            query = query
                .bind(attempts)
                .bind(at_seqs)
                .bind(children.iter().map(|(child, _)| *child).collect::<Vec<_>>())
                .bind(children.iter().map(|(_, it)| signed(it.version)).collect::<Vec<_>>())
                .bind(children.iter().map(|(_, it)| signed(it.seq)).collect::<Vec<_>>());
        }
        let row = query.fetch_optional(&mut *self.connection).await?;
        Ok(if row.is_some() { Saved::Yes } else { Saved::No { known: None } })
    }
}

impl Stream<'_> {
    /// Those of the places that are taken by their batches.
    async fn there(&mut self, places: &[Place]) -> Result<Vec<Place>, Failure> {
        let (last, revisions): (Vec<i64>, Vec<i64>) =
            places.iter().map(|it| (signed(it.last_seq), it.revision.cast_signed())).unzip();
        let query = self.statements.write.places.query().bind(self.session.as_str());
        let rows = query.bind(last).bind(revisions).fetch_all(&mut *self.connection).await?;
        let place = |row: &sqlx::postgres::PgRow| {
            let revision = row.try_get::<i64, _>(1)?.cast_unsigned();
            Ok(Place { last_seq: row::unsigned(row.try_get(0)?, self.session)?, revision })
        };
        rows.iter().map(place).collect()
    }
}

/// Whether so much is kept that some of it should go.
pub(super) fn is_too_long(known: &Known, retention: u64) -> bool {
    known.ledger.last_seq - known.trimmed > retention.saturating_add(retention / 8)
}

/// Deletes what is no longer kept: whole rows, and some at a time. `known` is how the stream then stands, unless
/// somebody else has written to it.
pub(super) async fn trim(
    connection: &mut PgConnection,
    statements: &Statements,
    session: &SessionId,
    known: &mut Known,
    retention: u64,
) -> Result<(), Failure> {
    let up_to = signed(known.ledger.last_seq.saturating_sub(retention));
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
