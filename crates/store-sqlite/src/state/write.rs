//! Creating, appending and renewing. An append writes one log row and the head row, whatever the
//! length of the log. The caller has started a transaction and commits it only on success.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, params};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::{AppendId, RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, Guard, LeaseChange, NewSession, Position, Renewal,
    StoredAppend, Summary,
};

use super::head;
use super::log::Log;
use crate::error::{Failure, corrupt, not_found};
use crate::prepared::{Prepared, Tables};
use crate::unsigned::Unsigned;
use crate::{clock, row_key};

/// The statements that every step needs.
pub(crate) struct Statements<'c> {
    find: Prepared<'c>,
    add: Prepared<'c>,
    /// Three updates of the head, each of more columns: those that change with every append, the
    /// summary's unindexed columns, and its indexed columns.
    update_head: Prepared<'c>,
    update_summary: Prepared<'c>,
    update_all: Prepared<'c>,
}

impl<'c> Statements<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        let prepared = |sql| Prepared::new(connection, sql);
        Self {
            find: prepared(
                "SELECT id, version, append, updated_at, lease_until, run, wake_at
                 FROM sessions WHERE session = ?1",
            ),
            add: prepared(
                "INSERT INTO appends (key, count, id, run, schema, at, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            ),
            update_head: prepared(
                "UPDATE sessions SET version = ?2, append = ?3, updated_at = ?4, lease_until = ?5,
                     usage = coalesce(?6, usage)
                 WHERE id = ?1",
            ),
            update_summary: prepared(
                "UPDATE sessions SET version = ?2, append = ?3, updated_at = ?4, lease_until = ?5,
                     usage = coalesce(?6, usage), status = ?7, runtime = ?8, pending = ?9
                 WHERE id = ?1",
            ),
            update_all: prepared(
                "UPDATE sessions SET version = ?2, append = ?3, updated_at = ?4, lease_until = ?5,
                     usage = coalesce(?6, usage), status = ?7, runtime = ?8, pending = ?9,
                     run = ?10, wake_at = ?11
                 WHERE id = ?1",
            ),
        }
    }
}

/// The part of the session state that an append depends on.
pub(super) struct End {
    /// The key of the session's row.
    pub(super) key: i64,
    version: u64,
    /// `true` if the log ends at the position that the append expects.
    is_expected: bool,
    updated_at: Timestamp,
    lease_until: Option<Timestamp>,
    /// `true` if the append's summary does not change indexed columns.
    stays_in_place: bool,
}

pub(super) fn create(
    tables: &mut Tables<'_>,
    new: &NewSession,
    first: &Append,
) -> Result<CreateOutcome, Failure> {
    if let Some(end) = find(&mut tables.state, first)? {
        let log = Log::of(tables.connection, end.key)?;
        if log.shared() > 0 {
            return Ok(CreateOutcome::Exists);
        }
        let stored = log.starting_at(tables.connection, 1)?;
        let (id, at) = stored
            .ok_or_else(|| corrupt(&first.session, "the first append of a session is missing"))?;
        return Ok(if id == first.id {
            CreateOutcome::Created { at }
        } else {
            CreateOutcome::Exists
        });
    }
    if let Some(parent) = first.required_parent(new)
        && !exists(tables.connection, parent)?
    {
        return Ok(CreateOutcome::ParentMissing);
    }
    let now = clock::now();
    let lease_until = lease(None, first.lease, now);
    let key = head::insert(tables.connection, new, first, lease_until, now)?;
    add(&mut tables.state, key, 1, first, now)?;
    Ok(CreateOutcome::Created { at: now })
}

fn exists(connection: &Connection, session: &SessionId) -> Result<bool, Failure> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sessions WHERE session = ?1)";
    Ok(connection.prepare_cached(sql)?.query_row([session.as_str()], |row| row.get(0))?)
}

pub(super) fn append(tables: &mut Tables<'_>, append: &Append) -> Result<AppendOutcome, Failure> {
    let statements = &mut tables.state;
    let end = find(statements, append)?.ok_or_else(|| not_found(&append.session))?;
    if !end.is_expected {
        return outcome_off_end(tables.connection, &end, append);
    }
    let now = clock::now().max(end.updated_at);
    if let Some(failed) = check_guard(&end, append.guard, now) {
        return Ok(failed);
    }
    add(statements, end.key, end.version + 1, append, now)?;
    update_head(statements, &end, append, now)?;
    Ok(AppendOutcome::Appended { at: now })
}

pub(super) fn renew(
    tables: &mut Tables<'_>,
    session: &SessionId,
    run: &RunId,
    ttl: Duration,
) -> Result<Renewal, Failure> {
    let mut head = head::find(tables.connection, session)?.ok_or_else(|| not_found(session))?;
    if head.summary.run.as_ref() != Some(run) {
        return Ok(Renewal { renewed: false, head });
    }
    let until = head.read_at.after(ttl);
    tables
        .connection
        .prepare_cached("UPDATE sessions SET lease_until = ?2 WHERE session = ?1")?
        .execute(params![session.as_str(), until.0])?;
    head.lease_until = Some(until);
    Ok(Renewal { renewed: true, head })
}

