//! What of DBOS's tables nobody needs any more. DBOS itself removes nothing.

use std::sync::{Arc, Weak};
use std::time::Duration;

use dbos::Children;
use dbos::sysdb::types::{Timestamp, WorkflowFilter, WorkflowStatus};
use helix_agents_core::store::StateStore;
use helix_agents_runtime::RunRef;

use crate::engine::{Workflows, run_of};
use crate::workflow;

/// How many rows are looked at together.
const BATCH: i64 = 500;

/// How often this is done at most, and at least.
const PACE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5 * 60));

/// Statuses of workflows that nobody carries out again.
const ENDED: [WorkflowStatus; 4] = [
    WorkflowStatus::Success,
    WorkflowStatus::Error,
    WorkflowStatus::Cancelled,
    WorkflowStatus::MaxRecoveryAttemptsExceeded,
];

/// Removes, now and then, what ended that long ago. Every process of an application does: it does no harm
/// to remove what is gone.
pub(crate) fn keep_short(engine: &Arc<Workflows>, keep: Duration) {
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
            let tidied = tokio::select! {
                biased;
                () = context.tasks.drain.cancelled() => return,
                tidied = tidy(&engine, keep) => tidied,
            };
            if let Err(error) = tidied {
                tracing::warn!(%error, "old rows of DBOS were not removed");
            }
        }
    }));
}

/// Removes the rows of workflows that ended so long ago, and ends those that nobody will.
async fn tidy(engine: &Workflows, keep: Duration) -> Result<(), dbos::Error> {
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
    end_left_ones(engine, before).await
}

/// Cancels old workflows whose process is gone and whose run another one took over, but whom it could not
/// tell.
async fn end_left_ones(engine: &Workflows, before: Timestamp) -> Result<(), dbos::Error> {
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
        let mut left = Vec::new();
        for row in &rows {
            if let Some(of) = run_of(row)
                && is_over(&*engine.context().store, &of).await
            {
                left.push(row.workflow_id.as_str());
            }
        }
        offset += BATCH - i64::try_from(left.len()).unwrap_or(0);
        if !left.is_empty() {
            engine.dbos().cancel_all(&left, Children::Skip).await?;
        }
    }
}

/// Whether a session has gone on without this run. One that cannot be found may be another store's.
async fn is_over(store: &dyn StateStore, of: &RunRef) -> bool {
    let head = store.head(&of.session).await.ok().flatten();
    head.is_some_and(|head| head.summary.run.as_ref() != Some(&of.run))
}

fn ago(time: Duration) -> Option<Timestamp> {
    let millis = i64::try_from(time.as_millis()).ok()?;
    Timestamp::now().as_epoch_ms().checked_sub(millis).map(Timestamp::from_epoch_ms)
}
