//! Deletion of old sessions.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use helix_agents_core::id::SessionId;
use helix_agents_core::store::Purge;

use super::delete;
use crate::clock;
use crate::error::Failure;
use crate::prepared::Tables;

/// The number of session trees that one transaction deletes, so that other writers do not wait
/// long.
const BATCH: u32 = 64;

/// Deletes a batch of the sessions that `purge` selects. Returns the deleted sessions; the list is
/// empty if none are left.
pub(super) fn purge_some(
    tables: &mut Tables<'_>,
    purge: &Purge,
) -> Result<Vec<SessionId>, Failure> {
    let mut deleted = Vec::new();
    for root in find(tables.connection, purge)? {
        deleted.extend(delete::delete(tables, &root)?);
    }
    Ok(deleted)
}

fn find(connection: &Connection, purge: &Purge) -> Result<Vec<SessionId>, Failure> {
    let now = clock::now().0;
    let age = i64::try_from(purge.older_than.as_millis()).unwrap_or(i64::MAX);
    let named = vec!["?"; purge.statuses.len()].join(", ");
    let mut statement = connection.prepare(&format!(
        "SELECT session FROM sessions AS top
         WHERE status IN ({named}) AND NOT EXISTS (
             SELECT 1 FROM sessions AS above WHERE above.session = top.parent
         ) AND NOT EXISTS (
             SELECT 1 FROM sessions AS below
             WHERE below.root = top.root AND (below.updated_at > ? OR below.lease_until > ?))
         ORDER BY created_at, session LIMIT {BATCH}"
    ))?;
    let statuses = purge.statuses.iter().map(|status| Value::from(status.as_str().to_owned()));
    let times = [now.saturating_sub(age), now].map(Value::from);
    let found = statement.query_map(params_from_iter(statuses.chain(times)), |row| {
        Ok(SessionId::from(row.get::<_, String>(0)?))
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}
