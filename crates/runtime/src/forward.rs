//! A macro that forwards the executor trait of a runtime type to [`Runtime`](crate::Runtime).

/// Implements [`AgentExecutor`](helix_agents_core::executor::AgentExecutor) for a type with a field
/// `runtime` of type [`Runtime`](crate::Runtime). The expanding crate must also depend on async-trait.
#[macro_export]
macro_rules! forward_executor {
    ($runtime:ty) => {
        const _: () = {
            use $crate::core::agent::AnyAgent;
            use $crate::core::error::Result;
            use $crate::core::executor::{
                AgentExecutor, ExecuteOptions, ForkOptions, Input, Resumable, ResumeOptions,
                RunHandle, Submitted,
            };
            use $crate::core::id::SessionId;
            use $crate::core::message::UserMessage;
            use $crate::core::session::{
                PendingView, SessionPage, Submission, UsageQuery, UsageReport,
            };
            use $crate::core::stream::ChunkStream;

            #[::async_trait::async_trait]
            #[deny(clippy::missing_trait_methods)]
            impl AgentExecutor for $runtime {
                async fn execute(
                    &self,
                    agent: AnyAgent,
                    input: Input,
                    options: ExecuteOptions,
                ) -> Result<RunHandle> {
                    self.runtime.execute(agent, input, options).await
                }

                async fn resume(
                    &self,
                    agent: AnyAgent,
                    session: &SessionId,
                    options: ResumeOptions,
                ) -> Result<RunHandle> {
                    self.runtime.resume(agent, session, options).await
                }

                async fn fork(
                    &self,
                    session: &SessionId,
                    options: ForkOptions,
                ) -> Result<SessionId> {
                    self.runtime.fork(session, options).await
                }

                async fn delete(&self, session: &SessionId) -> Result<bool> {
                    self.runtime.delete(session).await
                }

                async fn interrupt(
                    &self,
                    session: &SessionId,
                    reason: Option<String>,
                ) -> Result<()> {
                    self.runtime.interrupt(session, reason).await
                }

                async fn abort(&self, session: &SessionId, reason: Option<String>) -> Result<()> {
                    self.runtime.abort(session, reason).await
                }

                async fn submit_tool_result(
                    &self,
                    root: &SessionId,
                    submission: Submission,
                ) -> Result<Submitted> {
                    self.runtime.submit_tool_result(root, submission).await
                }

                async fn pending_calls(&self, root: &SessionId) -> Result<Vec<PendingView>> {
                    self.runtime.pending_calls(root).await
                }

                async fn send_message(
                    &self,
                    session: &SessionId,
                    message: UserMessage,
                ) -> Result<()> {
                    self.runtime.send_message(session, message).await
                }

                async fn recover(&self) -> Result<Vec<RunHandle>> {
                    self.runtime.recover().await
                }

                async fn sweep(&self) -> Result<Vec<RunHandle>> {
                    self.runtime.sweep().await
                }

                async fn usage(&self, query: &UsageQuery) -> Result<UsageReport> {
                    self.runtime.usage(query).await
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
        };
    };
}
