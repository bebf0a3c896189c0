//! Deleting sessions with their children.

use rusqlite::{Connection, TransactionBehavior};

use helix_agents_core::id::SessionId;

use crate::error::Failure;

pub(super) fn delete(connection: &mut Connection, session: &SessionId) -> Result<bool, Failure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let keys: Vec<i64> = {
        let mut statement = transaction.prepare_cached(
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
        transaction.prepare_cached("DELETE FROM appends WHERE session = ?1")?.execute([key])?;
        transaction.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([key])?;
    }
    transaction.commit()?;
    Ok(!keys.is_empty())
}
