//! Deletion of sessions with their descendants and streams.

use std::collections::BTreeMap;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Connection as _, Row as _};

use helix_agents_core::id::SessionId;

use super::head;
use crate::error::Failure;
use crate::sql::{Schema, Sql};

#[derive(Debug)]
pub(crate) struct Statements {
    tags: Sql,
    lock: Sql,
    sessions: Sql,
    children: Sql,
    appends: Sql,
    snapshots_and_tags: Sql,
    fork: Sql,
    stream: Sql,
    streams: Sql,
    chunks: Sql,
}

impl Statements {
    pub(crate) fn new(schema: &Schema) -> Self {
        // Deletes the sessions that fulfil a condition, and all sessions below them.
        let tree = |condition: &str| {
            schema.sql(&format!(
                "WITH RECURSIVE tree (session) AS (
                     SELECT session FROM {{s}}.sessions WHERE {condition}
                     UNION
                     SELECT child.session FROM {{s}}.sessions AS child
                     JOIN tree ON child.parent = tree.session
                 )
                 DELETE FROM {{s}}.sessions WHERE session IN (SELECT session FROM tree)
                 RETURNING log, session"
            ))
        };
        Self {
            tags: schema.sql("SELECT tags FROM {s}.sessions WHERE session = $1 FOR UPDATE"),
            // Excludes other deletions, and nothing else. Without it, two concurrent deletions of
            // the only sessions that share a log could each conclude that the other session still
            // needs it.
            lock: schema.sql("LOCK TABLE {s}.forks IN SHARE UPDATE EXCLUSIVE MODE"),
            sessions: tree("session = ANY($1)"),
            // Children that were created while the statement above waited for locks on their
            // parents.
            children: tree("parent = ANY($1)"),
            // Appends that other logs share are kept.
            appends: schema.sql(
                "WITH shared AS MATERIALIZED (
                     SELECT coalesce(max(version), 0) AS version FROM {s}.forks WHERE base = $1
                 ), gone AS (
                     DELETE FROM {s}.appends
                     WHERE log = $1 AND first > (SELECT version FROM shared)
                 )
                 SELECT version > 0 FROM shared",
            ),
            snapshots_and_tags: schema.sql(
                "WITH tags AS (
                     DELETE FROM {s}.session_tags WHERE session = ANY($2)
                 )
                 DELETE FROM {s}.snapshots WHERE log = ANY($1)",
            ),
            // Returns the base log, and whether its session still exists.
            fork: schema.sql(
                "DELETE FROM {s}.forks WHERE log = $1
                 RETURNING base, EXISTS (
                     SELECT FROM {s}.sessions WHERE log = base)",
            ),
            stream: schema
                .sql("DELETE FROM {s}.streams WHERE session = $1 AND revision = $2 RETURNING id"),
            streams: schema.sql("DELETE FROM {s}.streams WHERE session = ANY($1) RETURNING id"),
            // A separate statement, so that it sees the rows of concurrent writers that committed
            // before it started.
            chunks: schema.sql(
                "WITH chunks AS (
                     DELETE FROM {s}.chunks WHERE stream = ANY($1)
                 ), marks AS (
                     DELETE FROM {s}.marks WHERE stream = ANY($1)
                 )
                 DELETE FROM {s}.discarded WHERE stream = ANY($1)",
            ),
        }
    }
}

/// Deletes a session that has these tags, and its descendants. Returns the deleted sessions.
pub(super) async fn delete_if(
    connection: &mut PgConnection,
    statements: &Statements,
    session: &SessionId,
    required_tags: &BTreeMap<String, String>,
) -> Result<Vec<SessionId>, Failure> {
    let mut transaction = connection.begin().await?;
    if !required_tags.is_empty() {
        // In this order as in `delete_all`, so that two deletions do not wait for each other.
        statements.lock.query().execute(&mut transaction).await?;
        // The row stays locked, so that the session with these tags is the one that is deleted.
        let query = statements.tags.query().bind(session.as_str());
        let row = query.fetch_optional(&mut transaction).await?;
        let Some(row) = row else { return Ok(Vec::new()) };
        let tags = head::parse_tags(session, row.try_get(0)?)?;
        if required_tags.iter().any(|(key, value)| tags.get(key) != Some(value)) {
            return Ok(Vec::new());
        }
    }
    let deleted = delete_all(&mut transaction, statements, &[session.as_str()]).await?;
    transaction.commit().await?;
    Ok(deleted)
}

