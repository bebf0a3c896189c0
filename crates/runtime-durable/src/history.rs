//! Cleanup of DBOS's tables. DBOS itself deletes nothing.

use std::sync::{Arc, Weak};
use std::time::Duration;

use dbos::Children;
use dbos::sysdb::types::{Timestamp, WorkflowFilter, WorkflowStatus};
use helix_agents_core::store::StateStore;
use helix_agents_runtime::RunRef;

use crate::engine::{DurableEngine, run_of};
use crate::workflow;

/// The number of rows per query.
const BATCH: i64 = 500;

/// The minimum and the maximum interval between cleanups.
const PACE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5 * 60));

/// The statuses of workflows that are never executed again.
const ENDED: [WorkflowStatus; 4] = [
    WorkflowStatus::Success,
    WorkflowStatus::Error,
    WorkflowStatus::Cancelled,
    WorkflowStatus::MaxRecoveryAttemptsExceeded,
];

/// Periodically deletes workflows that ended long enough ago. Every process of an application does this; deleting a row
/// twice is harmless.
pub(crate) fn spawn_cleanup(engine: &Arc<DurableEngine>, keep: Duration) {
    let pace = (keep / 8).clamp(PACE.0, PACE.1);
    let (context, engine) = (Arc::clone(engine.context()), Arc::downgrade(engine));
    let tasks = Arc::clone(&context);
    drop(tasks.tasks.spawn(async move {
        loop {
            tokio::select! {
                biased;
                () = context.tasks.drain.cancelled() => return,
                () = context.clock.sleep(pace) => {}
            }
            let Some(engine) = Weak::upgrade(&engine) else { return };
            let cleaned = tokio::select! {
                biased;
                () = context.tasks.drain.cancelled() => return,
                cleaned = delete_old_rows(&engine, keep) => cleaned,
            };
            if let Err(error) = cleaned {
                tracing::warn!(%error, "old rows of DBOS were not removed");
            }
        }
    }));
}

/// Deletes the rows of workflows that ended long enough ago, and cancels orphaned workflows.
async fn delete_old_rows(engine: &DurableEngine, keep: Duration) -> Result<(), dbos::Error> {
    let Some(before) = ago(keep) else { return Ok(()) };
    let ended = || WorkflowFilter {
        names: vec![workflow::NAME],
        status: ENDED.to_vec(),
        completed_before: Some(before),
        limit: Some(BATCH),
        load_input: false,
        load_output: false,
        ..WorkflowFilter::default()
    };
    loop {
        let rows = engine.dbos().list_workflows(&ended()).await?;
        let ids: Vec<_> = rows.iter().map(|row| row.workflow_id.as_str()).collect();
        if ids.is_empty() {
            break;
        }
        let removed = engine.dbos().delete_all(&ids, Children::Skip).await?;
        tracing::debug!(removed, "old rows of DBOS were removed");
    }
    cancel_orphans(engine, before).await
}

/// Cancels workflows that were created before this time, are still open, and whose run is no longer current. Such a
/// workflow remains if its process crashed and the process that took over the run could not cancel it.
async fn cancel_orphans(engine: &DurableEngine, before: Timestamp) -> Result<(), dbos::Error> {
    let mut offset = 0;
    loop {
        let open = WorkflowFilter {
            names: vec![workflow::NAME],
            status: vec![WorkflowStatus::Pending, WorkflowStatus::Enqueued],
            created_before: Some(before),
            limit: Some(BATCH),
            offset: Some(offset),
            load_output: false,
            ..WorkflowFilter::default()
        };
        let rows = engine.dbos().list_workflows(&open).await?;
        if rows.is_empty() {
            return Ok(());
        }
        let mut orphans = Vec::new();
        for row in &rows {
            if let Some(run_ref) = run_of(row)
                && is_replaced(&*engine.context().store, &run_ref).await
            {
                orphans.push(row.workflow_id.as_str());
            }
        }
        offset += BATCH - i64::try_from(orphans.len()).unwrap_or(0);
        if !orphans.is_empty() {
            engine.dbos().cancel_all(&orphans, Children::Skip).await?;
        }
    }
}

/// Returns `true` if this run is no longer the session's current run. An unknown session may belong to another store.
async fn is_replaced(store: &dyn StateStore, run_ref: &RunRef) -> bool {
    let head = store.head(&run_ref.session).await.ok().flatten();
    head.is_some_and(|head| head.summary.run.as_ref() != Some(&run_ref.run))
}

fn ago(time: Duration) -> Option<Timestamp> {
    let millis = i64::try_from(time.as_millis()).ok()?;
    Timestamp::now().as_epoch_ms().checked_sub(millis).map(Timestamp::from_epoch_ms)
}
