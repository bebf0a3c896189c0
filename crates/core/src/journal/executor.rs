//! The executor contract: how a program starts, follows and stops runs, independent of the runtime
//! that executes them.

mod submitted;

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;

pub use crate::contracts::request_options::{MessageOptions, StopOptions};
pub use crate::contracts::run_options::{ExecuteOptions, ForkOptions, Input, ResumeOptions};
pub use crate::machine::agent_result::AgentResult;
pub use submitted::{Resumption, Submitted};

use super::{PendingCallView, SessionPage, Submission, UsageQuery, UsageReport};
use crate::agent::{Agent, AnyAgent};
use crate::error::Result;
use crate::id::{RunId, SessionId};
use crate::json::Json;
use crate::machine::session::{Session, StopKind};
use crate::message::UserMessage;
use crate::stream::ChunkStream;
use crate::usage::UsageRollup;

/// Whether a session can be resumed. Returned by [`AgentExecutor::can_resume`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resumable {
    /// `resume` continues the session: its run stopped without ending, was interrupted or failed,
    /// or something that a suspended run waits for has arrived.
    Yes,
    /// The session has an active run.
    Running,
    /// The session is suspended, and nothing that it waits for has arrived.
    Waiting,
    /// The last turn is complete or aborted: `execute` starts another one.
    Ended,
}

/// The operations of an executor on one run, behind a [`RunHandle`].
#[async_trait]
pub trait RunControl: fmt::Debug + Send + Sync + 'static {
    /// Waits for the end of the run.
    async fn result(&self) -> Result<AgentResult>;
    /// Returns the stream that [`RunHandle::stream`] describes.
    async fn stream(&self) -> Result<ChunkStream>;
    /// Requests that the run stop at the next step boundary.
    async fn interrupt(&self, reason: Option<String>) -> Result<()>;
    /// Requests that the run stop immediately.
    async fn abort(&self, reason: Option<String>) -> Result<()>;
    /// Returns the current state of the session, read from its log.
    async fn session(&self) -> Result<Session>;
    /// Returns the current usage of the session and all its descendants, as
    /// [`usage_of_tree`](crate::session::usage_of_tree) computes it.
    async fn usage(&self) -> Result<UsageRollup>;
}

/// A handle to a run in this or another process. Cheap to clone. Dropping it does not stop the run.
///
/// `O` is the type of the output. A handle to a run of a typed agent has the agent's output type;
/// other handles return JSON, and [`typed`](Self::typed) converts them.
///
/// # Examples
///
/// ```no_run
/// use futures_util::StreamExt as _;
/// # use helix_agents_core::{error::Result, executor::RunHandle};
/// # async fn example(handle: RunHandle) -> Result<()> {
/// let mut chunks = handle.stream().await?;
/// while let Some(stored) = chunks.next().await {
///     println!("{:?}", stored?.chunk.kind);
/// }
/// let result = handle.result().await?;
/// # Ok(())
/// # }
/// ```
pub struct RunHandle<O = Json> {
    session: SessionId,
    run: RunId,
    control: Arc<dyn RunControl>,
    output: PhantomData<fn() -> O>,
}

impl RunHandle {
    /// Creates a handle; for executors.
    #[must_use]
    pub fn new(session: SessionId, run: RunId, control: Arc<dyn RunControl>) -> Self {
        Self { session, run, control, output: PhantomData }
    }
}

impl<O> RunHandle<O> {
    /// Returns a handle to the same run with another output type.
    #[must_use]
    pub fn typed<T>(self) -> RunHandle<T> {
        let Self { session, run, control, .. } = self;
        RunHandle { session, run, control, output: PhantomData }
    }

    /// Returns the session id.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the run id.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Returns the chunks of the session's tree from the start of this run: those already stored,
    /// then live ones. The stream ends after the chunk that ends the run, or without it if that
    /// chunk is not kept or another run has taken over. It also ends after an error.
    ///
    /// # Errors
    /// Returns the errors of the stream manager and of the store.
    pub async fn stream(&self) -> Result<ChunkStream> {
        self.control.stream().await
    }

    /// Requests that the run stop at the next step boundary. It can be resumed.
    ///
    /// # Errors
    /// Returns the errors of the store; [`NothingToStop`] if the run is not in progress.
    ///
    /// [`NothingToStop`]: crate::error::ErrorCode::NothingToStop
    pub async fn interrupt(&self, reason: impl Into<Option<String>> + Send) -> Result<()> {
        self.control.interrupt(reason.into()).await
    }

