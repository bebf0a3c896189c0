//! Looking at a database without changing it.

use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::store::SessionStatus;

use crate::connections::{Connections, drive};
use crate::error::Failure;
use crate::guarantees::{self, Settings};
use crate::migrations;
use crate::sql::Schema;

/// The oldest server that has what the statements need.
const OLDEST: i32 = 13_00_00;

/// What a database holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The version of the server, as it says it.
    pub server: String,
    /// The number of the tables' schema; none if there are no tables yet.
    pub schema: Option<u32>,
    /// The one that this version writes. Opening brings an older one up to date.
    pub newest_schema: u32,
    /// Whether the server forces what it has written onto its disk.
    pub fsync: bool,
    /// When the server says that something is committed.
    pub synchronous_commit: String,
    /// What may be relied on with these settings.
    pub guarantees: Vec<Guarantee>,
    /// The bytes of the tables with their indexes.
    pub bytes: u64,
    /// Sessions with a run whose owner counts as alive. This and what follows is counted only if the schema is the
    /// newest.
    pub running: u64,
    /// Sessions with a run that stopped without ending: they can be resumed.
    pub stopped: u64,
    /// Sessions without a run under way, by status.
    pub ended: Vec<(SessionStatus, u64)>,
    /// The chunks that are kept of all streams.
    pub chunks: u64,
}

/// What the server says of itself.
pub(crate) struct Server {
    pub(crate) settings: Settings,
    version: String,
}

/// Looks at the server.
pub(crate) async fn server(connection: &mut PgConnection) -> Result<Server, Failure> {
    // Not prepared: it is not known yet whether a pooler is in between, and what it makes of that.
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
        let message =
            "the server is a standby, which cannot be written; use the URL of the primary";
        return Err(Error::new(ErrorCode::StoreReadOnly, message).into());
    }
    let settings = Settings { fsync: row.try_get(0)?, synchronous_commit: row.try_get(1)? };
    Ok(Server { settings, version })
}

/// Looks at the database.
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
        schema: Some(number),
        newest_schema: migrations::newest(),
        guarantees: guarantees::of(&settings),
        fsync: settings.fsync,
        synchronous_commit: settings.synchronous_commit,
        bytes: bytes(connection, schema).await?,
        running: 0,
        stopped: 0,
        ended: Vec::new(),
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
    (inspection.running, inspection.stopped, inspection.chunks) =
        (number(0)?, number(1)?, number(2)?);
    let ended = schema.sql(
        "SELECT status, count(*) FROM {s}.sessions WHERE run IS NULL GROUP BY status ORDER BY status",
    );
    for row in ended.query().fetch_all(connection).await? {
        let status = SessionStatus::parse(row.try_get(0)?).ok_or_else(|| {
            Error::new(ErrorCode::StoreCorrupt, "the status of a session is not known")
        })?;
        inspection.ended.push((status, row.try_get::<i64, _>(1)?.unsigned_abs()));
    }
    Ok(())
}
