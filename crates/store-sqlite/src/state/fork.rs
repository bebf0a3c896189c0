//! Forks: a row that names the log whose appends precede the fork's own.

use rusqlite::{OptionalExtension as _, params};

use helix_agents_core::id::SessionId;
use helix_agents_core::store::{Append, ForkOutcome, NewSession};

use super::log::Log;
use super::{head, write};
use crate::clock;
use crate::error::{Failure, corrupt, not_found};
use crate::prepared::Tables;
use crate::unsigned::Unsigned;

pub(super) fn fork(
    tables: &mut Tables<'_>,
    from: &SessionId,
    new: &NewSession,
    first: &Append,
) -> Result<ForkOutcome, Failure> {
    let position = &first.expected;
    if let Some(end) = write::find(&mut tables.state, first)? {
        let log = Log::of(tables.connection, end.key)?;
        let stored = log.starting_at(tables.connection, position.version + 1)?;
        let reached = log.reached(tables.connection, position)?;
        return Ok(match stored {
            Some((id, at)) if log.shared() == position.version && reached && id == first.id => {
                ForkOutcome::Created { at }
            }
            _ => ForkOutcome::Exists,
        });
    }
    let original: Option<i64> = tables
        .connection
        .prepare_cached("SELECT id FROM sessions WHERE session = ?1")?
        .query_row([from.as_str()], |row| row.get(0))
        .optional()?;
    let original = original.ok_or_else(|| not_found(from))?;
    let log = Log::of(tables.connection, original)?;
    let Some((covering, at)) = log.covering(tables.connection, position.version)? else {
        return Ok(ForkOutcome::HistoryLost);
    };
    if covering != *position {
        return Ok(ForkOutcome::HistoryLost);
    }
    // If the position is within appends that the original shares with another log, that log is the
    // base.
    let base = log
        .owner(position.version)
        .ok_or_else(|| corrupt(from, "the log does not match its head"))?;
    let now = clock::now().max(at);
    let lease_until = write::lease(None, first.lease, now);
    let key = head::insert(tables.connection, new, first, lease_until, now)?;
    tables
        .connection
        .prepare_cached("INSERT INTO forks (log, base, version) VALUES (?1, ?2, ?3)")?
        .execute(params![key, base, Unsigned(position.version)])?;
    write::add(&mut tables.state, key, position.version + 1, first, now)?;
    Ok(ForkOutcome::Created { at: now })
}
