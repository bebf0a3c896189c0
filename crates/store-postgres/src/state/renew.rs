//! Lease renewal.

use std::time::Duration;

use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::Renewal;

use super::{append, head};
use crate::error::{Failure, not_found};
use crate::sql::{Schema, Sql};

/// The maximum number of tries while concurrent appends change the current run back and forth.
const TRIES: u32 = 100;

/// Creates the renewal statement. It reads the clock once, after it has waited for concurrent
/// writers, so that the lease starts at the time that the head reports.
///
/// It does not wait for the commit to reach the disk. A lease does not have to survive a server
/// crash, because the owner then has to reacquire it anyway.
pub(super) fn statement(schema: &Schema) -> Sql {
    let (columns, read_at) = (head::COLUMNS, head::READ_AT);
    schema.sql(&format!(
        "WITH lazy AS MATERIALIZED (
             SELECT set_config('synchronous_commit', 'off', true) AS set
         ), r AS (
             UPDATE {{s}}.sessions SET lease_until = greatest({{now}}, updated_at) + $3
             FROM lazy
             WHERE session = $1 AND run = $2 AND lazy.set IS NOT NULL
             RETURNING sessions.*
         )
         SELECT {columns}, lease_until - $3, true FROM r
         UNION ALL
         SELECT {columns}, {read_at}, false FROM {{s}}.sessions
         WHERE session = $1 AND NOT EXISTS (SELECT FROM r)"
    ))
}

pub(super) async fn extend(
    connection: &mut PgConnection,
    sql: &Sql,
    session: &SessionId,
    run: &RunId,
    ttl: Duration,
) -> Result<Renewal, Failure> {
    let mut tries = TRIES;
    loop {
        let query = sql.query().bind(session.as_str()).bind(run.as_str()).bind(append::millis(ttl));
        let row = query.fetch_optional(&mut *connection).await?;
        let row = row.ok_or_else(|| not_found(session))?;
        let (head, renewed) = (head::from_row(&row)?, row.try_get(16)?);
        tries -= 1;
        // The run may have ended while the update waited for a lock; the head was read before that.
        if renewed || head.summary.run.as_ref() != Some(run) || tries == 0 {
            return Ok(Renewal { renewed, head });
        }
    }
}
