//! Appending: one statement writes a log row and the head row, whatever the length of the log.

use std::collections::HashMap;
use std::time::Duration;

use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::Error;
use helix_agents_core::id::RunId;
use helix_agents_core::store::{Append, AppendOutcome, Guard, LeaseChange, StoredAppend, Summary};

use super::head;
use super::log::{self, LogView};
use crate::connections::{Connections, drive};
use crate::error::{Failure, corrupt, not_found};
use crate::groups::{Group, Groups, LARGE_BYTES, Turn};
use crate::sql::{Query, Schema, Sql, signed};

/// The maximum number of tries of an append. If the statement writes nothing, the session is read
/// to find the reason. The append is tried again if the reason no longer exists by then, for
/// example because a lease has expired in between.
const TRIES: u32 = 100;

/// The statement of one append. `{summary}` stands for the columns that a summary changes.
///
/// The clock is read after the row is locked, and once for all values that are written. A deadline
/// that held at the check also holds for the timestamp that is written.
const APPEND: &str = "
    WITH h AS (
        UPDATE {s}.sessions AS h
        SET version = h.version + $4, append = $5, usage = coalesce($13, h.usage), {summary}
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

/// The statement of several appends. It executes the appends that are acceptable, and skips those
/// whose row another transaction has locked. A session, and even an id, may occur several times.
///
/// The `LIMIT` never takes effect. It makes the planner expect few rows, regardless of its estimate
/// for arrays, so that it looks up each row even in a small table instead of scanning it.
const APPEND_MANY: &str = "
    WITH wanted AS MATERIALIZED (
        SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[],
            $7::integer[], $8::bytea[], $9::boolean[], $10::bigint[], $11::bigint[], $12::boolean[],
            $13::text[], $14::text[], $15::text[], $16::text[], $17::bigint[], $18::bigint[])
        AS wanted (session, version, append, count, id, by_run, schema, body, keep, ttl, deadline, is_free,
            usage, status, run, runtime, pending, wake_at)
        LIMIT $19
    ), here AS MATERIALIZED (
        SELECT h.session, wanted.id FROM wanted JOIN {s}.sessions AS h
            ON h.session = wanted.session COLLATE \"C\" AND h.version = wanted.version
            AND h.append = wanted.append COLLATE \"C\"
        FOR NO KEY UPDATE OF h SKIP LOCKED
    ), h AS (
        UPDATE {s}.sessions AS h
        SET version = h.version + w.count, append = w.id, usage = coalesce(w.usage, h.usage),
            status = coalesce(w.status, h.status),
            run = CASE WHEN w.status IS NULL THEN h.run ELSE w.run END,
            runtime = coalesce(w.runtime, h.runtime),
            pending = coalesce(w.pending, h.pending),
            wake_at = CASE WHEN w.status IS NULL THEN h.wake_at ELSE w.wake_at END,
            (updated_at, lease_until) = (
                SELECT t, CASE WHEN w.keep THEN h.lease_until ELSE t + w.ttl END
                FROM (SELECT least(greatest({now}, h.updated_at), w.deadline) AS t) AS clock
            )
        FROM here, wanted AS w
        WHERE h.session = here.session AND w.id = here.id
            AND w.session COLLATE \"C\" = here.session
            AND h.version = w.version AND h.append = w.append COLLATE \"C\"
            AND (w.deadline IS NULL OR greatest({now}, h.updated_at) <= w.deadline)
            AND (NOT w.is_free OR h.lease_until IS NULL
                OR h.lease_until <= greatest({now}, h.updated_at))
        RETURNING h.session, h.log, h.version, h.updated_at, w.count, w.id, w.by_run, w.schema, w.body
    ), rows AS (
        INSERT INTO {s}.appends (log, first, count, id, run, schema, at, body)
        SELECT log, version - count + 1, count, id, by_run, schema, updated_at, body FROM h
    )
    SELECT session, id, updated_at FROM h";

#[derive(Debug)]
pub(super) struct Statements {
    without_summary: Sql,
    with_summary: Sql,
    many: Sql,
}