    /// Requests that the run stop immediately. Running effects are cancelled.
    ///
    /// # Errors
    /// Returns the errors of the store; [`NothingToStop`] if the run is not in progress.
    ///
    /// [`NothingToStop`]: crate::error::ErrorCode::NothingToStop
    pub async fn abort(&self, reason: impl Into<Option<String>> + Send) -> Result<()> {
        self.control.abort(reason.into()).await
    }

    /// Returns the current usage of the session and all its descendants, by model, tool, sub-agent
    /// and source. It reads each session of the tree from the store, and so includes running ones.
    /// [`SessionOverview::usage`](crate::session::SessionOverview::usage) is the usage of the
    /// session alone.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub async fn usage(&self) -> Result<UsageRollup> {
        self.control.usage().await
    }

    /// Returns the current state of the session, read from its log.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub async fn load_session(&self) -> Result<Session> {
        self.control.session().await
    }
}

impl<O: DeserializeOwned> RunHandle<O> {
    /// Waits for the end of the run. A failed run is returned as a result, not as an error.
    ///
    /// If the process that executes the run is killed, this keeps waiting until another process
    /// continues the session. Use a timeout if it is possible that no process continues it.
    ///
    /// # Errors
    /// Returns the errors of the store; [`Superseded`] if another run took over; [`Closed`] if the
    /// executor was shut down before the run ended, so that another process can continue it;
    /// [`OutputInvalid`] if the recorded output does not fit the type.
    ///
    /// # Cancel safety
    /// Dropping the future does not affect the run; the method can be called again.
    ///
    /// [`Closed`]: crate::error::ErrorCode::Closed
    /// [`OutputInvalid`]: crate::error::ErrorCode::OutputInvalid
    /// [`Superseded`]: crate::error::ErrorCode::Superseded
    pub async fn result(&self) -> Result<AgentResult<O>> {
        self.control.result().await?.typed()
    }
}

impl<O> Clone for RunHandle<O> {
    fn clone(&self) -> Self {
        let Self { session, run, control, output } = self;
        let (session, run, control) = (session.clone(), run.clone(), Arc::clone(control));
        Self { session, run, control, output: *output }
    }
}

impl<O> fmt::Debug for RunHandle<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session, run, control, .. } = self;
        let mut handle = f.debug_struct("RunHandle");
        handle.field("session", session).field("run", run).field("control", control).finish()
    }
}

