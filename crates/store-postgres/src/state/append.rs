//! Appending: a row of the log and the head's in one statement, whatever the length of the log.

use std::time::Duration;

use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::RunId;
use helix_agents_core::store::{Append, AppendOutcome, Guard, LeaseChange, StoredAppend, Summary};

use super::log::{self, Look};
use crate::error::{Failure, corrupt, not_found};
use crate::sql::{Query, Schema, Sql, signed};

/// How often an append is judged anew because what stood in its way was gone when it was looked at. Each time somebody
/// else has got on.
const TRIES: u32 = 100;

/// `{summary}` are the columns that a summary changes.
///
/// The clock is read once the row is locked, and once for all that is written. A deadline that was kept when it was
/// looked at is kept by the time that is written, too.
const APPEND: &str = "
    WITH h AS (
        UPDATE {s}.sessions AS h
        SET version = h.version + $4, append = $5, {summary}
            (updated_at, lease_until) = (
                SELECT t, CASE WHEN $9 THEN h.lease_until ELSE t + $10 END
                FROM (SELECT least(greatest({now}, h.updated_at), $11) AS t) AS clock
            )
        WHERE h.session = $1 AND h.version = $2 AND h.append = $3
            AND ($11::bigint IS NULL OR greatest({now}, h.updated_at) <= $11)
            AND (NOT $12 OR h.lease_until IS NULL OR h.lease_until <= greatest({now}, h.updated_at))
        RETURNING h.log, h.version, h.updated_at
    )
    INSERT INTO {s}.appends (log, first, count, id, run, schema, at, body)
    SELECT log, version - $4 + 1, $4, $5, $6, $7, updated_at, $8 FROM h
    RETURNING at";

#[derive(Debug)]
pub(super) struct Statements {
    go_on: Sql,
    summarise: Sql,
}

impl Statements {
    pub(super) fn new(schema: &Schema) -> Self {
        let summary = "status = $13, run = $14, runtime = $15, pending = $16, wake_at = $17,";
        Self {
            go_on: schema.sql(&APPEND.replace("{summary}", "")),
            summarise: schema.sql(&APPEND.replace("{summary}", summary)),
        }
    }
}

pub(super) async fn append(
    connection: &mut PgConnection,
    statements: &super::Statements,
    append: &Append,
) -> Result<AppendOutcome, Failure> {
    for _ in 0..TRIES {
        if let Some(at) = try_append(connection, &statements.append, append).await? {
            return Ok(AppendOutcome::Appended { at });
        }
        let (session, expected) = (&append.session, &append.expected);
        let look = log::look(connection, &statements.look, session, expected.version, u32::MAX);
        let look = look.await?.ok_or_else(|| not_found(session))?;
        if look.end != *expected {
            return judge_elsewhere(look, append);
        }
        if let Some(failed) = judge_guard(&look, append.guard) {
            return Ok(failed);
        }
    }
    Err(corrupt(&append.session, "the session is as an append expects it, and takes none"))
}

/// When it was taken; none if something stood in its way.
async fn try_append(
    connection: &mut PgConnection,
    statements: &Statements,
    append: &Append,
) -> Result<Option<Timestamp>, Failure> {
    let (deadline, is_free) = match append.guard {
        Guard::None => (None, false),
        Guard::NotAfter(deadline) => (Some(deadline.0), false),
        Guard::LeaseFree => (None, true),
    };
    let sql = match append.summary {
        Some(_) => &statements.summarise,
        None => &statements.go_on,
    };
    let query = sql
        .query()
        .bind(append.session.as_str())
        .bind(signed(append.expected.version))
        .bind(append.expected.append.as_str())
        .bind(i64::from(append.count))
        .bind(append.id.as_str())
        .bind(append.run.as_ref().map(RunId::as_str))
        .bind(i32::from(append.schema))
        .bind(&append.body[..])
        .bind(append.lease == LeaseChange::Keep)
        .bind(ttl(append.lease))
        .bind(deadline)
        .bind(is_free);
    let query = match &append.summary {
        Some(summary) => bind_summary(query, summary),
        None => query,
    };
    let row = query.fetch_optional(connection).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.map(Timestamp))
}

/// Status, run, runtime, pending calls and the time to wake.
pub(super) fn bind_summary(query: Query, summary: &Summary) -> Query {
    query
        .bind(summary.status.as_str())
        .bind(summary.run.as_ref().map(RunId::as_str))
        .bind(&*summary.runtime)
        .bind(i64::from(summary.pending))
        .bind(summary.wake_at.map(|at| at.0))
}

/// How long a lease lasts that is taken; none if there is none any more, or it stays.
pub(super) fn ttl(change: LeaseChange) -> Option<i64> {
    match change {
        LeaseChange::Take(ttl) => Some(millis(ttl)),
        LeaseChange::Keep | LeaseChange::Clear => None,
    }
}

/// So that it can be added to any time there is.
pub(super) fn millis(duration: Duration) -> i64 {
    signed(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)).min(i64::MAX / 2)
}

/// What an append gets whose position is not the end of the log.
fn judge_elsewhere(look: Look, append: &Append) -> Result<AppendOutcome, Failure> {
    let expected = &append.expected;
    if expected.version >= look.end.version || !look.reached(expected) {
        return Ok(AppendOutcome::HistoryLost);
    }
    if let Some(at) = look.taken_as(&append.id) {
        return Ok(AppendOutcome::Appended { at });
    }
    let begins = look.appends.first().map(|it| it.first);
    let ends = look.appends.last().map(StoredAppend::position);
    if begins != Some(expected.version + 1) || ends != Some(look.end) {
        return Err(corrupt(&append.session, "the log does not have what its head says"));
    }
    Ok(AppendOutcome::Conflict { missed: look.appends })
}

fn judge_guard(look: &Look, guard: Guard) -> Option<AppendOutcome> {
    let now = look.now.max(look.updated_at);
    let lease_until = match guard {
        Guard::None => return None,
        Guard::NotAfter(deadline) if now <= deadline => return None,
        Guard::NotAfter(_) => None,
        Guard::LeaseFree => Some(look.lease_until.filter(|until| now < *until)?),
    };
    Some(AppendOutcome::GuardFailed { lease_until, now })
}
