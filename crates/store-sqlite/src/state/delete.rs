//! Deletion of sessions with their descendants and streams.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _};

use helix_agents_core::id::SessionId;
use helix_agents_core::store::Head;

use super::head;
use super::tags;
use crate::error::Failure;
use crate::prepared::Tables;
use crate::unsigned::Unsigned;
use crate::{row_key, streams};

/// Deletes a session that has these tags, and its descendants. Returns the deleted sessions.
pub(super) fn delete_if(
    tables: &mut Tables<'_>,
    session: &SessionId,
    required_tags: &BTreeMap<String, String>,
) -> Result<Vec<SessionId>, Failure> {
    let has_tags = |head: Head| head.created.has_tags(required_tags);
    if required_tags.is_empty() || head::find(tables.connection, session)?.is_some_and(has_tags) {
        return delete(tables, session);
    }
    Ok(Vec::new())
}

/// Deletes a session and its descendants. Returns the deleted sessions.
pub(super) fn delete(
    tables: &mut Tables<'_>,
    session: &SessionId,
) -> Result<Vec<SessionId>, Failure> {
    let connection = tables.connection;
    let found: Vec<(i64, SessionId)> = {
        let mut statement = connection.prepare_cached(
            "WITH RECURSIVE tree (id, session) AS (
                 SELECT id, session FROM sessions WHERE session = ?1
                 UNION
                 SELECT child.id, child.session FROM sessions AS child
                 JOIN tree ON child.parent = tree.session
             )
             SELECT id, session FROM tree",
        )?;
        let found = statement.query_map([session.as_str()], |row| {
            Ok((row.get(0)?, SessionId::from(row.get::<_, String>(1)?)))
        })?;
        found.collect::<Result<_, _>>()?
    };
    for (key, session) in &found {
        connection.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([key])?;
        connection.prepare_cached("DELETE FROM snapshots WHERE session = ?1")?.execute([key])?;
        tags::delete(connection, session)?;
    }
    for (key, session) in &found {
        forget(connection, *key)?;
        streams::write::forget(tables, session)?;
    }
    Ok(found.into_iter().map(|(_, session)| session).collect())
}

/// Deletes the appends of a deleted session that no other log shares. If no append remains, does
/// the same for the log that it was forked from, if that log's session is deleted, too.
fn forget(connection: &Connection, key: i64) -> Result<(), Failure> {
    let mut next = Some(key);
    while let Some(key) = next.take() {
        let shared: Option<Unsigned> = connection
            .prepare_cached("SELECT max(version) FROM forks WHERE base = ?1")?
            .query_row([key], |row| row.get(0))?;
        let appends = row_key::since(key, shared.map_or(0, |Unsigned(version)| version + 1));
        connection
            .prepare_cached("DELETE FROM appends WHERE key BETWEEN ?1 AND ?2")?
            .execute([appends.start(), appends.end()])?;
        if shared.is_some() {
            continue;
        }
        let base: Option<i64> = connection
            .prepare_cached("DELETE FROM forks WHERE log = ?1 RETURNING base")?
            .query_row([key], |row| row.get(0))
            .optional()?;
        let Some(base) = base else { continue };
        let exists: bool = connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?1)")?
            .query_row([base], |row| row.get(0))?;
        next = (!exists).then_some(base);
    }
    Ok(())
}
