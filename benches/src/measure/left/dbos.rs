//! What runs left in DBOS's tables.

use std::time::Duration;

use anyhow::{Result, ensure};
use helix_agents_testkit::servers;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use crate::job::EngineTraces;
use crate::measure::engine::{SCHEMA, Spot};

/// The rows of an application's workflows and of their steps, and how many workflows have not ended.
const LEFT: &str = "
    SELECT count(DISTINCT w.workflow_uuid) + count(o.workflow_uuid),
        (coalesce(sum(pg_column_size(o.*)), 0) + max(pg_column_size(w.*)) * count(DISTINCT w.workflow_uuid))::bigint,
        count(*) FILTER (WHERE w.status IN ('ENQUEUED', 'PENDING'))
    FROM {s}.workflow_status w LEFT JOIN {s}.operation_outputs o USING (workflow_uuid)
    WHERE w.application_name = $1";

/// How often DBOS is asked whether it knows that a workflow has ended, and how long between.
const LOOKS: u32 = 500;
const PACE: Duration = Duration::from_millis(20);

pub(super) async fn left(spot: &Spot) -> Result<EngineTraces> {
    let mut connection = PgConnection::connect(&servers::postgres()).await?;
    for _ in 0..LOOKS {
        let sql = AssertSqlSafe(LEFT.replace("{s}", SCHEMA));
        let row = sqlx::query(sql).bind(&spot.name).fetch_one(&mut connection).await?;
        let number = |index: usize| anyhow::Ok(u64::try_from(row.try_get::<i64, _>(index)?)?);
        let (rows, bytes, open) = (number(0)?, number(1)?, number(2)?);
        ensure!(rows > 0, "DBOS knows of no workflow");
        if open == 0 {
            return Ok(EngineTraces { rows, bytes });
        }
        tokio::time::sleep(PACE).await;
    }
    anyhow::bail!("DBOS does not know that the runs have ended")
}
