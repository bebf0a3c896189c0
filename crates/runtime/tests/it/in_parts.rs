//! An engine that carries runs out in parts, as those do whose workers are elsewhere.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::future::join_all;
use futures_util::stream;
use futures_util::{FutureExt as _, StreamExt as _};
use helix_agents_core::agent::{AgentRegistry, AnyAgent};
use helix_agents_core::error::{Error, Result};
use helix_agents_core::executor::{
    AgentExecutor, ExecuteOptions, ForkOptions, Input, Resumable, ResumeOptions, RunHandle,
};
use helix_agents_core::id::SessionId;
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::{PendingView, SessionPage, Submission};
use helix_agents_core::stream::ChunkStream;
use helix_agents_runtime::{
    Begun, ChildRef, Engine, LiveRun, Next, Part, RunRef, Runtime, Settings,
};
use tokio::runtime::Handle;

/// A runtime on such an engine, whose workers know each agent that it is given.
#[derive(Debug)]
pub(crate) struct InParts {
    runtime: Runtime,
    registry: AgentRegistry,
}

impl InParts {
    pub(crate) fn new(settings: Settings, handle: Handle) -> Self {
        let registry = settings.registry.clone();
        let parts = settings.parts().unwrap();
        Self {
            runtime: Runtime::new(parts, Arc::new(Tasks { handle, stopped: Arc::default() })),
            registry,
        }
    }
}

/// Runs whose parts are tasks of this process.
#[derive(Debug)]
struct Tasks {
    handle: Handle,
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
        self.handle.spawn(async move {
            if let Err(error) = drive(&runtime, &of).await {
                stopped.lock().unwrap().insert(of.clone(), error);
                runtime.give_up(&of).await;
            }
        });
        Ok(None)
    }

    async fn stopped(&self, of: &RunRef) -> Option<Error> {
        self.stopped.lock().unwrap().remove(of)
    }
}

async fn drive(runtime: &Runtime, of: &RunRef) -> Result<()> {
    let mut part = Part::Open;
    let mut untold = Vec::new();
    loop {
        let answer = runtime.perform(of, &part, &untold).await?;
        part = match answer.next {
            Next::Over => return Ok(()),
            Next::Part(part) => part,
            Next::Calls { calls, at_once, children } => {
                let calls =
                    calls.into_iter().map(async |call| runtime.perform_call(of, &call, true).await);
                let calls = stream::iter(calls.map(|call| call.boxed()).collect::<Vec<_>>());
                let calls = calls.buffer_unordered(at_once).collect::<Vec<_>>();
                let children = children
                    .into_iter()
                    .map(async |child: ChildRef| runtime.follow_child(of, &child.call).await);
                let children = join_all(children);
                let (calls, children) = tokio::join!(calls, children);
                calls.into_iter().chain(children).collect::<Result<()>>()?;
                Part::Settle
            }
        };
        untold = answer.untold;
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl AgentExecutor for InParts {
    async fn execute(
        &self,
        agent: AnyAgent,
        input: Input,
        options: ExecuteOptions,
    ) -> Result<RunHandle> {
        self.registry.replace_erased(Arc::clone(&agent));
        self.runtime.execute(agent, input, options).await
    }

    async fn resume(
        &self,
        agent: AnyAgent,
        session: &SessionId,
        options: ResumeOptions,
    ) -> Result<RunHandle> {
        self.registry.replace_erased(Arc::clone(&agent));
        self.runtime.resume(agent, session, options).await
    }

    async fn fork(&self, session: &SessionId, options: ForkOptions) -> Result<SessionId> {
        self.runtime.fork(session, options).await
    }

    async fn interrupt(&self, session: &SessionId, reason: Option<String>) -> Result<()> {
        self.runtime.interrupt(session, reason).await
    }

    async fn abort(&self, session: &SessionId, reason: Option<String>) -> Result<()> {
        self.runtime.abort(session, reason).await
    }

    async fn submit_tool_result(&self, root: &SessionId, submission: Submission) -> Result<()> {
        self.runtime.submit_tool_result(root, submission).await
    }

    async fn pending_calls(&self, root: &SessionId) -> Result<Vec<PendingView>> {
        self.runtime.pending_calls(root).await
    }

    async fn send_message(&self, session: &SessionId, message: UserMessage) -> Result<()> {
        self.runtime.send_message(session, message).await
    }

    async fn recover(&self) -> Result<Vec<RunHandle>> {
        self.runtime.recover().await
    }

    async fn sweep(&self) -> Result<Vec<RunHandle>> {
        self.runtime.sweep().await
    }

    async fn page(&self, session: &SessionId) -> Result<SessionPage> {
        self.runtime.page(session).await
    }

    async fn follow(&self, session: &SessionId, from: u64) -> Result<ChunkStream> {
        self.runtime.follow(session, from).await
    }

    async fn handle(&self, session: &SessionId) -> Result<RunHandle> {
        self.runtime.handle(session).await
    }

    async fn can_resume(&self, session: &SessionId) -> Result<Resumable> {
        self.runtime.can_resume(session).await
    }
}
