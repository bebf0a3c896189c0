//! The footprint of runs in a schema of a PostgreSQL database.

use anyhow::Result;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row as _};

use crate::job::Traces;
use crate::measure::place::PostgresLocation;

/// Returns the position of the server's write-ahead log, and the size of tables and indexes.
const SIZES: &str = "
    SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint,
        (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
         WHERE relnamespace = $1::regnamespace AND relkind = 'r')";

const ROWS: &str = "
    SELECT (SELECT count(*) FROM {s}.sessions) + (SELECT count(*) FROM {s}.appends),
        (SELECT count(*) FROM {s}.streams) + (SELECT count(*) FROM {s}.chunks)";

/// The sizes at the start. Writes of other clients of the server count, too.
pub(in crate::measure) struct Watch {
    connection: PgConnection,
    location: PostgresLocation,
    before: [u64; 2],
}

impl Watch {
    pub(super) async fn begin(location: &PostgresLocation) -> Result<Self> {
        let mut connection = location.connect().await?;
        let before = sizes(&mut connection, location).await?;
        Ok(Self { connection, location: location.clone(), before })
    }

    pub(super) async fn end(self) -> Result<Traces> {
        let Self { mut connection, location, before } = self;
        let [written, kept] = sizes(&mut connection, &location).await?;
        let row = sqlx::query(AssertSqlSafe(location.sql(ROWS))).fetch_one(&mut connection).await?;
        let [rows, stream_rows] = numbers(&row)?;
        Ok(Traces {
            rows,
            stream_rows,
            written_bytes: written.saturating_sub(before[0]),
            kept_bytes: kept.saturating_sub(before[1]),
        })
    }
}

async fn sizes(connection: &mut PgConnection, location: &PostgresLocation) -> Result<[u64; 2]> {
    let query = sqlx::query(SIZES).bind(format!("\"{}\"", location.schema));
    numbers(&query.fetch_one(connection).await?)
}

fn numbers(row: &PgRow) -> Result<[u64; 2]> {
    let number = |index: usize| anyhow::Ok(u64::try_from(row.try_get::<i64, _>(index)?)?);
    Ok([number(0)?, number(1)?])
}
