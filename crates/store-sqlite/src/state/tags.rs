//! The table of tags, by which sessions are listed.

use rusqlite::{Connection, params};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::SessionId;
use helix_agents_core::store::{NewSession, SessionFilter};

use crate::error::Failure;

/// The maximum number of sessions that are counted for one tag.
const MAX_COUNTED: u32 = 1000;

/// A key and a value.
pub(super) type Tag<'a> = (&'a str, &'a str);

/// Inserts the tags of a new session.
pub(super) fn insert(
    connection: &Connection,
    new: &NewSession,
    session: &SessionId,
    created_at: Timestamp,
) -> Result<(), Failure> {
    if new.tags.is_empty() {
        return Ok(());
    }
    let mut statement = connection.prepare_cached(
        "INSERT INTO session_tags (session, key, value, created_at) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for (key, value) in &new.tags {
        statement.execute(params![session.as_str(), key, value, created_at.0])?;
    }
    Ok(())
}

/// Deletes the tags of a session.
pub(super) fn delete(connection: &Connection, session: &SessionId) -> Result<(), Failure> {
    let sql = "DELETE FROM session_tags WHERE session = ?1";
    connection.prepare_cached(sql)?.execute([session.as_str()])?;
    Ok(())
}

/// Returns the tag of a filter that the fewest sessions have. Its sessions are read in list order.
///
/// Returns `None` if the filter has no tag, or if another condition of the filter selects from a
/// smaller index.
pub(super) fn rarest<'a>(
    connection: &Connection,
    filter: &'a SessionFilter,
) -> Result<Option<Tag<'a>>, Failure> {
    if filter.root.is_some() || filter.lease_expired || filter.wake_due {
        return Ok(None);
    }
    let mut tags = filter.tags.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    if filter.tags.len() < 2 {
        return Ok(tags.next());
    }
    let mut statement = connection.prepare_cached(
        "SELECT count(*) FROM (
             SELECT 1 FROM session_tags WHERE key = ?1 AND value = ?2 LIMIT ?3)",
    )?;
    let mut rarest: Option<(u32, Tag<'a>)> = None;
    for tag in tags {
        let (key, value) = tag;
        let count = statement.query_row(params![key, value, MAX_COUNTED], |row| row.get(0))?;
        if rarest.is_none_or(|(fewest, _)| count < fewest) {
            rarest = Some((count, tag));
        }
    }
    Ok(rarest.map(|(_, tag)| tag))
}
