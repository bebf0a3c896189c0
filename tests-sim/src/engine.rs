//! An engine that executes runs as work items. It drops work items and executes them again, one after another or twice
//! at the same time, as an engine does that declares a live worker dead.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use helix_agents_conformance::rng::Rng;
use helix_agents_core::error::{Error, Result};
use helix_agents_core::id::{CallId, RunId};
use helix_agents_runtime::{
    ChildRef, Engine, LiveRun, NextWork, RunRef, Runtime, Settings, StartedRun, WorkItem,
};
use helix_agents_testkit::trees::Redelivery;

use crate::marks::{Mark, Reached};

/// Creates a runtime on this engine.
pub(crate) fn in_work_items(
    settings: Settings,
    redelivery: Redelivery,
    reached: Reached,
) -> Result<Runtime> {
    let follow = settings.lease / 2;
    let engine = TaskEngine { redelivery, follow, reached, stopped: Arc::default() };
    Ok(Runtime::new(settings.context()?, Arc::new(engine)).erased())
}

/// An engine that executes work items as tasks of one process.
#[derive(Debug)]
struct TaskEngine {
    redelivery: Redelivery,
    /// The time that one work item follows a child before the engine starts the next one.
    follow: Duration,
    reached: Reached,
    stopped: Arc<Mutex<BTreeMap<RunId, Error>>>,
}

#[async_trait]
impl Engine for TaskEngine {
    fn kind(&self) -> &'static str {
        "work-items"
    }

    async fn start(&self, started: StartedRun) -> Result<Option<Arc<LiveRun>>> {
        let runtime = started.driver.runtime().clone();
        let of = started.in_work_items();
        let (stopped, redelivery, follow) =
            (Arc::clone(&self.stopped), self.redelivery, self.follow);
        let reached = self.reached.clone();
        let context = Arc::clone(runtime.context());
        drop(context.tasks.spawn(async move {
            let driven = DrivenRun { runtime: &runtime, of: &of, redelivery, follow, reached };
            if let Err(error) = driven.run_to_end().await {
                note(&stopped, &of, error);
                runtime.release_run(&of).await;
            }
        }));
        Ok(None)
    }

    async fn stop_reason(&self, of: &RunRef) -> Option<Error> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).remove(&of.run)
    }
}

fn note(stopped: &Mutex<BTreeMap<RunId, Error>>, of: &RunRef, error: Error) {
    let mut stopped = stopped.lock().unwrap_or_else(PoisonError::into_inner);
    stopped.insert(of.run.clone(), error);
}

/// A run, and how the engine executes it.
struct DrivenRun<'a> {
    runtime: &'a Runtime,
    of: &'a RunRef,
    redelivery: Redelivery,
    follow: Duration,
    reached: Reached,
}

impl DrivenRun<'_> {
    async fn run_to_end(&self) -> Result<()> {
        let mut item = WorkItem::Open;
        loop {
            let act = |is_first| self.runtime.perform(self.of, &item, is_first).boxed();
            item = match self.perform(format!("{item:?}"), act).await? {
                NextWork::Done => return Ok(()),
                NextWork::WorkItem(item) => item,
                NextWork::Calls { calls, at_once, children, then } => {
                    let calls = calls.into_iter().map(async |call| self.call(&call).await);
                    let calls = stream::iter(calls.map(|call| call.boxed()).collect::<Vec<_>>());
                    let calls = calls.buffer_unordered(at_once).collect::<Vec<_>>();
                    let children = children.into_iter().map(async |child| self.child(&child).await);
                    let (calls, children) = tokio::join!(biased; calls, join_all(children));
                    calls.into_iter().chain(children).collect::<Result<()>>()?;
                    then
                }
            };
        }
    }

    async fn call(&self, call: &CallId) -> Result<()> {
        let act = |_| self.runtime.perform_call(self.of, call).boxed();
        self.perform(format!("{call}"), act).await
    }

    async fn child(&self, child: &ChildRef) -> Result<()> {
        self.runtime.follow_child(self.of, &child.call, self.follow).await
    }

    /// Executes an action that may be executed again, and returns its outcome. The argument of `act` is `true` for the
    /// first execution.
    async fn perform<'a, T>(
        &self,
        what: String,
        act: impl Fn(bool) -> BoxFuture<'a, Result<T>>,
    ) -> Result<T> {
        let mut rng = Rng::of((&self.of.run, what));
        if self.redelivery == Redelivery::Never || !rng.once_in(3) {
            return act(true).await;
        }
        self.reached.note(Mark::PartAgain);
        match self.redelivery {
            Redelivery::Never | Redelivery::AtOnce => {}
            Redelivery::Later => {
                drop(act(true).await);
                return act(false).await;
            }
            Redelivery::Dropped => {
                self.reached.note(Mark::PartCut);
                let timeout = Duration::from_millis(rng.below(40) as u64);
                drop(tokio::time::timeout(timeout, act(true)).await);
                return act(false).await;
            }
        }
        let (first, second) = tokio::join!(biased; act(true), act(false));
        if rng.once_in(2) { first } else { second }
    }
}