/// Executes runs.
///
/// # Contract
///
/// `runtime_suite!` of `helix-agents-conformance` is the executable form of this contract.
///
/// - For the same agent, input and model replies, every executor produces the same transcript,
///   events and chunks.
/// - If several callers start a run on one session, exactly one run starts. The others get an
///   error, unless they passed the same run id: they attach to that run.
/// - A recorded effect is never executed again. An effect with an unknown outcome is handled
///   according to its tool's effect class.
/// - A method with required tags applies only to a session whose root has all of them, also if the session is
///   deleted and another one is created with its id during the call. It reports any other session as not found, and
///   neither changes it nor attaches to its runs.
/// - Every method can be called from processes other than the one that executes the run, within the
///   scope of the store.
///
/// # Examples
///
/// ```no_run
/// # use helix_agents_core::agent::Agent;
/// use helix_agents_core::executor::{AgentExecutor, ExecuteOptions, Input};
///
/// # use helix_agents_core::error::Result;
/// # async fn example(executor: &dyn AgentExecutor, agent: &Agent) -> Result<()> {
/// let input = Input::new("Summarise the ticket.");
/// let options = ExecuteOptions::default().session("ticket-7");
/// let handle = executor.execute(agent.erased(), input, options).await?;
/// println!("{:?}", handle.result().await?.status);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait AgentExecutor: fmt::Debug + Send + Sync + 'static {
    /// Starts a turn in a new session, or in a session without an unfinished run. If the last run
    /// is suspended and all its calls are answered, its turn continues instead, and the messages
    /// enter the turn when the step in progress is done.
    ///
    /// # Errors
    /// Returns [`AlreadyRunning`] if the session has an active run, [`RunUnfinished`] if its run
    /// stopped without ending, [`Suspended`] if it waits for answers or children, [`AgentMismatch`]
    /// if it belongs to another agent, [`SessionNotFound`] if it lacks a
    /// [required tag](ExecuteOptions::required_tags), [`InputInvalid`] if the input has no message or an
    /// unsuitable state, [`StateInvalid`] if the recorded state does not fit the agent, the
    /// adapter's error if it rejects the model settings, and errors of the store.
    ///
    /// # Durability
    /// When it returns, the turn is in the log.
    ///
    /// # Cancel safety
    /// If the future is dropped early, the turn may have started, and then continues like any
    /// other. Calling this method again with the same [`ExecuteOptions::session`] and
    /// [`ExecuteOptions::run`] attaches to that run.
    ///
    /// [`AgentMismatch`]: crate::error::ErrorCode::AgentMismatch
    /// [`AlreadyRunning`]: crate::error::ErrorCode::AlreadyRunning
    /// [`InputInvalid`]: crate::error::ErrorCode::InputInvalid
    /// [`RunUnfinished`]: crate::error::ErrorCode::RunUnfinished
    /// [`SessionNotFound`]: crate::error::ErrorCode::SessionNotFound
    /// [`StateInvalid`]: crate::error::ErrorCode::StateInvalid
    /// [`Suspended`]: crate::error::ErrorCode::Suspended
    async fn execute(
        &self,
        agent: AnyAgent,
        input: Input,
        options: ExecuteOptions,
    ) -> Result<RunHandle>;

    /// Resumes a session that was interrupted or suspended, failed, or stopped without ending.
    ///
    /// # Errors
    /// Returns [`AlreadyRunning`], [`AlreadyResumed`], [`NothingToResume`], [`SessionNotFound`],
    /// [`AgentMismatch`]; [`Suspended`] if nothing that a suspended session waits for has arrived;
    /// [`StateInvalid`] if the recorded state does not fit the agent; [`CheckpointNotFound`] and
    /// [`ChildrenOpen`] when rewinding to a checkpoint; the adapter's error if it rejects the model
    /// settings; and errors of the store.
    ///
    /// # Cancel safety
    /// As for [`execute`](Self::execute): a run that has started continues.
    ///
    /// [`AgentMismatch`]: crate::error::ErrorCode::AgentMismatch
    /// [`AlreadyResumed`]: crate::error::ErrorCode::AlreadyResumed
    /// [`AlreadyRunning`]: crate::error::ErrorCode::AlreadyRunning
    /// [`CheckpointNotFound`]: crate::error::ErrorCode::CheckpointNotFound
    /// [`ChildrenOpen`]: crate::error::ErrorCode::ChildrenOpen
    /// [`NothingToResume`]: crate::error::ErrorCode::NothingToResume
    /// [`SessionNotFound`]: crate::error::ErrorCode::SessionNotFound
    /// [`StateInvalid`]: crate::error::ErrorCode::StateInvalid
    /// [`Suspended`]: crate::error::ErrorCode::Suspended
    async fn resume(
        &self,
        agent: AnyAgent,
        session: &SessionId,
        options: ResumeOptions,
    ) -> Result<RunHandle>;

    /// Creates a new session with the conversation and state of this one up to a checkpoint. The
    /// new session is a root session in the state of an interrupted one and runs nothing yet:
    /// `execute` starts a turn in it, `resume` continues the turn that was in progress. The
    /// original session is not affected and may be live.
    ///
    /// # Errors
    /// Returns the errors of [`fork`](crate::session::fork).
    ///
    /// # Durability
    /// When it returns, the new session is in the store.
    async fn fork(&self, session: &SessionId, options: ForkOptions) -> Result<SessionId>;

    /// Deletes a session, all its descendants and its stream, from every store that holds them.
    /// Returns `true` if the session existed. A run that is still in progress fails at its next
    /// append without calling hooks. Abort it first if the `after_tool` hooks should receive the
    /// results of its open calls.
    ///
    /// # Errors
    /// Returns the errors of the stores.
    async fn delete(&self, session: &SessionId) -> Result<bool>;

    /// Deletes a session as [`delete`](Self::delete) does if it has all of these tags. Otherwise it deletes nothing and
    /// returns `false`, as for a session that does not exist. The check and the deletion are atomic.
    ///
    /// # Errors
    /// Returns the errors of the stores.
    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool>;

    /// Requests that a run stop: at the next step boundary, or immediately. [`interrupt`](Self::interrupt) and
    /// [`abort`](Self::abort) do the same without options.
    ///
    /// # Errors
    /// Returns the errors of [`interrupt`](Self::interrupt) or [`abort`](Self::abort), and [`NothingToStop`] if the
    /// session's last run is not [the one to stop](StopOptions::run).
    ///
    /// # Durability
    /// When it returns `Ok`, the request is in the log.
    ///
    /// # Cancel safety
    /// If the future is dropped, the request may have been recorded. The call can be repeated.
    ///
    /// [`NothingToStop`]: crate::error::ErrorCode::NothingToStop
    async fn stop(&self, session: &SessionId, kind: StopKind, options: StopOptions) -> Result<()>;

    /// Requests that the session's current run stop at the next step boundary.
    ///
    /// # Errors
    /// Returns [`NothingToStop`] if the session has no current run, and errors of the store.
    ///
    /// [`NothingToStop`]: crate::error::ErrorCode::NothingToStop
    async fn interrupt(&self, session: &SessionId, reason: Option<String>) -> Result<()>;

    /// Requests that the session's current run stop immediately. If no run is live, the session
    /// ends as aborted.
    ///
    /// # Errors
    /// Returns [`NothingToStop`] if the last turn is complete or aborted already,
    /// [`AgentNotFound`] if no run is live and the session's agent, whose hooks have to run, is not
    /// registered, and errors of the store.
    ///
    /// [`AgentNotFound`]: crate::error::ErrorCode::AgentNotFound
    /// [`NothingToStop`]: crate::error::ErrorCode::NothingToStop
    async fn abort(&self, session: &SessionId, reason: Option<String>) -> Result<()>;

    /// Records an answer to a pending call of this session or of one of its descendants. An
    /// executor built with `auto_resume` then resumes the session; [`Submitted`] reports whether it
    /// did. `Ok` means that the answer is recorded, even if resuming fails.
    ///
    /// # Errors
    /// Returns the errors of [`submit`](crate::session::submit). After an error of the store it is
    /// unknown whether the answer is recorded. Submit it again with the same
    /// [`request`](Submission::request): it is recorded only once, and the session is resumed if it
    /// was not.
    ///
    /// # Durability
    /// When it returns `Ok`, the answer is in the log.
    async fn submit_tool_result(
        &self,
        root: &SessionId,
        submission: Submission,
    ) -> Result<Submitted>;

    /// Returns the pending calls of a root session and of its descendants, including calls whose
    /// deadline has passed. For a child session, the list is empty.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`], and errors of the store.
    ///
    /// [`SessionNotFound`]: crate::error::ErrorCode::SessionNotFound
    async fn pending_calls(&self, root: &SessionId) -> Result<Vec<PendingCallView>>;

    /// Sends a message to a session, whether or not the session has a run. The message enters the
    /// transcript between two steps, but not between a
    /// [paused](crate::step::StopReason::Pause) reply and its continuation; a turn does not complete
    /// before that. Without a run, the message waits for the session's next run.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`], and errors of the store. After an error of the store, the
    /// message may have been recorded.
    ///
    /// # Durability
    /// When the method returns `Ok`, the message is in the log.
    ///
    /// # Cancel safety
    /// If the future is dropped, the message may have been recorded. Sending it again adds a second
    /// message. [`queue_message`](crate::session::queue_message) takes a request id and can be
    /// repeated.
    ///
    /// [`SessionNotFound`]: crate::error::ErrorCode::SessionNotFound
    async fn send_message(&self, session: &SessionId, message: UserMessage) -> Result<()>;

    /// Sends a message as [`send_message`](Self::send_message) does. With a [request id](MessageOptions::request), the
    /// call can be repeated.
    ///
    /// # Errors
    /// Returns the errors of [`send_message`](Self::send_message).
    ///
    /// # Durability
    /// When the method returns `Ok`, the message is in the log.
    async fn queue_message(
        &self,
        session: &SessionId,
        message: UserMessage,
        options: MessageOptions,
    ) -> Result<()>;

    /// Takes over every session of this kind of runtime whose run stopped without ending and whose
    /// lease has expired. Sessions that another process takes over first are skipped.
    ///
    /// A session that cannot be resumed (its agent is not registered, or its factory fails) does
    /// not block the others: it is logged as a warning with the error's code, and tried again by
    /// the next call.
    ///
    /// # Errors
    /// Returns the errors of the store, if it is unavailable.
    async fn recover(&self) -> Result<Vec<RunHandle>>;

    /// Does what [`recover`](Self::recover) does, and also resumes every suspended session that can
    /// continue and has no active run: because a call was answered or its deadline has passed, or
    /// because a child session has ended. Call it periodically: nothing waits in memory for a
    /// deadline.
    ///
    /// # Errors
    /// Returns the errors of the store.
    async fn sweep(&self) -> Result<Vec<RunHandle>>;

    /// Returns the usage of all sessions that a query selects, by model, tool, sub-agent and custom
    /// source. [`RunHandle::usage`] returns the usage of one session tree.
    ///
    /// # Errors
    /// Returns the errors of [`usage_of_sessions`](crate::session::usage_of_sessions).
    async fn usage(&self, query: &UsageQuery) -> Result<UsageReport>;

    /// Returns the data for displaying a root session and then following its stream, without gaps
    /// or duplicates, for example in a web page.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`], and errors of the store and of the stream manager.
    ///
    /// [`SessionNotFound`]: crate::error::ErrorCode::SessionNotFound
    async fn page(&self, session: &SessionId) -> Result<SessionPage>;

    /// Returns the session's stream starting at chunk `from`, for example where
    /// [`page`](Self::page) ends.
    ///
    /// # Errors
    /// Returns the errors of the stream manager.
    async fn follow(&self, session: &SessionId, from: u64) -> Result<ChunkStream>;

    /// Returns a handle to the session's last run, whichever process executes it.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`], [`RunNotFound`] for a session without a run, and errors of the
    /// store.
    ///
    /// [`RunNotFound`]: crate::error::ErrorCode::RunNotFound
    /// [`SessionNotFound`]: crate::error::ErrorCode::SessionNotFound
    async fn handle(&self, session: &SessionId) -> Result<RunHandle>;

    /// Returns whether [`resume`](Self::resume) would start a run now.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`], and errors of the store.
    ///
    /// [`SessionNotFound`]: crate::error::ErrorCode::SessionNotFound
    async fn can_resume(&self, session: &SessionId) -> Result<Resumable>;

    /// Shuts the executor down and returns when all runs that this process executes have stopped. A
    /// run stops before its next effect; an effect that is still running after the grace period is
    /// cancelled. Later starts fail with [`Closed`].
    ///
    /// The log records no end of the stopped runs. Their leases are released, so that another
    /// process can continue them immediately.
    ///
    /// # Cancel safety
    /// If the future is dropped, runs still stop before their next effect, but running effects are
    /// not cancelled. The method can be called again.
    ///
    /// [`Closed`]: crate::error::ErrorCode::Closed
    async fn shutdown(&self);
}

