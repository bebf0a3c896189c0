//! An executor that registers the agents that it is handed, as a program does with its own before it begins.

use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_core::agent::{AgentRegistry, AnyAgent};
use helix_agents_core::error::Result;
use helix_agents_core::executor::{
    AgentExecutor, ExecuteOptions, ForkOptions, Input, Resumable, ResumeOptions, RunHandle,
};
use helix_agents_core::id::SessionId;
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::{PendingView, SessionPage, Submission};
use helix_agents_core::stream::ChunkStream;
use helix_agents_runtime_temporal::TemporalRuntime;

/// A runtime, and the agents that it knows.
#[derive(Debug)]
pub(crate) struct Registering {
    pub(crate) runtime: TemporalRuntime,
    pub(crate) registry: AgentRegistry,
}

#[async_trait]
impl AgentExecutor for Registering {
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
        let is_child = ["-sub-", "-agent-"].iter().any(|mark| session.as_str().contains(mark));
        if !is_child {
            self.registry.replace_erased(Arc::clone(&agent));
        }
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
