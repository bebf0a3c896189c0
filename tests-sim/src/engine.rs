//! An engine that executes runs in context. It drops context, and executes context again: one after another, or two
//! executions at once, as an engine does that declares a live worker dead.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use helix_agents_core::error::{Error, Result};
use helix_agents_core::id::{CallId, RunId};
use helix_agents_runtime::{
    ChildRef, Engine, LiveRun, Next, RunRef, Runtime, Settings, StartedRun, WorkItem,
    forward_executor,
};
use helix_agents_testkit::trees::{Redelivery, Rng};

use crate::marks::{Mark, Reached};

/// A runtime on such an engine.
#[derive(Debug)]
pub(crate) struct InParts {
    runtime: Runtime,
}

forward_executor!(InParts);

impl InParts {
    pub(crate) fn new(settings: Settings, again: Redelivery, reached: Reached) -> Result<Self> {
        let follow = settings.lease / 8;
        let engine = Tasks { again, follow, reached, stopped: Arc::default() };
        Ok(Self { runtime: Runtime::new(settings.context()?, Arc::new(engine)) })
    }

    /// Stops taking runs, and leaves those under way to others.
    pub(crate) async fn shutdown(&self) {
        let context = self.runtime.context();
        context.tasks.end(context.grace).await;
    }
}

/// Runs whose context are tasks of one process.
#[derive(Debug)]
struct Tasks {
    again: Redelivery,
    /// The time that a part follows a child before the engine starts another one.
    follow: Duration,
    reached: Reached,
    stopped: Arc<Mutex<BTreeMap<RunId, Error>>>,
}

#[async_trait]
impl Engine for Tasks {
    fn kind(&self) -> &'static str {
        "in-context"
    }

    async fn drive(&self, begun: StartedRun) -> Result<Option<Arc<LiveRun>>> {
        let runtime = begun.driver.runtime().clone();
        let of = begun.in_parts();
        let (stopped, again, follow) = (Arc::clone(&self.stopped), self.again, self.follow);
        let reached = self.reached.clone();
        let context = Arc::clone(runtime.context());
        drop(context.tasks.spawn(async move {
            let driven = Driven { runtime: &runtime, of: &of, again, follow, reached };
            if let Err(error) = driven.to_its_end().await {
                note(&stopped, &of, error);
                runtime.give_up(&of).await;
            }
        }));
        Ok(None)
    }

    async fn stopped(&self, of: &RunRef) -> Option<Error> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).remove(&of.run)
    }
}

fn note(stopped: &Mutex<BTreeMap<RunId, Error>>, of: &RunRef, error: Error) {
    let mut stopped = stopped.lock().unwrap_or_else(PoisonError::into_inner);
    stopped.insert(of.run.clone(), error);
}

/// A run, and the engine's way with it.
struct Driven<'a> {
    runtime: &'a Runtime,
    of: &'a RunRef,
    again: Redelivery,
    follow: Duration,
    reached: Reached,
}

impl Driven<'_> {
    async fn to_its_end(&self) -> Result<()> {
        let mut part = WorkItem::Open;
        loop {
            let act = |is_first| self.runtime.perform(self.of, &part, is_first).boxed();
            part = match self.done(format!("{part:?}"), act).await? {
                Next::Over => return Ok(()),
                Next::WorkItem(part) => part,
                Next::Calls { calls, at_once, children, then } => {
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
        self.done(format!("{call}"), act).await
    }

    async fn child(&self, child: &ChildRef) -> Result<()> {
        self.runtime.follow_child(self.of, &child.call, self.follow).await
    }

    /// What came of something that may be executed again. It is told whether it is the first try.
    async fn done<'a, T>(
        &self,
        what: String,
        act: impl Fn(bool) -> BoxFuture<'a, Result<T>>,
    ) -> Result<T> {
        let mut dice = Rng::of((&self.of.run, what));
        if self.again == Redelivery::Never || !dice.once_in(3) {
            return act(true).await;
        }
        self.reached.note(Mark::PartAgain);
        match self.again {
            Redelivery::Never | Redelivery::AtOnce => {}
            Redelivery::Later => {
                drop(act(true).await);
                return act(false).await;
            }
            Redelivery::Dropped => {
                self.reached.note(Mark::PartCut);
                let patience = Duration::from_millis(dice.below(40) as u64);
                drop(tokio::time::timeout(patience, act(true)).await);
                return act(false).await;
            }
        }
        let (first, second) = tokio::join!(biased; act(true), act(false));
        if dice.once_in(2) { first } else { second }
    }
}
