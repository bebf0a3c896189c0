//! Deleting sessions with their children.

use rusqlite::Connection;

use helix_agents_core::id::SessionId;

use crate::error::Failure;
use crate::place;

pub(super) fn delete(connection: &Connection, session: &SessionId) -> Result<bool, Failure> {
    let keys: Vec<i64> = {
        let mut statement = connection.prepare_cached(
            "WITH RECURSIVE tree (id, session) AS (
                 SELECT id, session FROM sessions WHERE session = ?1
                 UNION
                 SELECT child.id, child.session FROM sessions AS child
                 JOIN tree ON child.parent = tree.session
             )
             SELECT id FROM tree",
        )?;
        let keys = statement.query_map([session.as_str()], |row| row.get(0))?;
        keys.collect::<Result<_, _>>()?
    };
    for key in &keys {
        let appends = place::all(*key);
        connection
            .prepare_cached("DELETE FROM appends WHERE key BETWEEN ?1 AND ?2")?
            .execute([appends.start(), appends.end()])?;
        connection.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([key])?;
    }
    Ok(!keys.is_empty())
}
