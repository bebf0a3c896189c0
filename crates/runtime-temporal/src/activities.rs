//! The parts of runs, as activities.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use helix_agents_core::error::Result;
use helix_agents_core::id::CallId;
use helix_agents_core::store::SessionStatus;
use helix_agents_runtime::{Next, RunRef, Runtime, WorkItem};
use serde::{Deserialize, Serialize};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::failure;
use crate::nursery::{Open, PendingChildren};
use crate::runtime::TemporalRuntime;
use crate::server::Server;
use crate::workflow::{PerformInput, Performed};

/// How often a sign of life is given, if the server does not say how long it waits for one.
const USUAL_BEAT: Duration = Duration::from_secs(5);

/// How long a parent waits at a time where more than half of a worker's slots are taken by such waits:
/// the children have parts of their own, which need some of them.
const CROWDED: Duration = Duration::from_secs(1);

/// One of several calls to carry out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallInput {
    pub of: RunRef,
    pub call: CallId,
}

/// A child to wait for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FollowInput {
    pub of: RunRef,
    pub call: CallId,
    pub limit_ms: u64,
}

/// What a worker carries parts out with.
#[derive(Debug)]
pub(crate) struct Activities {
    runtime: Runtime,
    server: Server,
    nursery: PendingChildren,
    signals: Signals,
    /// How many activities the worker carries out at once.
    slots: usize,
    /// How many of them wait for children.
    waits: AtomicUsize,
}

/// A wait for a child; dropped when it is over.
struct Wait<'a>(&'a AtomicUsize);

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a worker's activities hear of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signals {
    /// It ends in good order: what is under way is handed to others.
    pub ending: CancellationToken,
    /// It is gone, as if its process had been killed.
    pub gone: CancellationToken,
}

impl Activities {
    pub(crate) fn new(runtime: &TemporalRuntime, signals: Signals, slots: usize) -> Self {
        Self {
            runtime: runtime.inner().clone(),
            server: runtime.server().clone(),
            nursery: runtime.nursery().clone(),
            signals,
            slots,
            waits: AtomicUsize::new(0),
        }
    }

    /// How long the next wait for a child may take. The wait is counted until the guard is dropped.
    fn wait(&self, longest: Duration) -> (Duration, Wait<'_>) {
        let waits = self.waits.fetch_add(1, Ordering::Relaxed) + 1;
        let is_crowded = waits > self.slots / 2;
        (if is_crowded { longest.min(CROWDED) } else { longest }, Wait(&self.waits))
    }

    /// Carries out what an activity is about, and lets the server know that it is at it. It is dropped in the middle when
    /// nobody wants it any more.
    async fn drive<T>(
        &self,
        cx: &ActivityContext,
        mut work: BoxFuture<'_, Result<T>>,
    ) -> Result<T, ActivityError> {
        let every = cx.info().heartbeat_timeout.map_or(USUAL_BEAT, |timeout| timeout / 3);
        let every = every.max(Duration::from_millis(1));
        // Most parts are over before they have to give a sign of life.
        let mut beat = tokio::time::interval_at(Instant::now() + every, every);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = self.signals.gone.cancelled() => {
                    drop(work);
                    // Who is gone tells nobody: the server misses the heartbeats.
                    return std::future::pending().await;
                }
                done = &mut work => {
                    return done.map_err(|error| failure::of_part(&error));
                }
                () = cx.cancelled() => {
                    let is_ending = self.signals.ending.is_cancelled();
                    return Err(if is_ending { failure::of_shutdown() } else { ActivityError::cancelled() });
                }
                _ = beat.tick() => {
                    if let Err(error) = cx.record_heartbeat(()).await {
                        tracing::warn!(%error, "a heartbeat was not sent");
                    }
                }
            }
        }
    }

    /// Starts workflows of children whose parent cannot.
    async fn start(&self, children: &[RunRef]) {
        for child in children {
            if let Err(error) = self.server.start(child, false).await {
                tracing::warn!(session = %child.session, %error, "the child begins when its lease is over");
            }
        }
    }

    async fn status(&self, of: &RunRef) -> Option<String> {
        let head = self.runtime.context().store.head(&of.session).await.ok()??;
        let taken = head.summary.run.is_some_and(|run| run != of.run);
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
    /// Carries out a part, and says what is next.
    #[activity(name = "perform")]
    pub(crate) async fn perform(
        self: Arc<Self>,
        cx: ActivityContext,
        input: PerformInput,
    ) -> Result<Performed, ActivityError> {
        let PerformInput { of, part, is_first } = &input;
        let is_first = *is_first && cx.info().attempt <= 1;
        let work = async {
            // Companions are spoken to in the very part that begins them, so they cannot wait for its end.
            let below = (*part == WorkItem::Children).then(|| self.nursery.open(&of.session));
            let next = self.runtime.perform(of, part, is_first).await;
            let children = below.map(Open::close).unwrap_or_default();
            let next = match next {
                Ok(next) => next,
                Err(error) => {
                    self.start(&children).await;
                    return Err(error);
                }
            };
            let status = if next == Next::Over { self.status(of).await } else { None };
            Ok(Performed { next, children, status })
        };
        self.drive(&cx, Box::pin(work)).await
    }

    /// Carries out one of several calls.
    #[activity(name = "call")]
    pub(crate) async fn call(
        self: Arc<Self>,
        cx: ActivityContext,
        input: CallInput,
    ) -> Result<(), ActivityError> {
        let CallInput { of, call } = &input;
        let is_first = cx.info().attempt <= 1;
        let work = async {
            match is_first {
                true => self.runtime.perform_call(of, call).await,
                false => self.runtime.perform_call_again(of, call).await,
            }
        };
        self.drive(&cx, Box::pin(work)).await
    }

    /// Waits for a child.
    #[activity(name = "follow")]
    pub(crate) async fn follow(
        self: Arc<Self>,
        cx: ActivityContext,
        input: FollowInput,
    ) -> Result<(), ActivityError> {
        let FollowInput { of, call, limit_ms } = &input;
        let (limit, _counted) = self.wait(Duration::from_millis(*limit_ms));
        let work = self.runtime.follow_child(of, call, limit);
        self.drive(&cx, Box::pin(work)).await
    }

    /// Gives a run up that its workflow does not go on with.
    #[activity(name = "give_up")]
    pub(crate) async fn give_up(
        self: Arc<Self>,
        cx: ActivityContext,
        of: RunRef,
    ) -> Result<(), ActivityError> {
        let work = async {
            self.runtime.give_up(&of).await;
            Ok(())
        };
        self.drive(&cx, Box::pin(work)).await
    }
}