impl Statements {
    pub(super) fn new(schema: &Schema) -> Self {
        let summary = "status = $14, run = $15, runtime = $16, pending = $17, wake_at = $18,";
        Self {
            without_summary: schema.sql(&APPEND.replace("{summary}", "")),
            with_summary: schema.sql(&APPEND.replace("{summary}", summary)),
            many: schema.sql(APPEND_MANY),
        }
    }
}

/// The queue of appends that share statements.
pub(crate) type Appends = Groups<Append, AppendOutcome>;

pub(super) async fn append(
    connections: &Connections,
    statements: &super::Statements,
    appends: &Appends,
    append: Append,
) -> Result<AppendOutcome, Error> {
    let bytes = append.body.len();
    if bytes > LARGE_BYTES {
        return alone(connections, statements, &append).await;
    }
    let mut waiter = appends.enqueue(append, bytes);
    loop {
        let Group { requests, answers, turn } = match waiter.turn().await? {
            Turn::Done(outcome) => return outcome,
            Turn::Alone(append) => return alone(connections, statements, &append).await,
            Turn::Lead(group) => group,
        };
        match &*requests {
            [append] => {
                answers.one(turn.during(alone(connections, statements, append)).await);
            }
            several => {
                let taken = turn.during(together(connections, statements, several)).await;
                answers.each(requests, taken);
            }
        }
    }
}

/// Executes several appends in one statement. Returns the outcomes of those that were accepted.
async fn together(
    connections: &Connections,
    statements: &super::Statements,
    appends: &[Append],
) -> Result<Vec<Option<AppendOutcome>>, Error> {
    let statements = &statements.append;
    drive!(connections, |connection| try_many(connection, statements, appends))
}

async fn alone(
    connections: &Connections,
    statements: &super::Statements,
    append: &Append,
) -> Result<AppendOutcome, Error> {
    drive!(connections, |connection| append_one(connection, statements, append))
}

async fn append_one(
    connection: &mut PgConnection,
    statements: &super::Statements,
    append: &Append,
) -> Result<AppendOutcome, Failure> {
    for _ in 0..TRIES {
        if let Some(at) = try_append(connection, &statements.append, append).await? {
            return Ok(AppendOutcome::Appended { at });
        }
        let (session, expected) = (&append.session, &append.expected);
        let lookup =
            log::lookup(connection, &statements.lookup, session, expected.version, u32::MAX);
        let lookup = lookup.await?.ok_or_else(|| not_found(session))?;
        if lookup.end != *expected {
            return outcome_off_end(lookup, append);
        }
        if let Some(failed) = check_guard(&lookup, append.guard) {
            return Ok(failed);
        }
    }
    Err(corrupt(
        &append.session,
        "the session is in the state that the append expects, but does not accept it",
    ))
}

/// Executes one append. Returns its time, or `None` if it was not accepted.
async fn try_append(
    connection: &mut PgConnection,
    statements: &Statements,
    append: &Append,
) -> Result<Option<Timestamp>, Failure> {
    let sql = match append.summary {
        Some(_) => &statements.with_summary,
        None => &statements.without_summary,
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
        .bind(deadline(append.guard))
        .bind(append.guard == Guard::LeaseFree)
        .bind(head::usage_text(append)?);
    let query = match &append.summary {
        Some(summary) => bind_summary(query, summary),
        None => query,
    };
    let row = query.fetch_optional(connection).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.map(Timestamp))
}

