//! An engine that carries runs out in parts, as those do whose workers are elsewhere.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream;
use futures_util::{FutureExt as _, StreamExt as _};
use helix_agents_core::error::{Error, Result};
use helix_agents_core::id::CallId;
use helix_agents_runtime::{
    ChildRef, Engine, LiveRun, Next, RunRef, Runtime, Settings, StartedRun, WorkItem,
    forward_executor,
};
use helix_agents_testkit::trees::{Redelivery, Rng};

/// How long a child is followed at once.
const FOLLOW: Duration = Duration::from_millis(200);

/// A runtime on such an engine.
#[derive(Debug)]
pub(crate) struct InParts {
    runtime: Runtime,
}

forward_executor!(InParts);

impl InParts {
    pub(crate) fn new(settings: Settings, again: Redelivery) -> Self {
        let engine = Tasks { again, stopped: Arc::default() };
        Self { runtime: Runtime::new(settings.context().unwrap(), Arc::new(engine)) }
    }
}

/// Runs whose parts are tasks of this process.
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

    async fn drive(&self, begun: StartedRun) -> Result<Option<Arc<LiveRun>>> {
        let runtime = begun.driver.runtime().clone();
        let of = begun.in_parts();
        let (stopped, again) = (Arc::clone(&self.stopped), self.again);
        let parts = Arc::clone(runtime.context());
        drop(parts.tasks.spawn(async move {
            if let Err(error) = drive(&runtime, &of, again).await {
                stopped.lock().unwrap().insert(of.clone(), error);
                runtime.give_up(&of).await;
            }
        }));
        Ok(None)
    }

    async fn stopped(&self, of: &RunRef) -> Option<Error> {
        self.stopped.lock().unwrap().remove(of)
    }
}

/// Carries a run out to its end.
pub(crate) async fn drive(runtime: &Runtime, of: &RunRef, again: Redelivery) -> Result<()> {
    Driven { runtime, of, again }.to_its_end().await
}

/// Carries out a run, and some of its parts again.
struct Driven<'a> {
    runtime: &'a Runtime,
    of: &'a RunRef,
    again: Redelivery,
}

impl Driven<'_> {
    async fn to_its_end(&self) -> Result<()> {
        let mut part = WorkItem::Open;
        loop {
            let act = |is_first| self.runtime.perform(self.of, &part, is_first).boxed();
            let performed = self.done(format!("{part:?}"), act).await;
            part = match performed? {
                Next::Over => return Ok(()),
                Next::WorkItem(part) => part,
                Next::Calls { calls, at_once, children, then } => {
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
        let act = |_| self.runtime.perform_call(self.of, call).boxed();
        self.done(format!("{call}"), act).await
    }

    async fn child(&self, child: &ChildRef) -> Result<()> {
        self.runtime.follow_child(self.of, &child.call, FOLLOW).await
    }

    /// What came of something that may be done again. It is told whether it is the first to be done.
    async fn done<'a, T>(
        &self,
        what: String,
        act: impl Fn(bool) -> BoxFuture<'a, Result<T>>,
    ) -> Result<T> {
        let mut dice = Rng::of((&self.of.run, what));
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
