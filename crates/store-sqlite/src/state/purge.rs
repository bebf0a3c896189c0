//! Forgetting what is old.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use helix_agents_core::id::SessionId;
use helix_agents_core::store::Purge;

use super::delete;
use crate::clock;
use crate::error::Failure;
use crate::prepared::Tables;

/// How many trees are forgotten in one transaction, so that others are not kept waiting.
const BATCH: u32 = 64;

/// Forgets some of what is to be forgotten; returns the sessions that went, none when nothing is left.
pub(super) fn purge_some(
    tables: &mut Tables<'_>,
    purge: &Purge,
) -> Result<Vec<SessionId>, Failure> {
    let mut gone = Vec::new();
    for root in find(tables.connection, purge)? {
        gone.extend(delete::delete(tables, &root)?);
    }
    Ok(gone)
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
    let statuses = purge.statuses.iter().map(|it| Value::from(it.as_str().to_owned()));
    let times = [now.saturating_sub(age), now].map(Value::from);
    let found = statement.query_map(params_from_iter(statuses.chain(times)), |row| {
        Ok(SessionId::from(row.get::<_, String>(0)?))
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}