pub(super) fn find(
    statements: &mut Statements<'_>,
    append: &Append,
) -> Result<Option<End>, Failure> {
    let end = statements.find.get()?.query_row([append.session.as_str()], |row| {
        let version = Unsigned::get(row, 1)?;
        let expected = &append.expected;
        let is_expected =
            version == expected.version && row.get_ref(2)?.as_str()? == expected.append.as_str();
        let stays_in_place = match &append.summary {
            None => true,
            Some(summary) => {
                row.get_ref(5)?.as_str_or_null()? == summary.run.as_ref().map(RunId::as_str)
                    && row.get::<_, Option<i64>>(6)? == summary.wake_at.map(|at| at.0)
            }
        };
        Ok(End {
            key: row.get(0)?,
            version,
            is_expected,
            updated_at: Timestamp(row.get(3)?),
            lease_until: row.get::<_, Option<i64>>(4)?.map(Timestamp),
            stays_in_place,
        })
    });
    Ok(end.optional()?)
}

/// Returns the outcome of an append whose expected position is not the end of the log.
fn outcome_off_end(
    connection: &Connection,
    end: &End,
    append: &Append,
) -> Result<AppendOutcome, Failure> {
    let expected = &append.expected;
    let stale = expected.version < end.version;
    let log = Log::of(connection, end.key)?;
    if !stale || !log.reached(connection, expected)? {
        return Ok(AppendOutcome::HistoryLost);
    }
    match log.starting_at(connection, expected.version + 1)? {
        Some((id, at)) if id == append.id => Ok(AppendOutcome::Appended { at }),
        _ => {
            let after = expected.version;
            let missed = log.after(connection, &append.session, after, u32::MAX)?;
            let begins = missed.first().map(|append| append.first);
            let ends = missed.last().map(StoredAppend::position);
            if begins != Some(after + 1) || ends != Some(position(connection, end.key)?) {
                return Err(corrupt(&append.session, "the log does not match its head"));
            }
            Ok(AppendOutcome::Conflict { missed })
        }
    }
}

/// Returns the end of the log as the head records it.
fn position(connection: &Connection, key: i64) -> Result<Position, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT version, append FROM sessions WHERE id = ?1")?;
    let position = statement.query_row([key], |row| {
        let append = AppendId::from(row.get::<_, String>(1)?);
        Ok(Position { version: Unsigned::get(row, 0)?, append })
    });
    Ok(position?)
}

fn check_guard(end: &End, guard: Guard, now: Timestamp) -> Option<AppendOutcome> {
    let lease_until = match guard {
        Guard::None | Guard::ParentExists => return None,
        Guard::NotAfter(deadline) if now <= deadline => return None,
        Guard::NotAfter(_) => None,
        Guard::LeaseFree => Some(end.lease_until.filter(|until| now < *until)?),
    };
    Some(AppendOutcome::GuardFailed { lease_until, now })
}

pub(super) fn lease(
    before: Option<Timestamp>,
    change: LeaseChange,
    now: Timestamp,
) -> Option<Timestamp> {
    match change {
        LeaseChange::Keep => before,
        LeaseChange::Take(ttl) => Some(now.after(ttl)),
        LeaseChange::Clear => None,
    }
}

/// Inserts an append into the log. `first` is the version of its first event.
pub(super) fn add(
    statements: &mut Statements<'_>,
    key: i64,
    first: u64,
    append: &Append,
    now: Timestamp,
) -> Result<(), Failure> {
    statements.add.get()?.execute(params![
        row_key::new(key, first)?,
        append.count,
        append.id.as_str(),
        append.run.as_ref().map(RunId::as_str),
        append.schema,
        now.0,
        &append.body[..],
    ])?;
    Ok(())
}

/// Updates the head after an append.
fn update_head(
    statements: &mut Statements<'_>,
    end: &End,
    append: &Append,
    now: Timestamp,
) -> Result<(), Failure> {
    let version = Unsigned(end.version + u64::from(append.count));
    let id = append.id.as_str();
    let until = lease(end.lease_until, append.lease, now).map(|until| until.0);
    let usage = head::usage_text(append)?;
    let Some(summary) = &append.summary else {
        statements
            .update_head
            .get()?
            .execute(params![end.key, version, id, now.0, until, usage])?;
        return Ok(());
    };
    let Summary { status, run, runtime, pending, wake_at } = summary;
    let (status, runtime) = (status.as_str(), &**runtime);
    if end.stays_in_place {
        let values = params![end.key, version, id, now.0, until, usage, status, runtime, pending];
        statements.update_summary.get()?.execute(values)?;
        return Ok(());
    }
    let (run, wake_at) = (run.as_ref().map(RunId::as_str), wake_at.map(|at| at.0));
    statements.update_all.get()?.execute(params![
        end.key, version, id, now.0, until, usage, status, runtime, pending, run, wake_at,
    ])?;
    Ok(())
}
