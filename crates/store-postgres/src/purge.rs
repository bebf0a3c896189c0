//! Retention: deletion of old sessions.

use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Row as _};

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::store::Purge;

use crate::PostgresStore;
use crate::connections::drive;
use crate::detached::detached;
use crate::error::Failure;
use crate::sql::{Schema, Sql, signed};
use crate::state::delete;

/// The number of session trees that one transaction deletes.
const BATCH: i64 = 100;

#[derive(Debug)]
pub(crate) struct Statements {
    find: Sql,
    delete: delete::Statements,
}

impl Statements {
    pub(crate) fn new(schema: &Schema) -> Self {
        Self {
            find: schema.sql(
                "SELECT session FROM {s}.sessions AS top
                 WHERE status = ANY($1) AND updated_at <= {now} - $2
                     AND NOT EXISTS (
                         SELECT FROM {s}.sessions AS above WHERE above.session = top.parent)
                     AND NOT EXISTS (
                         SELECT FROM {s}.sessions AS below
                         WHERE below.root = top.root AND (
                             below.updated_at > {now} - $2 OR below.lease_until > {now}))
                 ORDER BY created_at, session LIMIT $3
                 FOR UPDATE SKIP LOCKED",
            ),
            delete: delete::Statements::new(schema),
        }
    }
}

impl PostgresStore {
    /// Purges in transactions of bounded size.
    pub(crate) async fn purge_all(&self, purge: &Purge) -> Result<u64> {
        let mut purged = 0;
        loop {
            let (store, purge) = (self.clone(), purge.clone());
            let some = async move {
                let connections = &store.inner.connections;
                drive!(connections, |connection| store.purge_some(connection, &purge))
            };
            let deleted =
                detached(some).await.map_err(|error| error.with_operation("store::purge"))?;
            if deleted.is_empty() {
                return Ok(purged);
            }
            deleted.iter().for_each(|session| self.wake(session));
            purged += deleted.len() as u64;
        }
    }

    async fn purge_some(
        &self,
        connection: &mut PgConnection,
        purge: &Purge,
    ) -> Result<Vec<SessionId>, Failure> {
        let statements = &self.inner.purge;
        let statuses: Vec<&str> = purge.statuses.iter().map(|status| status.as_str()).collect();
        let age = signed(u64::try_from(purge.older_than.as_millis()).unwrap_or(u64::MAX));
        let mut transaction = connection.begin().await?;
        // The rows are locked, so that no run of these sessions starts in the meantime.
        let query = statements.find.query().bind(statuses).bind(age).bind(BATCH);
        let rows = query.fetch_all(&mut transaction).await?;
        let sessions: Vec<&str> =
            rows.iter().map(|row| row.try_get(0)).collect::<Result<_, sqlx::Error>>()?;
        if sessions.is_empty() {
            transaction.rollback().await?;
            return Ok(Vec::new());
        }
        let purged = delete::delete_all(&mut transaction, &statements.delete, &sessions).await?;
        transaction.commit().await?;
        Ok(purged)
    }
}
