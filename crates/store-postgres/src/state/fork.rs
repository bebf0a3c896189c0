//! Forks: a row that names the log whose appends precede the fork's own, in addition to the head,
//! the tags and the first append.

use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{Append, ForkOutcome, NewSession, Summary};

use super::{Statements, append, head, log};
use crate::error::{Failure, corrupt, not_found};
use crate::sql::{Schema, Sql, signed};

/// The statement of a fork. It locks the original, so that a concurrent deletion waits and then
/// sees that the log is shared. If the position is within appends that the original shares with
/// another log, that log is the base.
const FORK: &str = "
    WITH RECURSIVE s AS (
        SELECT log FROM {s}.sessions WHERE session = $18 FOR KEY SHARE
    ), {parts}, origin AS MATERIALIZED (
        SELECT p.log, greatest({now}, a.at) AS t
        FROM parts p CROSS JOIN LATERAL (
            SELECT a.first, a.count, a.id, a.at
            FROM {s}.appends a
            WHERE a.log = p.log AND a.first > p.after AND a.first <= $19
            ORDER BY a.first DESC LIMIT 1
        ) a
        WHERE p.after < $19 AND $19 <= coalesce(p.up_to, $19)
            AND a.first + a.count - 1 = $19 AND a.id = $20
    ), h AS (
        INSERT INTO {s}.sessions (session, agent, root, parent, tags, created_at, version, append,
            updated_at, lease_until, usage, status, run, runtime, pending, wake_at)
        SELECT $1, $2, $3, $4, $5, t, $19 + $6, $7, t, t + $8, $12, $13, $14, $15, $16, $17 FROM origin
        ON CONFLICT (session) DO NOTHING
        RETURNING log, created_at
    ), f AS (
        INSERT INTO {s}.forks (log, base, version)
        SELECT h.log, origin.log, $19 FROM h, origin
    ), tags AS (
        INSERT INTO {s}.session_tags (session, key, value, created_at)
        SELECT $1, tag.key, tag.value, created_at FROM h CROSS JOIN json_each_text($5::json) AS tag
    )
    INSERT INTO {s}.appends (log, first, count, id, run, schema, at, body)
    SELECT log, $19 + 1, $6, $7, $9, $10, created_at, $11 FROM h
    RETURNING at";

pub(super) fn statement(schema: &Schema) -> Sql {
    schema.sql(&FORK.replace("{parts}", log::PARTS))
}

/// The maximum number of tries of a fork. A fork is retried if the obstacle that prevented it has
/// disappeared by the time it is examined.
const TRIES: u32 = 100;

pub(super) async fn fork(
    connection: &mut PgConnection,
    statements: &Statements,
    from: &SessionId,
    new: &NewSession,
    first: &Append,
    summary: &Summary,
) -> Result<ForkOutcome, Failure> {
    let (session, position) = (&first.session, &first.expected);
    let tags = head::tags(new)?;
    for _ in 0..TRIES {
        let query = statements
            .fork
            .query()
            .bind(session.as_str())
            .bind(&*new.agent)
            .bind(new.root.as_str())
            .bind(new.parent.as_ref().map(SessionId::as_str))
            .bind(tags.as_str())
            .bind(i64::from(first.count))
            .bind(first.id.as_str())
            .bind(append::ttl(first.lease))
            .bind(first.run.as_ref().map(RunId::as_str))
            .bind(i32::from(first.schema))
            .bind(&first.body[..])
            .bind(head::usage_text(first)?);
        let row = append::bind_summary(query, summary)
            .bind(from.as_str())
            .bind(signed(position.version))
            .bind(position.append.as_str())
            .fetch_optional(&mut *connection)
            .await?;
        if let Some(row) = row {
            return Ok(ForkOutcome::Created { at: Timestamp(row.try_get(0)?) });
        }
        let sql = &statements.lookup;
        if let Some(existing) = log::lookup(connection, sql, session, position.version, 1).await? {
            let at = existing.created_as(&first.id, position);
            return Ok(at.map_or(ForkOutcome::Exists, |at| ForkOutcome::Created { at }));
        }
        let original = log::lookup(connection, sql, from, position.version, 0).await?;
        if !original.ok_or_else(|| not_found(from))?.reached(position) {
            return Ok(ForkOutcome::HistoryLost);
        }
    }
    Err(corrupt(session, "the session does not exist, but cannot be created"))
}
