//! What runs left in a schema of a PostgreSQL database.

use anyhow::Result;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row as _};

use crate::job::Traces;
use crate::measure::place::PostgresCorner;

/// How far the server's write-ahead log has come, and how large tables and indexes are.
const SIZES: &str = "
    SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint,
        (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
         WHERE relnamespace = $1::regnamespace AND relkind = 'r')";

const ROWS: &str = "
    SELECT (SELECT count(*) FROM {s}.sessions) + (SELECT count(*) FROM {s}.appends),
        (SELECT count(*) FROM {s}.streams) + (SELECT count(*) FROM {s}.chunks)";

/// A look from before. What others do on the server meanwhile counts as written, too.
pub(in crate::measure) struct Watch {
    connection: PgConnection,
    corner: PostgresCorner,
    before: [u64; 2],
}

impl Watch {
    pub(super) async fn begin(corner: &PostgresCorner) -> Result<Self> {
        let mut connection = corner.connect().await?;
        let before = sizes(&mut connection, corner).await?;
        Ok(Self { connection, corner: corner.clone(), before })
    }

    pub(super) async fn end(self) -> Result<Traces> {
        let Self { mut connection, corner, before } = self;
        let [written, kept] = sizes(&mut connection, &corner).await?;
        let row = sqlx::query(AssertSqlSafe(corner.sql(ROWS))).fetch_one(&mut connection).await?;
        let [rows, stream_rows] = numbers(&row)?;
        Ok(Traces {
            rows,
            stream_rows,
            written_bytes: written.saturating_sub(before[0]),
            kept_bytes: kept.saturating_sub(before[1]),
        })
    }
}

async fn sizes(connection: &mut PgConnection, corner: &PostgresCorner) -> Result<[u64; 2]> {
    let query = sqlx::query(SIZES).bind(format!("\"{}\"", corner.schema));
    numbers(&query.fetch_one(connection).await?)
}

fn numbers(row: &PgRow) -> Result<[u64; 2]> {
    let number = |index: usize| anyhow::Ok(u64::try_from(row.try_get::<i64, _>(index)?)?);
    Ok([number(0)?, number(1)?])
}
