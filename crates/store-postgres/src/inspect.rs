//! Inspection of a database without changing it.

use serde::Serialize;
use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::store::{SessionCounts, SessionStatus};

use crate::connections::{Connections, drive};
use crate::error::Failure;
use crate::guarantees::{self, Settings};
use crate::migrations;
use crate::sql::Schema;

/// The oldest server version that supports the store's statements.
const OLDEST: i32 = 13_00_00;

/// The contents of a store database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Inspection {
    /// The version that the server reports.
    pub server: String,
    /// The schema version of the tables.
    pub schema: u32,
    /// The schema version that this version of the store writes. Opening an older schema migrates
    /// it.
    pub newest_schema: u32,
    /// `true` if the server syncs its writes to the disk.
    pub fsync: bool,
    /// The server's `synchronous_commit` setting, which decides when a commit is acknowledged.
    pub synchronous_commit: String,
    /// The guarantees of the store with these settings. The serialized form omits them, because
    /// [`Diagnosis`](crate::Diagnosis) has them, too.
    #[serde(skip)]
    pub guarantees: Vec<Guarantee>,
    /// The size of the tables and their indexes in bytes.
    pub bytes: u64,
    /// The numbers of sessions. They and the number of chunks are only counted in the newest schema.
    pub sessions: SessionCounts,
    /// The number of chunks that are kept, over all streams.
    pub chunks: u64,
}

/// The server's version and settings.
pub(crate) struct Server {
    pub(crate) settings: Settings,
    version: String,
}

/// Queries the server's version and settings.
pub(crate) async fn server(connection: &mut PgConnection) -> Result<Server, Failure> {
    // Not prepared, because it is still unknown whether a pooler is in between and supports it.
    let row = sqlx::raw_sql(
        "SELECT current_setting('fsync') = 'on', current_setting('synchronous_commit'),
             current_setting('server_version'), current_setting('server_version_num')::integer,
             pg_is_in_recovery()",
    );
    let row = row.fetch_one(connection).await?;
    let (version, number): (String, i32) = (row.try_get(2)?, row.try_get(3)?);
    if number < OLDEST {
        let message = "the server is older than PostgreSQL 13";
        return Err(Error::new(ErrorCode::Unsupported, message)
            .with_context("version", version)
            .into());
    }
    if row.try_get(4)? {
        let message = "the server is a standby, which is read-only; use the URL of the primary";
        return Err(Error::new(ErrorCode::StoreReadOnly, message).into());
    }
    let settings = Settings { fsync: row.try_get(0)?, synchronous_commit: row.try_get(1)? };
    Ok(Server { settings, version })
}

/// Inspects the database.
pub(crate) async fn inspect(
    connections: &Connections,
    schema: &Schema,
) -> Result<Option<Inspection>> {
    drive!(connections, |connection| try_inspect(connection, schema))
}

async fn try_inspect(
    connection: &mut PgConnection,
    schema: &Schema,
) -> Result<Option<Inspection>, Failure> {
    let Server { settings, version, .. } = server(connection).await?;
    let Some(number) = migrations::done(connection, schema).await? else { return Ok(None) };
    let mut inspection = Inspection {
        server: version,
        schema: number,
        newest_schema: migrations::newest(),
        guarantees: guarantees::of(&settings),
        fsync: settings.fsync,
        synchronous_commit: settings.synchronous_commit,
        bytes: bytes(connection, schema).await?,
        sessions: SessionCounts::default(),
        chunks: 0,
    };
    if number == inspection.newest_schema {
        count_sessions(connection, schema, &mut inspection).await?;
    }
    Ok(Some(inspection))
}

async fn bytes(connection: &mut PgConnection, schema: &Schema) -> Result<u64, Failure> {
    let bytes = schema.sql(
        "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = $1 AND c.relkind = 'r'",
    );
    let bytes: i64 = bytes.query().bind(schema.name()).fetch_one(connection).await?.try_get(0)?;
    Ok(bytes.unsigned_abs())
}

async fn count_sessions(
    connection: &mut PgConnection,
    schema: &Schema,
    inspection: &mut Inspection,
) -> Result<(), Failure> {
    let counts = schema.sql(
        "SELECT count(*) FILTER (WHERE coalesce(lease_until, 0) > {now}),
             count(*) FILTER (WHERE coalesce(lease_until, 0) <= {now}),
             (SELECT coalesce(sum(last_seq - trimmed), 0)::bigint FROM {s}.streams)
         FROM {s}.sessions WHERE run IS NOT NULL",
    );
    let row = counts.query().fetch_one(&mut *connection).await?;
    let number = |index| row.try_get::<i64, _>(index).map(i64::unsigned_abs);
    let sessions = &mut inspection.sessions;
    (sessions.running, sessions.stopped) = (number(0)?, number(1)?);
    inspection.chunks = number(2)?;
    let ended = schema.sql(
        "SELECT status, count(*) FROM {s}.sessions WHERE run IS NULL GROUP BY status ORDER BY status",
    );
    for row in ended.query().fetch_all(connection).await? {
        let status = SessionStatus::parse(row.try_get(0)?).ok_or_else(|| {
            Error::new(ErrorCode::StoreCorrupt, "a session has an unknown status")
        })?;
        inspection.sessions.without_run.push((status, row.try_get::<i64, _>(1)?.unsigned_abs()));
    }
    Ok(())
}