/// Convenience methods for typed agents.
///
/// # Examples
///
/// ```no_run
/// # use helix_agents_core::agent::Agent;
/// use helix_agents_core::executor::AgentExecutorExt as _;
///
/// # async fn example(
/// #     executor: &impl helix_agents_core::executor::AgentExecutor,
/// #     agent: &Agent,
/// # ) -> helix_agents_core::error::Result<()> {
/// let summary: String = executor.run(agent, "Summarise the ticket.").await?;
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait AgentExecutorExt: AgentExecutor {
    /// Starts a turn of a typed agent.
    ///
    /// # Errors
    /// Returns the errors of [`AgentExecutor::execute`].
    async fn start<O>(
        &self,
        agent: &Agent<O>,
        input: impl Into<Input> + Send,
        options: ExecuteOptions,
    ) -> Result<RunHandle<O>> {
        Ok(self.execute(agent.erased(), input.into(), options).await?.typed())
    }

    /// Runs one turn of a typed agent in a new session and waits for its output.
    ///
    /// # Errors
    /// Returns the errors of [`AgentExecutor::execute`], and the run's own error if it does not
    /// complete.
    async fn run<O: DeserializeOwned>(
        &self,
        agent: &Agent<O>,
        input: impl Into<Input> + Send,
    ) -> Result<O> {
        self.start(agent, input, ExecuteOptions::default()).await?.result().await?.into_output()
    }

    /// Resumes a session of a typed agent.
    ///
    /// # Errors
    /// Returns the errors of [`AgentExecutor::resume`].
    async fn resume_agent<O>(
        &self,
        agent: &Agent<O>,
        session: &SessionId,
        options: ResumeOptions,
    ) -> Result<RunHandle<O>> {
        Ok(self.resume(agent.erased(), session, options).await?.typed())
    }
}

impl<T: AgentExecutor + ?Sized> AgentExecutorExt for T {}

#[cfg(test)]
mod tests;
