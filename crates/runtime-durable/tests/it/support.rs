//! What the tests have in common: a corner of DBOS's tables.

use helix_agents_runtime_durable::{DurableRuntime, DurableRuntimeBuilder};
use helix_agents_testkit::servers::{self, Afterwards};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};

/// The schema that all tests share: bringing one up to date takes longer than most of them.
pub(crate) const SCHEMA: &str = "helix_dbos_tests";

/// An application of a test's own in DBOS's tables, until this is dropped.
#[derive(Debug)]
pub(crate) struct Corner {
    pub(crate) url: String,
    pub(crate) app: String,
    _gone: Afterwards,
}

impl Corner {
    pub(crate) fn new() -> Self {
        let (url, app) = (servers::postgres(), servers::unique());
        let (gone_url, gone_app) = (url.clone(), app.clone());
        let gone = Afterwards::new(move || async move {
            let mut db = PgConnection::connect(&gone_url).await.unwrap();
            for table in ["workflow_status", "application_versions"] {
                let sql = format!("DELETE FROM {SCHEMA}.{table} WHERE application_name = $1");
                sqlx::query(AssertSqlSafe(sql)).bind(&gone_app).execute(&mut db).await.unwrap();
            }
        });
        Self { url, app, _gone: gone }
    }

    /// A runtime in it.
    pub(crate) fn builder(&self) -> DurableRuntimeBuilder {
        DurableRuntime::builder()
            .database(&self.url)
            .schema(SCHEMA)
            .app_name(&self.app)
            .connections(4)
    }
}
