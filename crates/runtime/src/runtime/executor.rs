//! The agent executor of every runtime: checks a request and passes it to the module that handles it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_core::agent::AnyAgent;
use helix_agents_core::clock::IdSourceExt as _;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::{
    AgentExecutor, ExecuteOptions, ForkOptions, Input, MessageOptions, Resumable, ResumeOptions,
    Resumption, RunHandle, StopOptions, Submitted,
};
use helix_agents_core::hooks::AgentHooks;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::{
    Lineage, MAX_CONFLICTS, MessageOrigin, PendingCallView, SessionPage, StopKind, Submission,
    UsageQuery, UsageReport, delete_session_if, fork, has_ready_child, lineage, pending_calls,
    queue_message, session_page, submit, too_many_conflicts, usage_of_sessions,
};
use helix_agents_core::store::{Head, SessionStatus};
use helix_agents_core::stream::ChunkStream;

use super::Runtime;
use crate::engine::Engine;
use crate::handle::attach;
use crate::hook_chain::HookChain;
use crate::run_ref::RunRef;
use crate::start::{self, StartedBy};

impl<E: ?Sized> Runtime<E> {
    /// Checks that the engine supports this agent and these hooks. An engine with remote workers looks up agents
    /// by name and cannot reach hooks that belong to a single execution.
    fn check_known(&self, agent: Option<&str>, hooks: &[Arc<dyn AgentHooks>]) -> Result<()> {
        if self.erased.is_in_process() {
            return Ok(());
        }
        let kind = self.erased.kind();
        if !hooks.is_empty() {
            let message = format!(
                "a run of the {kind} runtime may be executed by any worker, which does not know the hooks of one \
                 execution; give them to the agent"
            );
            return Err(Error::new(ErrorCode::ConfigInvalid, message));
        }
        if let Some(agent) = agent.filter(|agent| !self.context.registry.contains(agent)) {
            let message = format!(
                "workers of the {kind} runtime look up agents by name; add this agent to the `registry` of the \
                 runtime and of its workers"
            );
            return Err(Error::new(ErrorCode::AgentNotFound, message).with_context("agent", agent));
        }
        Ok(())
    }

    /// Marks a session without an active run as aborted.
    async fn end_aborted(&self, head: &Head, options: &StopOptions) -> Result<()> {
        let context = &self.context;
        let Lineage { agent, above } = lineage(&*context.store, &context.registry, head).await?;
        let above = HookChain::of_lineage(&above);
        start::abort(&self.erased(), agent, &head.session, options, false, &above).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods, reason = "a default would ignore the engine")]
impl<E: Engine + ?Sized> AgentExecutor for Runtime<E> {
    async fn execute(
        &self,
        agent: AnyAgent,
        input: Input,
        options: ExecuteOptions,
    ) -> Result<RunHandle> {
        self.context.check_open()?;
        self.check_known(Some(agent.name()), &options.hooks)?;
        start::execute(&self.erased(), agent, input, options).await
    }

    async fn resume(
        &self,
        agent: AnyAgent,
        session: &SessionId,
        options: ResumeOptions,
    ) -> Result<RunHandle> {
        self.context.check_open()?;
        let head = self.head(session).await?;
        // The agents of child sessions are found through the agents of their parents.
        let named = head.created.parent.is_none().then(|| &**agent.name());
        self.check_known(named, &options.hooks)?;
        let above = if head.created.parent.is_some() {
            let context = &self.context;
            let lineage = lineage(&*context.store, &context.registry, &head).await?;
            HookChain::of_lineage(&lineage.above)
        } else {
            HookChain::none()
        };
        start::resume(&self.erased(), agent, session, options, &above, &StartedBy::Caller).await
    }

    async fn fork(&self, session: &SessionId, options: ForkOptions) -> Result<SessionId> {
        self.context.check_open()?;
        if let Some(chosen) = &options.session {
            self.context.clear_stream(chosen).await;
        }
        let new = fork(self.context.request_context(), session, &options).await?;
        // If the process crashes here, the first run repairs the stream.
        self.context.show_end(&new).await;
        Ok(new)
    }

    async fn delete(&self, session: &SessionId) -> Result<bool> {
        self.delete_if(session, &BTreeMap::new()).await
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        let context = &self.context;
        delete_session_if(&*context.store, &*context.streams, session, required_tags).await
    }

    async fn interrupt(&self, session: &SessionId, reason: Option<String>) -> Result<()> {
        let mut options = StopOptions::default();
        options.reason = reason;
        self.stop(session, StopKind::Interrupt, options).await
    }

