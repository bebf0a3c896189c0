//! An engine that executes runs as work items, like engines with remote workers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream;
use futures_util::{FutureExt as _, StreamExt as _};
use helix_agents_conformance::rng::Rng;
use helix_agents_core::error::{Error, Result};
use helix_agents_core::id::CallId;
use helix_agents_runtime::{
    ChildRef, Engine, LiveRun, NextWork, RunRef, Runtime, Settings, StartedRun, WorkItem,
};
use helix_agents_testkit::trees::Redelivery;

/// The maximum time that a child is followed at once.
const FOLLOW: Duration = Duration::from_millis(200);

/// Creates a runtime on this engine.
pub(crate) fn in_work_items(settings: Settings, again: Redelivery) -> Runtime {
    let engine = Tasks { again, stopped: Arc::default() };
    Runtime::new(settings.context().unwrap(), Arc::new(engine)).erased()
}

/// An engine that executes work items as tasks of this process.
#[derive(Debug)]
struct Tasks {
    again: Redelivery,
    stopped: Arc<Mutex<HashMap<RunRef, Error>>>,
}

#[async_trait]
impl Engine for Tasks {
    fn kind(&self) -> &'static str {
        "in-parts"
    }

    async fn start(&self, started: StartedRun) -> Result<Option<Arc<LiveRun>>> {
        let runtime = started.driver.runtime().clone();
        let run_ref = started.in_work_items();
        let (stopped, again) = (Arc::clone(&self.stopped), self.again);
        let context = Arc::clone(runtime.context());
        drop(context.tasks.spawn(async move {
            if let Err(error) = drive(&runtime, &run_ref, again).await {
                stopped.lock().unwrap().insert(run_ref.clone(), error);
                runtime.release_run(&run_ref).await;
            }
        }));
        Ok(None)
    }

    async fn stop_reason(&self, run_ref: &RunRef) -> Option<Error> {
        self.stopped.lock().unwrap().remove(run_ref)
    }
}

/// Executes a run to its end.
pub(crate) async fn drive(runtime: &Runtime, run_ref: &RunRef, again: Redelivery) -> Result<()> {
    Driven { runtime, run_ref, again }.to_its_end().await
}

/// An execution of a run that repeats some of its work items.
struct Driven<'a> {
    runtime: &'a Runtime,
    run_ref: &'a RunRef,
    again: Redelivery,
}

impl Driven<'_> {
    async fn to_its_end(&self) -> Result<()> {
        let mut item = WorkItem::Open;
        loop {
            let act = |is_first| self.runtime.perform(self.run_ref, &item, is_first).boxed();
            let performed = self.done(format!("{item:?}"), act).await;
            item = match performed? {
                NextWork::Done => return Ok(()),
                NextWork::WorkItem(item) => item,
                NextWork::Calls { calls, at_once, children, then } => {
                    let calls = calls.into_iter().map(async |call| self.call(&call).await);
                    let calls = stream::iter(calls.map(|call| call.boxed()).collect::<Vec<_>>());
                    let calls = calls.buffer_unordered(at_once).collect::<Vec<_>>();
                    let children = children.into_iter().map(async |child| self.child(&child).await);
                    let (calls, children) = tokio::join!(calls, join_all(children));
                    calls.into_iter().chain(children).collect::<Result<()>>()?;
                    then
                }
            };
        }
    }

    async fn call(&self, call: &CallId) -> Result<()> {
        let act = |_| self.runtime.perform_call(self.run_ref, call).boxed();
        self.done(format!("{call}"), act).await
    }

    async fn child(&self, child: &ChildRef) -> Result<()> {
        self.runtime.follow_child(self.run_ref, &child.call, FOLLOW).await
    }

    /// Returns the result of work that may be repeated. The work receives `true` for its first execution.
    async fn done<'a, T>(
        &self,
        name: String,
        act: impl Fn(bool) -> BoxFuture<'a, Result<T>>,
    ) -> Result<T> {
        let mut dice = Rng::of((&self.run_ref.run, name));
        match self.again {
            Redelivery::Later if dice.once_in(3) => {
                drop(act(true).await);
                act(false).await
            }
            Redelivery::AtOnce if dice.once_in(3) => {
                let (first, second) = tokio::join!(act(true), act(false));
                if dice.once_in(2) { first } else { second }
            }
            _ => act(true).await,
        }
    }
}
