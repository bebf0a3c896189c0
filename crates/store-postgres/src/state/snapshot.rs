//! Snapshots as rows.

use bytes::Bytes;
use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use helix_agents_core::id::{AppendId, SessionId};
use helix_agents_core::store::{Position, Snapshot};

use crate::error::{Failure, corrupt};
use crate::sql::{Schema, Sql, signed};

#[derive(Debug)]
pub(super) struct Statements {
    save: Sql,
    find: Sql,
}

impl Statements {
    pub(super) fn new(schema: &Schema) -> Self {
        Self {
            // The session is locked against whoever deletes it, who would leave the row behind. The commit is
            // not waited for: the log has it all.
            save: schema.sql(
                "WITH lazy AS MATERIALIZED (
                     SELECT set_config('synchronous_commit', 'off', true) AS set
                 ), s AS MATERIALIZED (
                     SELECT log FROM {s}.sessions
                     WHERE session = $1 AND version >= $2 FOR KEY SHARE
                 )
                 INSERT INTO {s}.snapshots AS kept (log, version, append, fold, body)
                 SELECT s.log, $2, $3, $4, $5 FROM s, lazy WHERE lazy.set IS NOT NULL
                 ON CONFLICT (log) DO UPDATE SET version = excluded.version,
                     append = excluded.append, fold = excluded.fold, body = excluded.body
                 WHERE kept.version <= excluded.version",
            ),
            find: schema.sql(
                "SELECT kept.version, kept.append, kept.fold, kept.body
                 FROM {s}.sessions s JOIN {s}.snapshots kept ON kept.log = s.log
                 WHERE s.session = $1",
            ),
        }
    }
}

/// Keeps a snapshot, unless a newer one is kept or the log does not reach it.
pub(super) async fn save(
    connection: &mut PgConnection,
    statements: &Statements,
    session: &SessionId,
    snapshot: &Snapshot,
) -> Result<(), Failure> {
    let Snapshot { position, fold, body } = snapshot;
    let query = statements.save.query().bind(session.as_str()).bind(signed(position.version));
    let query = query.bind(position.append.as_str()).bind(i64::from(*fold)).bind(&body[..]);
    query.execute(connection).await?;
    Ok(())
}

/// The snapshot of a session, if one is kept.
pub(super) async fn find(
    connection: &mut PgConnection,
    statements: &Statements,
    session: &SessionId,
) -> Result<Option<Snapshot>, Failure> {
    let row = statements.find.query().bind(session.as_str()).fetch_optional(connection).await?;
    let Some(row) = row else { return Ok(None) };
    let damaged = || corrupt(session, "the snapshot of the session cannot be read");
    let version = u64::try_from(row.try_get::<i64, _>(0)?).map_err(|_| damaged())?;
    Ok(Some(Snapshot {
        position: Position { version, append: AppendId::from(row.try_get::<&str, _>(1)?) },
        fold: u32::try_from(row.try_get::<i64, _>(2)?).map_err(|_| damaged())?,
        body: Bytes::copy_from_slice(row.try_get(3)?),
    }))
}
