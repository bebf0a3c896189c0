//! Creation of sessions: the head, the tags and the first append in one statement.

use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{Append, CreateOutcome, NewSession, Summary};

use super::{Statements, append, head, log};
use crate::error::{Failure, corrupt};
use crate::sql::{Schema, Sql};

const CREATE: &str = "
    WITH clock AS MATERIALIZED (
        SELECT {now} AS t
    ), parent AS MATERIALIZED (
        -- Waits for a deletion of the parent that has not been committed yet.
        SELECT FROM {s}.sessions WHERE session = $4 AND $18 FOR KEY SHARE
    ), h AS (
        INSERT INTO {s}.sessions (session, agent, root, parent, tags, created_at, version, append,
            updated_at, lease_until, usage, status, run, runtime, pending, wake_at)
        SELECT $1, $2, $3, $4, $5, t, $6, $7, t, t + $8, $12, $13, $14, $15, $16, $17 FROM clock
        WHERE NOT $18 OR EXISTS (SELECT FROM parent)
        ON CONFLICT (session) DO NOTHING
        RETURNING log, created_at
    ), tags AS (
        INSERT INTO {s}.session_tags (session, key, value, created_at)
        SELECT $1, tag.key, tag.value, created_at FROM h CROSS JOIN json_each_text($5::json) AS tag
    )
    INSERT INTO {s}.appends (log, first, count, id, run, schema, at, body)
    SELECT log, 1, $6, $7, $9, $10, created_at, $11 FROM h
    RETURNING at";

pub(super) fn statement(schema: &Schema) -> Sql {
    schema.sql(CREATE)
}

/// The maximum number of tries while a conflicting session is created and deleted concurrently.
const TRIES: u32 = 100;

pub(super) async fn create(
    connection: &mut PgConnection,
    statements: &Statements,
    new: &NewSession,
    first: &Append,
    summary: &Summary,
) -> Result<CreateOutcome, Failure> {
    let session = &first.session;
    let tags = head::tags(new)?;
    let parent = first.required_parent(new);
    for _ in 0..TRIES {
        let query = statements
            .create
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
        let query = append::bind_summary(query, summary).bind(parent.is_some());
        let row = query.fetch_optional(&mut *connection).await?;
        if let Some(row) = row {
            return Ok(CreateOutcome::Created { at: Timestamp(row.try_get(0)?) });
        }
        let lookup = log::lookup(connection, &statements.lookup, session, 0, 1).await?;
        let Some(lookup) = lookup else {
            if let Some(parent) = parent
                && log::lookup(connection, &statements.lookup, parent, 0, 1).await?.is_none()
            {
                return Ok(CreateOutcome::ParentMissing);
            }
            continue;
        };
        if lookup.appends.is_empty() {
            return Err(corrupt(session, "the first append of a session is missing"));
        }
        let at = lookup.created_as(&first.id, &first.expected);
        return Ok(at.map_or(CreateOutcome::Exists, |at| CreateOutcome::Created { at }));
    }
    Err(corrupt(session, "the session does not exist, but cannot be created"))
}
