//! An engine that carries runs out in parts, as those do whose workers are elsewhere.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use futures_util::stream;
use futures_util::{FutureExt as _, StreamExt as _};
use helix_agents_core::error::{Error, Result};
use helix_agents_runtime::{
    Begun, ChildRef, Engine, LiveRun, Next, Part, RunRef, Runtime, Settings, forward_executor,
};

/// How long a child is followed at once.
const FOLLOW: Duration = Duration::from_millis(200);

/// A runtime on such an engine.
#[derive(Debug)]
pub(crate) struct InParts {
    runtime: Runtime,
}

forward_executor!(InParts);

impl InParts {
    pub(crate) fn new(settings: Settings) -> Self {
        let engine = Tasks { stopped: Arc::default() };
        Self { runtime: Runtime::new(settings.parts().unwrap(), Arc::new(engine)) }
    }
}

/// Runs whose parts are tasks of this process.
#[derive(Debug)]
struct Tasks {
    stopped: Arc<Mutex<HashMap<RunRef, Error>>>,
}

#[async_trait]
impl Engine for Tasks {
    fn kind(&self) -> &'static str {
        "in-parts"
    }

    async fn carry_out(&self, begun: Begun) -> Result<Option<Arc<LiveRun>>> {
        let runtime = begun.driver.runtime().clone();
        let of = begun.in_parts();
        let stopped = Arc::clone(&self.stopped);
        let parts = Arc::clone(runtime.parts());
        drop(parts.tasks.spawn(async move {
            if let Err(error) = drive(&runtime, &of).await {
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

async fn drive(runtime: &Runtime, of: &RunRef) -> Result<()> {
    let mut part = Part::Open;
    loop {
        part = match runtime.perform(of, &part).await? {
            Next::Over => return Ok(()),
            Next::Part(part) => part,
            Next::Calls { calls, at_once, children, then } => {
                let calls =
                    calls.into_iter().map(async |call| runtime.perform_call(of, &call, true).await);
                let calls = stream::iter(calls.map(|call| call.boxed()).collect::<Vec<_>>());
                let calls = calls.buffer_unordered(at_once).collect::<Vec<_>>();
                let children = children.into_iter().map(async |child: ChildRef| {
                    runtime.follow_child(of, &child.call, FOLLOW).await
                });
                let children = join_all(children);
                let (calls, children) = tokio::join!(calls, children);
                calls.into_iter().chain(children).collect::<Result<()>>()?;
                then
            }
        };
    }
}