/// Executes several appends. Returns the outcome of each, or `None` if it was not accepted.
async fn try_many(
    connection: &mut PgConnection,
    statements: &Statements,
    appends: &[Append],
) -> Result<Vec<Option<AppendOutcome>>, Failure> {
    let ttls = appends.iter().map(|append| ttl(append.lease));
    let deadlines = appends.iter().map(|append| deadline(append.guard));
    let summaries = || appends.iter().map(|append| append.summary.as_ref());
    let usages = appends.iter().map(head::usage_text).collect::<Result<Vec<_>, _>>()?;
    let query = statements
        .many
        .query()
        .bind(all(appends, |append| append.session.as_str()))
        .bind(all(appends, |append| signed(append.expected.version)))
        .bind(all(appends, |append| append.expected.append.as_str()))
        .bind(all(appends, |append| i64::from(append.count)))
        .bind(all(appends, |append| append.id.as_str()))
        .bind(all(appends, |append| append.run.as_ref().map(RunId::as_str)))
        .bind(all(appends, |append| i32::from(append.schema)))
        .bind(all(appends, |append| &append.body[..]))
        .bind(all(appends, |append| append.lease == LeaseChange::Keep))
        .bind(ttls.collect::<Vec<_>>())
        .bind(deadlines.collect::<Vec<_>>())
        .bind(all(appends, |append| append.guard == Guard::LeaseFree))
        .bind(usages)
        .bind(summaries().map(|summary| Some(summary?.status.as_str())).collect::<Vec<_>>())
        .bind(
            summaries().map(|summary| summary?.run.as_ref().map(RunId::as_str)).collect::<Vec<_>>(),
        )
        .bind(summaries().map(|summary| Some(&*summary?.runtime)).collect::<Vec<_>>())
        .bind(summaries().map(|summary| Some(i64::from(summary?.pending))).collect::<Vec<_>>())
        .bind(summaries().map(|summary| summary?.wake_at.map(|at| at.0)).collect::<Vec<_>>())
        .bind(i64::try_from(appends.len()).unwrap_or(i64::MAX));
    let rows = query.fetch_all(connection).await?;
    let taken = rows.iter().map(|row| {
        let of: (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
        Ok((of, Timestamp(row.try_get(2)?)))
    });
    let taken = taken.collect::<Result<HashMap<_, _>, Failure>>()?;
    Ok(all(appends, |append| {
        let at = *taken.get(&(append.session.as_str(), append.id.as_str()))?;
        Some(AppendOutcome::Appended { at })
    }))
}

fn all<'a, T>(appends: &'a [Append], of: impl Fn(&'a Append) -> T) -> Vec<T> {
    appends.iter().map(of).collect()
}

/// Binds the status, run, runtime, pending calls and wake time of a summary.
pub(super) fn bind_summary(query: Query, summary: &Summary) -> Query {
    query
        .bind(summary.status.as_str())
        .bind(summary.run.as_ref().map(RunId::as_str))
        .bind(&*summary.runtime)
        .bind(i64::from(summary.pending))
        .bind(summary.wake_at.map(|at| at.0))
}

fn deadline(guard: Guard) -> Option<i64> {
    match guard {
        Guard::NotAfter(deadline) => Some(deadline.0),
        Guard::None | Guard::LeaseFree | Guard::ParentExists => None,
    }
}

/// Returns the duration of a lease that is taken, or `None` if the lease is released or unchanged.
pub(super) fn ttl(change: LeaseChange) -> Option<i64> {
    match change {
        LeaseChange::Take(ttl) => Some(millis(ttl)),
        LeaseChange::Keep | LeaseChange::Clear => None,
    }
}

/// Converts a duration to milliseconds, capped so that adding it to a timestamp cannot overflow.
pub(super) fn millis(duration: Duration) -> i64 {
    signed(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)).min(i64::MAX / 2)
}

/// Returns the outcome of an append whose expected position is not the end of the log.
fn outcome_off_end(lookup: LogView, append: &Append) -> Result<AppendOutcome, Failure> {
    let expected = &append.expected;
    if expected.version >= lookup.end.version || !lookup.reached(expected) {
        return Ok(AppendOutcome::HistoryLost);
    }
    if let Some(at) = lookup.taken_as(&append.id) {
        return Ok(AppendOutcome::Appended { at });
    }
    let begins = lookup.appends.first().map(|append| append.first);
    let ends = lookup.appends.last().map(StoredAppend::position);
    if begins != Some(expected.version + 1) || ends != Some(lookup.end) {
        return Err(corrupt(&append.session, "the log does not match its head"));
    }
    Ok(AppendOutcome::Conflict { missed: lookup.appends })
}

fn check_guard(lookup: &LogView, guard: Guard) -> Option<AppendOutcome> {
    let now = lookup.now.max(lookup.updated_at);
    let lease_until = match guard {
        Guard::None | Guard::ParentExists => return None,
        Guard::NotAfter(deadline) if now <= deadline => return None,
        Guard::NotAfter(_) => None,
        Guard::LeaseFree => Some(lookup.lease_until.filter(|until| now < *until)?),
    };
    Some(AppendOutcome::GuardFailed { lease_until, now })
}
