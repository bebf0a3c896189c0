//! The activities, which execute the work items of runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use helix_agents_core::error::Result;
use helix_agents_core::store::SessionStatus;
use helix_agents_runtime::{NextWork, RunRef, Runtime, WorkItem};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::failure;
use crate::payloads::{CallInput, FollowInput, PerformInput, PerformOutput};
use crate::pending_children::{ChildCollector, PendingChildren};
use crate::server_client::ServerClient;

/// The heartbeat interval of an activity without a heartbeat timeout.
const USUAL_BEAT: Duration = Duration::from_secs(5);

/// The maximum time that one activity waits for a child when such waits occupy more than half of a worker's slots. The
/// children need slots for their own work items.
const CROWDED_LIMIT: Duration = Duration::from_secs(1);

/// The implementation of a worker's activities.
#[derive(Debug)]
pub(crate) struct Activities {
    runtime: Runtime,
    server: ServerClient,
    pending_children: PendingChildren,
    signals: Signals,
    /// The maximum number of concurrent activities of the worker.
    slots: usize,
    /// The number of activities that are waiting for children.
    waits: AtomicUsize,
}

/// Counts a wait for a child until it is dropped.
struct WaitGuard<'a>(&'a AtomicUsize);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The signals from a worker to its activities.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signals {
    /// Cancelled when a graceful shutdown begins. An activity that is cancelled at the end of the graceful period fails
    /// with a retryable error, so that another worker retries it.
    pub ending: CancellationToken,
    /// Cancelled when the worker was dropped, as if its process had been killed.
    pub gone: CancellationToken,
}

impl Activities {
    pub(crate) fn new(
        runtime: Runtime,
        server: ServerClient,
        pending_children: PendingChildren,
        signals: Signals,
        slots: usize,
    ) -> Self {
        Self { runtime, server, pending_children, signals, slots, waits: AtomicUsize::new(0) }
    }

    /// Returns the limit of the next wait for a child. The wait is counted until the guard is dropped.
    fn wait(&self, longest: Duration) -> (Duration, WaitGuard<'_>) {
        let waits = self.waits.fetch_add(1, Ordering::Relaxed) + 1;
        let is_crowded = waits > self.slots / 2;
        (if is_crowded { longest.min(CROWDED_LIMIT) } else { longest }, WaitGuard(&self.waits))
    }

    /// Runs the work of an activity and sends heartbeats. The work is dropped while running if the activity is
    /// cancelled or the worker is gone.
    async fn drive<T>(
        &self,
        cx: &ActivityContext,
        mut work: BoxFuture<'_, Result<T>>,
    ) -> Result<T, ActivityError> {
        let every = cx.info().heartbeat_timeout.map_or(USUAL_BEAT, |timeout| timeout / 3);
        let every = every.max(Duration::from_millis(1));
        // Most activities complete before the first heartbeat is due.
        let mut beat = tokio::time::interval_at(Instant::now() + every, every);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = self.signals.gone.cancelled() => {
                    drop(work);
                    // No message is sent; the server detects the missing heartbeats.
                    return std::future::pending().await;
                }
                done = &mut work => {
                    return done.map_err(|error| failure::activity_error(&error));
                }
                () = cx.cancelled() => {
                    let is_ending = self.signals.ending.is_cancelled();
                    return Err(if is_ending { failure::shutdown_error() } else { ActivityError::cancelled() });
                }
                _ = beat.tick() => {
                    if let Err(error) = cx.record_heartbeat(()).await {
                        tracing::warn!(%error, "a heartbeat was not sent");
                    }
                }
            }
        }
    }

    /// Starts the workflows of children whose parent workflow cannot start them.
    async fn start(&self, children: &[RunRef]) {
        for child in children {
            if let Err(error) = self.server.start(child, false).await {
                tracing::warn!(session = %child.session, %error, "the workflow of a child was not started");
            }
        }
    }

    async fn status(&self, run_ref: &RunRef) -> Option<String> {
        let head = self.runtime.context().store.head(&run_ref.session).await.ok()??;
        let taken = head.summary.run.is_some_and(|run| run != run_ref.run);
        let status = match head.summary.status {
            _ if taken => "superseded",
            SessionStatus::Active => "suspended",
            SessionStatus::Completed => "completed",
            SessionStatus::Failed => "failed",
            SessionStatus::Interrupted => "interrupted",
            SessionStatus::Aborted => "aborted",
        };
        Some(status.to_owned())
    }
}

#[activities]
impl Activities {
    /// Executes a work item and returns the next work.
    #[activity(name = "perform")]
    pub(crate) async fn perform(
        self: Arc<Self>,
        cx: ActivityContext,
        input: PerformInput,
    ) -> Result<PerformOutput, ActivityError> {
        let PerformInput { run_ref, item, is_first } = &input;
        let is_first = *is_first && cx.info().attempt <= 1;
        let work = async {
            // A companion can receive messages in the same work item that starts it, so its start cannot wait for the
            // item's end.
            let below = (*item == WorkItem::Children)
                .then(|| self.pending_children.collect(&run_ref.session));
            let next = self.runtime.perform(run_ref, item, is_first).await;
            let children = below.map(ChildCollector::finish).unwrap_or_default();
            let next = match next {
                Ok(next) => next,
                Err(error) => {
                    self.start(&children).await;
                    return Err(error);
                }
            };
            let status = if next == NextWork::Done { self.status(run_ref).await } else { None };
            Ok(PerformOutput { next, children, status })
        };
        self.drive(&cx, Box::pin(work)).await
    }

    /// Executes one of several concurrent calls.
    #[activity(name = "call")]
    pub(crate) async fn call(
        self: Arc<Self>,
        cx: ActivityContext,
        input: CallInput,
    ) -> Result<(), ActivityError> {
        let CallInput { run_ref, call } = &input;
        let is_first = cx.info().attempt <= 1;
        let work = async {
            match is_first {
                true => self.runtime.perform_call(run_ref, call).await,
                false => self.runtime.retry_call(run_ref, call).await,
            }
        };
        self.drive(&cx, Box::pin(work)).await
    }

    /// Waits for a child of the run.
    #[activity(name = "follow")]
    pub(crate) async fn follow(
        self: Arc<Self>,
        cx: ActivityContext,
        input: FollowInput,
    ) -> Result<(), ActivityError> {
        let FollowInput { run_ref, call, limit_ms } = &input;
        let (limit, _counted) = self.wait(Duration::from_millis(*limit_ms));
        let work = self.runtime.follow_child(run_ref, call, limit);
        self.drive(&cx, Box::pin(work)).await
    }

    /// Releases a run that its workflow will not continue.
    #[activity(name = "give_up")]
    pub(crate) async fn release_run(
        self: Arc<Self>,
        cx: ActivityContext,
        run_ref: RunRef,
    ) -> Result<(), ActivityError> {
        let work = async {
            self.runtime.release_run(&run_ref).await;
            Ok(())
        };
        self.drive(&cx, Box::pin(work)).await
    }
}