/// Deletes the stream of a session if it still has this revision. Returns `false` if it does not.
pub(crate) async fn forget_stream(
    connection: &mut PgConnection,
    statements: &Statements,
    session: &SessionId,
    revision: u64,
) -> Result<bool, Failure> {
    let mut transaction = connection.begin().await?;
    let query = statements.stream.query().bind(session.as_str()).bind(revision.cast_signed());
    let rows = query.fetch_all(&mut transaction).await?;
    let forgotten = !rows.is_empty();
    forget_chunks(&mut transaction, statements, &rows).await?;
    transaction.commit().await?;
    Ok(forgotten)
}

/// Deletes the streams of these sessions, within a transaction.
async fn forget_streams(
    connection: &mut PgConnection,
    statements: &Statements,
    sessions: &[&str],
) -> Result<(), Failure> {
    let rows = statements.streams.query().bind(sessions).fetch_all(&mut *connection).await?;
    forget_chunks(connection, statements, &rows).await
}

/// Deletes the chunks, watermarks and discarded attempts of deleted streams.
async fn forget_chunks(
    connection: &mut PgConnection,
    statements: &Statements,
    streams: &[PgRow],
) -> Result<(), Failure> {
    let ids = streams.iter().map(|row| row.try_get::<i64, _>(0)).collect::<Result<Vec<_>, _>>()?;
    if !ids.is_empty() {
        statements.chunks.query().bind(ids).execute(connection).await?;
    }
    Ok(())
}

/// Deletes these sessions and their descendants, within a transaction. Returns the deleted
/// sessions.
pub(crate) async fn delete_all(
    connection: &mut PgConnection,
    statements: &Statements,
    sessions: &[&str],
) -> Result<Vec<SessionId>, Failure> {
    statements.lock.query().execute(&mut *connection).await?;
    // A concurrent fork of one of these sessions either commits before the next statement or does
    // not find its original.
    let mut rows = statements.sessions.query().bind(sessions).fetch_all(&mut *connection).await?;
    let mut new = rows.len();
    while new > 0 {
        let names = rows.iter().rev().take(new).map(|row| row.try_get::<&str, _>(1));
        let names = names.collect::<Result<Vec<_>, _>>()?;
        let query = statements.children.query().bind(names);
        let found = query.fetch_all(&mut *connection).await?;
        new = found.len();
        rows.extend(found);
    }
    let logs = rows.iter().map(|row| row.try_get::<i64, _>(0)).collect::<Result<Vec<_>, _>>()?;
    let deleted: Vec<&str> =
        rows.iter().map(|row| row.try_get(1)).collect::<Result<_, sqlx::Error>>()?;
    let query = statements.snapshots_and_tags.query().bind(logs).bind(&deleted);
    query.execute(&mut *connection).await?;
    for row in &rows {
        forget(connection, statements, row.try_get(0)?).await?;
    }
    forget_streams(connection, statements, &deleted).await?;
    Ok(deleted.into_iter().map(SessionId::from).collect())
}

/// Deletes the appends of a deleted session that no other log shares. If no append remains, does
/// the same for the log that it was forked from, if that log's session is deleted, too.
async fn forget(
    connection: &mut PgConnection,
    statements: &Statements,
    log: i64,
) -> Result<(), Failure> {
    let mut next = Some(log);
    while let Some(log) = next.take() {
        let row = statements.appends.query().bind(log).fetch_one(&mut *connection).await?;
        if row.try_get(0)? {
            continue;
        }
        let row = statements.fork.query().bind(log).fetch_optional(&mut *connection).await?;
        let Some(row) = row else { continue };
        next = (!row.try_get::<bool, _>(1)?).then_some(row.try_get(0)?);
    }
    Ok(())
}
