//! The footprint of runs in DBOS's tables.

use std::time::Duration;

use anyhow::{Result, ensure};
use helix_agents_testkit::servers;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use crate::job::EngineTraces;
use crate::measure::engine::{Namespace, SCHEMA};

/// Counts and measures the rows of an application's workflows and steps, and counts the workflows
/// that have not ended.
const LEFT: &str = "
    SELECT count(DISTINCT w.workflow_uuid) + count(o.workflow_uuid),
        (coalesce(sum(pg_column_size(o.*)), 0) + max(pg_column_size(w.*)) * count(DISTINCT w.workflow_uuid))::bigint,
        count(*) FILTER (WHERE w.status IN ('ENQUEUED', 'PENDING'))
    FROM {s}.workflow_status w LEFT JOIN {s}.operation_outputs o USING (workflow_uuid)
    WHERE w.application_name = $1";

/// The maximum number of polls for the end of the workflows, and the interval between them.
const POLLS: u32 = 500;
const INTERVAL: Duration = Duration::from_millis(20);

pub(super) async fn left(namespace: &Namespace) -> Result<EngineTraces> {
    let mut connection = PgConnection::connect(&servers::postgres()).await?;
    for _ in 0..POLLS {
        let sql = AssertSqlSafe(LEFT.replace("{s}", SCHEMA));
        let row = sqlx::query(sql).bind(&namespace.name).fetch_one(&mut connection).await?;
        let number = |index: usize| anyhow::Ok(u64::try_from(row.try_get::<i64, _>(index)?)?);
        let (rows, bytes, open) = (number(0)?, number(1)?, number(2)?);
        ensure!(rows > 0, "DBOS has no workflow of this application");
        if open == 0 {
            return Ok(EngineTraces { rows, bytes });
        }
        tokio::time::sleep(INTERVAL).await;
    }
    anyhow::bail!("the DBOS workflows have not ended")
}
