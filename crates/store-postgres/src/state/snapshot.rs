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
            // The session is locked against a concurrent deletion, which would leave the row
            // behind. The commit does not wait for the disk, because a snapshot is derived from the
            // log.
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

/// Saves a snapshot, unless a newer one is saved or the log does not reach its version.
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

/// Returns the saved snapshot of a session, if there is one.
pub(super) async fn find(
    connection: &mut PgConnection,
    statements: &Statements,
    session: &SessionId,
) -> Result<Option<Snapshot>, Failure> {
    let row = statements.find.query().bind(session.as_str()).fetch_optional(connection).await?;
    let Some(row) = row else { return Ok(None) };
    let damaged = || corrupt(session, "the snapshot of the session is unreadable");
    let version = u64::try_from(row.try_get::<i64, _>(0)?).map_err(|_| damaged())?;
    Ok(Some(Snapshot {
        position: Position { version, append: AppendId::from(row.try_get::<&str, _>(1)?) },
        fold: u32::try_from(row.try_get::<i64, _>(2)?).map_err(|_| damaged())?,
        body: Bytes::copy_from_slice(row.try_get(3)?),
    }))
}
