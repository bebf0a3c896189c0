//! Creating, appending and renewing: one transaction each, whatever the length of the log.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::{AppendId, RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, Guard, LeaseChange, NewSession, Position, Renewal,
    StoredAppend, Summary,
};

use super::{head, log};
use crate::clock;
use crate::error::{Failure, corrupt, not_found};

/// What an append has to know of its session.
struct End {
    /// The row of the session.
    key: i64,
    position: Position,
    updated_at: Timestamp,
    lease_until: Option<Timestamp>,
}

pub(super) fn create(
    connection: &mut Connection,
    new: &NewSession,
    first: &Append,
) -> Result<CreateOutcome, Failure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Some(end) = find(&transaction, &first.session)? {
        let stored = log::starting_at(&transaction, end.key, 1)?;
        let (id, at) = stored
            .ok_or_else(|| corrupt(&first.session, "the first append of a session is missing"))?;
        return Ok(if id == first.id {
            CreateOutcome::Created { at }
        } else {
            CreateOutcome::Exists
        });
    }
    let now = clock::now();
    head::insert(&transaction, new, first, now)?;
    let end = End {
        key: transaction.last_insert_rowid(),
        position: Position::start(),
        updated_at: now,
        lease_until: None,
    };
    take(&transaction, &end, first, now)?;
    transaction.commit()?;
    Ok(CreateOutcome::Created { at: now })
}

pub(super) fn append(
    connection: &mut Connection,
    append: &Append,
) -> Result<AppendOutcome, Failure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let end = find(&transaction, &append.session)?.ok_or_else(|| not_found(&append.session))?;
    if append.expected != end.position {
        return judge_elsewhere(&transaction, &end, append);
    }
    let now = clock::now().max(end.updated_at);
    if let Some(failed) = judge_guard(&end, append.guard, now) {
        return Ok(failed);
    }
    take(&transaction, &end, append, now)?;
    transaction.commit()?;
    Ok(AppendOutcome::Appended { at: now })
}

pub(super) fn renew(
    connection: &mut Connection,
    session: &SessionId,
    run: &RunId,
    ttl: Duration,
) -> Result<Renewal, Failure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut head = head::find(&transaction, session)?.ok_or_else(|| not_found(session))?;
    if head.summary.run.as_ref() != Some(run) {
        return Ok(Renewal { renewed: false, head });
    }
    let until = head.read_at.after(ttl);
    transaction
        .prepare_cached("UPDATE sessions SET lease_until = ?2 WHERE session = ?1")?
        .execute(params![session.as_str(), until.0])?;
    transaction.commit()?;
    head.lease_until = Some(until);
    Ok(Renewal { renewed: true, head })
}

fn find(transaction: &Transaction<'_>, session: &SessionId) -> Result<Option<End>, Failure> {
    let mut statement = transaction.prepare_cached(
        "SELECT id, version, append, updated_at, lease_until FROM sessions WHERE session = ?1",
    )?;
    let end = statement.query_row([session.as_str()], |row| {
        Ok(End {
            key: row.get(0)?,
            position: Position {
                version: row.get(1)?,
                append: AppendId::from(row.get::<_, String>(2)?),
            },
            updated_at: Timestamp(row.get(3)?),
            lease_until: row.get::<_, Option<i64>>(4)?.map(Timestamp),
        })
    });
    Ok(end.optional()?)
}

/// What an append gets whose position is not the end of the log.
fn judge_elsewhere(
    transaction: &Transaction<'_>,
    end: &End,
    append: &Append,
) -> Result<AppendOutcome, Failure> {
    let expected = &append.expected;
    let stale = expected.version < end.position.version;
    if !stale || !log::reached(transaction, end.key, expected)? {
        return Ok(AppendOutcome::HistoryLost);
    }
    match log::starting_at(transaction, end.key, expected.version + 1)? {
        Some((id, at)) if id == append.id => Ok(AppendOutcome::Appended { at }),
        _ => {
            let after = expected.version;
            let missed = log::after(transaction, end.key, &append.session, after, u32::MAX)?;
            let begins = missed.first().map(|it| it.first);
            let ends = missed.last().map(StoredAppend::position);
            if begins != Some(after + 1) || ends.as_ref() != Some(&end.position) {
                return Err(corrupt(&append.session, "the log does not have what its head says"));
            }
            Ok(AppendOutcome::Conflict { missed })
        }
    }
}

fn judge_guard(end: &End, guard: Guard, now: Timestamp) -> Option<AppendOutcome> {
    let lease_until = match guard {
        Guard::None => return None,
        Guard::NotAfter(deadline) if now <= deadline => return None,
        Guard::NotAfter(_) => None,
        Guard::LeaseFree => Some(end.lease_until.filter(|until| now < *until)?),
    };
    Some(AppendOutcome::GuardFailed { lease_until, now })
}

/// Writes the append behind the end, and the head after it.
fn take(
    transaction: &Transaction<'_>,
    end: &End,
    append: &Append,
    now: Timestamp,
) -> Result<(), Failure> {
    let first = end.position.version + 1;
    transaction
        .prepare_cached(
            "INSERT INTO appends (session, first, count, id, run, schema, at, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            end.key,
            first,
            append.count,
            append.id.as_str(),
            append.run.as_ref().map(RunId::as_str),
            append.schema,
            now.0,
            &append.body[..],
        ])?;
    let lease_until = match append.lease {
        LeaseChange::Keep => end.lease_until,
        LeaseChange::Take(ttl) => Some(now.after(ttl)),
        LeaseChange::Clear => None,
    };
    transaction
        .prepare_cached(
            "UPDATE sessions SET version = ?2, append = ?3, updated_at = ?4, lease_until = ?5
             WHERE id = ?1",
        )?
        .execute(params![
            end.key,
            end.position.version + u64::from(append.count),
            append.id.as_str(),
            now.0,
            lease_until.map(|until| until.0),
        ])?;
    match &append.summary {
        Some(summary) => summarise(transaction, end.key, summary),
        None => Ok(()),
    }
}

fn summarise(transaction: &Transaction<'_>, key: i64, summary: &Summary) -> Result<(), Failure> {
    transaction
        .prepare_cached(
            "UPDATE sessions SET status = ?2, run = ?3, runtime = ?4, pending = ?5, wake_at = ?6
             WHERE id = ?1",
        )?
        .execute(params![
            key,
            summary.status.as_str(),
            summary.run.as_ref().map(RunId::as_str),
            &*summary.runtime,
            summary.pending,
            summary.wake_at.map(|at| at.0),
        ])?;
    Ok(())
}