    async fn abort(&self, session: &SessionId, reason: Option<String>) -> Result<()> {
        let mut options = StopOptions::default();
        options.reason = reason;
        self.stop(session, StopKind::Abort, options).await
    }

    async fn stop(&self, session: &SessionId, kind: StopKind, options: StopOptions) -> Result<()> {
        if kind == StopKind::Interrupt {
            return self.append_request(session, kind, &options).await;
        }
        for _ in 0..MAX_CONFLICTS {
            let head = self.head(session).await?;
            let is_leased = head.is_leased();
            let done = if is_leased {
                self.append_request(session, kind, &options).await
            } else {
                self.end_aborted(&head, &options).await
            };
            let is_wanted = |run: &RunId| head.summary.run.as_ref() == Some(run);
            let was_in_progress = is_leased && options.run.as_ref().is_none_or(is_wanted);
            match done.as_ref().map_err(Error::code) {
                // The run has ended or was suspended concurrently, or another run has started.
                Err(ErrorCode::NothingToStop) if was_in_progress => {}
                Err(ErrorCode::AlreadyRunning) => {}
                _ => return done,
            }
        }
        Err(too_many_conflicts(session))
    }

    async fn submit_tool_result(
        &self,
        root: &SessionId,
        submission: Submission,
    ) -> Result<Submitted> {
        let session = submit(self.context.request_context(), root, &submission).await?;
        let resumption = match self.context.auto_resume {
            true => self.erased().resume_answered(root).await,
            false => Resumption::NotRequested,
        };
        Ok(Submitted { session, resumption })
    }

    async fn pending_calls(&self, root: &SessionId) -> Result<Vec<PendingCallView>> {
        pending_calls(self.context.logs(), root).await
    }

    async fn send_message(&self, session: &SessionId, message: UserMessage) -> Result<()> {
        self.queue_message(session, message, MessageOptions::default()).await
    }

    async fn queue_message(
        &self,
        session: &SessionId,
        message: UserMessage,
        options: MessageOptions,
    ) -> Result<()> {
        let request = options.request.unwrap_or_else(|| self.context.ids.request());
        let request_context = self.context.request_context().requiring(&options.required_tags);
        let origin = MessageOrigin::Caller { trace: options.trace };
        queue_message(request_context, session, &request, &message, origin).await
    }

    async fn recover(&self) -> Result<Vec<RunHandle>> {
        self.erased().recover_all().await
    }

    async fn sweep(&self) -> Result<Vec<RunHandle>> {
        self.erased().sweep_all().await
    }

    async fn usage(&self, query: &UsageQuery) -> Result<UsageReport> {
        usage_of_sessions(self.context.logs(), query).await
    }

    async fn page(&self, session: &SessionId) -> Result<SessionPage> {
        let context = &self.context;
        session_page(context.logs(), &*context.streams, &*context.clock, &*context.ids, session)
            .await
    }

    async fn follow(&self, session: &SessionId, from: u64) -> Result<ChunkStream> {
        self.context.streams.read(session, from).await
    }

    async fn handle(&self, session: &SessionId) -> Result<RunHandle> {
        let fold = self.context.logs().overview(session).await?;
        let (run, run_ref) = fold.last_run().zip(RunRef::last(&fold)).ok_or_else(|| {
            Error::new(ErrorCode::RunNotFound, "the session has no run")
                .with_context("session", session)
        })?;
        Ok(attach(&self.erased(), run_ref, &fold, run, self.live(session)))
    }

    async fn can_resume(&self, session: &SessionId) -> Result<Resumable> {
        let head = self.head(session).await?;
        Ok(match head.summary.status {
            SessionStatus::Active if head.is_leased() => Resumable::Running,
            SessionStatus::Active if head.summary.run.is_none() => {
                let mut fold = self.context.logs().overview(session).await?;
                fold.observe(head.read_at);
                let can_continue_step =
                    fold.can_continue_step() || has_ready_child(self.context.logs(), &fold).await?;
                if can_continue_step { Resumable::Yes } else { Resumable::Waiting }
            }
            SessionStatus::Active | SessionStatus::Interrupted | SessionStatus::Failed => {
                Resumable::Yes
            }
            SessionStatus::Completed | SessionStatus::Aborted => Resumable::Ended,
        })
    }

    async fn shutdown(&self) {
        self.context.tasks.end(self.context.grace).await;
        self.erased.shutdown().await;
    }
}
