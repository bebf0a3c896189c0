//! Deleting sessions with their children.

use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Row as _};

use helix_agents_core::id::SessionId;

use crate::error::Failure;
use crate::sql::{Schema, Sql};

#[derive(Debug)]
pub(crate) struct Statements {
    lock: Sql,
    sessions: Sql,
    appends: Sql,
    fork: Sql,
}

impl Statements {
    pub(crate) fn new(schema: &Schema) -> Self {
        Self {
            // Keeps out others who delete, and nobody else. Of two who delete what they alone share, each would think that
            // the other one still needs it.
            lock: schema.sql("LOCK TABLE {s}.forks IN SHARE UPDATE EXCLUSIVE MODE"),
            sessions: schema.sql(
                "WITH RECURSIVE tree (session) AS (
                     SELECT session FROM {s}.sessions WHERE session = ANY($1)
                     UNION
                     SELECT child.session FROM {s}.sessions AS child
                     JOIN tree ON child.parent = tree.session
                 )
                 DELETE FROM {s}.sessions WHERE session IN (SELECT session FROM tree)
                 RETURNING log",
            ),
            // What others share of it stays.
            appends: schema.sql(
                "WITH shared AS MATERIALIZED (
                     SELECT coalesce(max(version), 0) AS version FROM {s}.forks WHERE base = $1
                 ), gone AS (
                     DELETE FROM {s}.appends
                     WHERE log = $1 AND first > (SELECT version FROM shared)
                 )
                 SELECT version > 0 FROM shared",
            ),
            // The log that it began with, and whether that one's session is still there.
            fork: schema.sql(
                "DELETE FROM {s}.forks WHERE log = $1
                 RETURNING base, EXISTS (
                     SELECT FROM {s}.sessions WHERE log = base)",
            ),
        }
    }
}

pub(super) async fn delete(
    connection: &mut PgConnection,
    statements: &Statements,
    session: &SessionId,
) -> Result<bool, Failure> {
    let mut transaction = connection.begin().await?;
    let deleted = delete_all(&mut transaction, statements, &[session.as_str()]).await?;
    transaction.commit().await?;
    Ok(deleted > 0)
}

/// Deletes these sessions and their children, within a transaction; says how many there were.
pub(crate) async fn delete_all(
    connection: &mut PgConnection,
    statements: &Statements,
    sessions: &[&str],
) -> Result<u64, Failure> {
    statements.lock.query().execute(&mut *connection).await?;
    // Whoever forks one of them has done so by the next statement, or will not find it.
    let logs = statements.sessions.query().bind(sessions).fetch_all(&mut *connection).await?;
    for log in &logs {
        forget(connection, statements, log.try_get(0)?).await?;
    }
    Ok(logs.len() as u64)
}

/// Deletes what nobody shares of a log whose session is gone; and if that is all of it, what it shared and nobody else
/// does.
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
