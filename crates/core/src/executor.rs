//! The contract of an executor: how a program starts, follows and stops runs, whatever carries
//! them out.

mod options;
mod submitted;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use options::{ExecuteOptions, ForkOptions, Input, ResumeOptions};
pub use submitted::{Resumption, Submitted};

use crate::agent::{Agent, AnyAgent};
use crate::error::{Error, ErrorCode, ErrorRecord, Result};
use crate::event::Suspension;
use crate::id::{RunId, SessionId};
use crate::json::Json;
use crate::json::misfit::misfit;
use crate::message::UserMessage;
use crate::session::{
    PendingView, RunRecord, RunStatus, Session, SessionPage, Submission, UsageQuery, UsageReport,
};
use crate::stream::ChunkStream;
use crate::usage::{Usage, UsageRollup};

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentResult<O = Json> {
    /// The status.
    pub status: RunStatus,
    /// The output, if it completed with one.
    pub output: Option<O>,
    /// The error, if it failed.
    pub error: Option<ErrorRecord>,
    /// The reason that was given, if it was interrupted or aborted.
    pub reason: Option<String>,
    /// What it waits for, if it was suspended.
    pub suspended: Option<Arc<Suspension>>,
}

impl AgentResult {
    /// The result of a run that has ended.
    #[must_use]
    pub fn of(run: &RunRecord) -> Self {
        Self {
            status: run.status,
            output: run.output.clone(),
            error: run.error.clone(),
            reason: run.reason.clone(),
            suspended: run.suspended.clone(),
        }
    }

    /// The result with the output as a type.
    ///
    /// # Errors
    /// [`ErrorCode::OutputInvalid`] if the recorded output does not fit it.
    pub fn typed<O: DeserializeOwned>(self) -> Result<AgentResult<O>> {
        let typed = |output: Json| {
            output.to_typed().map_err(|_| {
                let misfit = misfit::<O>(&output.to_value());
                let message = format!("the recorded output does not fit the type: {misfit}");
                Error::new(ErrorCode::OutputInvalid, message)
            })
        };
        let output = self.output.map(typed).transpose()?;
        let Self { status, error, reason, suspended, .. } = self;
        Ok(AgentResult { status, output, error, reason, suspended })
    }
}

impl<O> AgentResult<O> {
    /// The output, or why there is none as an error.
    ///
    /// # Errors
    /// With the run's own code if it failed, [`ErrorCode::Cancelled`] if it was interrupted or
    /// aborted, [`ErrorCode::Suspended`] if it waits for people, [`ErrorCode::OutputInvalid`] if it
    /// completed without output.
    pub fn into_output(self) -> Result<O> {
        if let Some(output) = self.output {
            return Ok(output);
        }
        if let Some(error) = &self.error {
            return Err(error.to_error(ErrorCode::Internal));
        }
        let code = match self.status {
            RunStatus::Completed => ErrorCode::OutputInvalid,
            status if status.is_suspended() => ErrorCode::Suspended,
            _ => ErrorCode::Cancelled,
        };
        let message = format!("the run is {} and has no output", self.status.as_str());
        Err(Error::new(code, message))
    }
}

/// What an executor can do with a session, for [`AgentExecutor::can_resume`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resumable {
    /// It stopped without ending, or was interrupted, or failed: `resume` goes on with it.
    Yes,
    /// Its run is alive.
    Running,
    /// It waits for people, and none of them has answered.
    Waiting,
    /// Its last turn is complete or aborted: `execute` begins another one.
    Ended,
}

/// What an executor offers through a [`RunHandle`].
#[async_trait]
pub trait RunControl: fmt::Debug + Send + Sync + 'static {
    /// Waits for the run's end.
    async fn result(&self) -> Result<AgentResult>;
    /// The session's chunks from this run's beginning on.
    async fn stream(&self) -> Result<ChunkStream>;
    /// Asks the run to stop at the next step boundary.
    async fn interrupt(&self, reason: Option<String>) -> Result<()>;
    /// Asks the run to stop at once.
    async fn abort(&self, reason: Option<String>) -> Result<()>;
    /// The session as its log tells it now.
    async fn session(&self) -> Result<Session>;
    /// What the session and all below it used up so far, as
    /// [`usage_of_tree`](crate::session::usage_of_tree) adds it up.
    async fn usage_rollup(&self) -> Result<UsageRollup>;
}

/// A run, here or elsewhere. Cheap to clone. Dropping it does not stop the run.
#[derive(Debug, Clone)]
pub struct RunHandle {
    session: SessionId,
    run: RunId,
    control: Arc<dyn RunControl>,
}

impl RunHandle {
    /// A handle; for executors.
    #[must_use]
    pub fn new(session: SessionId, run: RunId, control: Arc<dyn RunControl>) -> Self {
        Self { session, run, control }
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Waits for the run's end. A run that fails is a result, not an error.
    ///
    /// # Errors
    /// The store's; [`ErrorCode::Superseded`] if another run took over.
    ///
    /// # Cancel safety
    /// Dropping the future does not disturb the run; ask again.
    pub async fn result(&self) -> Result<AgentResult> {
        self.control.result().await
    }

    /// The run's chunks: those that are kept, then live, up to and with the one that ends it.
    ///
    /// # Errors
    /// The stream manager's.
    pub async fn stream(&self) -> Result<ChunkStream> {
        self.control.stream().await
    }

    /// Asks the run to stop at the next step boundary. It can be resumed.
    ///
    /// # Errors
    /// The store's; [`ErrorCode::NothingToResume`] if the run has ended.
    pub async fn interrupt(&self, reason: impl Into<Option<String>> + Send) -> Result<()> {
        self.control.interrupt(reason.into()).await
    }

    /// Asks the run to stop at once: what is running is cancelled.
    ///
    /// # Errors
    /// The store's; [`ErrorCode::NothingToResume`] if the run has ended.
    pub async fn abort(&self, reason: impl Into<Option<String>> + Send) -> Result<()> {
        self.control.abort(reason.into()).await
    }

    /// Tokens of the session so far.
    ///
    /// # Errors
    /// The store's.
    pub async fn usage(&self) -> Result<Usage> {
        Ok(self.control.session().await?.usage())
    }

    /// What the session and all below it used up so far, by model, tool, sub-agent and source. It
    /// asks the store for each session of the tree, and so counts those at work as well;
    /// [`SessionOverview::tree_usage`](crate::session::SessionOverview::tree_usage) is what the session's own log knows of it.
    ///
    /// # Errors
    /// The store's.
    pub async fn usage_rollup(&self) -> Result<UsageRollup> {
        self.control.usage_rollup().await
    }

    /// The session as its log tells it now.
    ///
    /// # Errors
    /// The store's.
    pub async fn fold(&self) -> Result<Session> {
        self.control.session().await
    }
}

/// A handle that knows the agent's output type.
pub struct AgentHandle<O> {
    handle: RunHandle,
    output: PhantomData<fn() -> O>,
}

impl<O: DeserializeOwned> AgentHandle<O> {
    /// Waits for the run's end.
    ///
    /// # Errors
    /// As [`RunHandle::result`], and [`ErrorCode::OutputInvalid`] if the recorded output does not
    /// fit the type.
    pub async fn result(&self) -> Result<AgentResult<O>> {
        self.handle.result().await?.typed()
    }
}

impl<O> Deref for AgentHandle<O> {
    type Target = RunHandle;

    fn deref(&self) -> &RunHandle {
        &self.handle
    }
}

impl<O> fmt::Debug for AgentHandle<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.fmt(f)
    }
}

/// What carries out runs.
///
/// # Contract
///
/// `runtime_suite!` of `helix-agents-testkit` is the executable form of this section.
///
/// - Whatever carries out a run, the same agent, input and model answers give the same
///   transcript, events and chunks.
/// - Of several callers that start a run on one session exactly one does; the others are told.
/// - A recorded effect is never carried out again; one in doubt is treated as its tool's class
///   says.
/// - Every method works from another process than the one that carries out the run, as far as the
///   store reaches.
#[async_trait]
pub trait AgentExecutor: fmt::Debug + Send + Sync + 'static {
    /// Starts a turn: on a new session, or on one whose last run ended.
    ///
    /// # Errors
    /// [`ErrorCode::AlreadyRunning`] on a session with a live run,
    /// [`ErrorCode::RunUnfinished`] on one whose run stopped without ending,
    /// [`ErrorCode::AgentMismatch`] on another agent's session, what the agent's model settings
    /// are refused for, and the store's.
    ///
    /// # Durability
    /// When it returns, the turn is in the log.
    ///
    /// # Cancel safety
    /// Dropped in the middle, it may have begun the turn, which then goes on like any other. With
    /// [`ExecuteOptions::run`], calling it again finds that run.
    async fn execute(
        &self,
        agent: AnyAgent,
        input: Input,
        options: ExecuteOptions,
    ) -> Result<RunHandle>;

    /// Goes on with a session that was interrupted, failed, or stopped without ending.
    ///
    /// # Errors
    /// [`ErrorCode::AlreadyRunning`], [`ErrorCode::AlreadyResumed`],
    /// [`ErrorCode::NothingToResume`], [`ErrorCode::SessionNotFound`],
    /// [`ErrorCode::AgentMismatch`], [`ErrorCode::CheckpointNotFound`] and
    /// [`ErrorCode::ChildrenOpen`] if it is to go back to a checkpoint, and the store's.
    ///
    /// # Cancel safety
    /// As [`execute`](Self::execute): what was begun goes on.
    async fn resume(
        &self,
        agent: AnyAgent,
        session: &SessionId,
        options: ResumeOptions,
    ) -> Result<RunHandle>;

    /// Makes a new session that begins with what this one had up to a checkpoint: conversation and
    /// state. It is a root of its own, rests like an interrupted one, and runs nothing yet:
    /// `execute` begins a turn in it, `resume` goes on with the one that was under way. The
    /// original goes on undisturbed, and may be live.
    ///
    /// # Errors
    /// As [`fork`](crate::session::fork).
    ///
    /// # Durability
    /// When it returns, the new session is in the store.
    async fn fork(&self, session: &SessionId, options: ForkOptions) -> Result<SessionId>;

    /// Deletes a session with all below it and its stream, in whichever stores they are. Returns whether
    /// there was one. A run of it that is still under way fails at its next append; abort it first, if
    /// its hooks are to hear of the end.
    ///
    /// # Errors
    /// Those of the stores.
    async fn delete(&self, session: &SessionId) -> Result<bool>;

    /// Asks the session's current run to stop at the next step boundary.
    ///
    /// # Errors
    /// [`ErrorCode::NothingToResume`] if no run is current, and the store's.
    async fn interrupt(&self, session: &SessionId, reason: Option<String>) -> Result<()>;

    /// Asks the session's current run to stop at once; without a live run, ends the session as
    /// aborted.
    ///
    /// # Errors
    /// [`ErrorCode::NothingToResume`] if it has ended already, and the store's.
    async fn abort(&self, session: &SessionId, reason: Option<String>) -> Result<()>;

    /// Records an answer to a call that waits for people, in this session or one below it. An executor that
    /// was built with `auto_resume` then resumes the session; [`Submitted`] says whether it did. `Ok` means
    /// that the answer is recorded, whatever becomes of the resumption.
    ///
    /// # Errors
    /// As [`submit`](crate::session::submit). After an error of the store the answer may be recorded or not:
    /// submitted again under the same [`request`](Submission::request), it is recorded once, and a session that
    /// was not resumed is.
    ///
    /// # Durability
    /// When it returns `Ok`, the answer is in the log.
    async fn submit_tool_result(
        &self,
        root: &SessionId,
        submission: Submission,
    ) -> Result<Submitted>;

    /// The calls of this session and those below it that wait for people, those whose time is over
    /// included.
    ///
    /// # Errors
    /// [`ErrorCode::SessionNotFound`], and the store's.
    async fn pending_calls(&self, root: &SessionId) -> Result<Vec<PendingView>>;

    /// Puts a message into a session, whether it has a run or not: it enters the transcript between
    /// two steps, and a turn is not complete before. In a session without a run it waits for the
    /// next one.
    ///
    /// # Errors
    /// [`ErrorCode::SessionNotFound`], and the store's.
    ///
    /// # Durability
    /// When it returns, the message is in the log.
    async fn send_message(&self, session: &SessionId, message: UserMessage) -> Result<()>;

    /// Takes over every session whose run, of this kind of runtime, stopped without ending and
    /// whose lease has run out. Sessions that another process takes first are left alone.
    ///
    /// A session that cannot be resumed (its agent is not registered, or its factory fails) does not keep the
    /// others from being resumed: it is logged as a warning, with the error's code, and left to the next call.
    ///
    /// # Errors
    /// The store's, if it cannot be reached.
    async fn recover(&self) -> Result<Vec<RunHandle>>;

    /// What [`recover`](Self::recover) does, and goes on with every session that can go on and that
    /// nobody goes on with: a call was answered, or waited for people beyond its deadline, or a
    /// child that was waited for has ended. Call it now and then: nothing waits in memory for a
    /// deadline.
    ///
    /// # Errors
    /// The store's.
    async fn sweep(&self) -> Result<Vec<RunHandle>>;

    /// The usage of all sessions that a query selects, by model, tool, sub-agent and custom source.
    /// [`RunHandle::usage_rollup`] is that of one tree.
    ///
    /// # Errors
    /// As [`usage_of_sessions`](crate::session::usage_of_sessions).
    async fn usage(&self, query: &UsageQuery) -> Result<UsageReport>;

    /// What is needed to show a root session and then follow its stream, without gap and without
    /// repetition: for a page that somebody opens.
    ///
    /// # Errors
    /// [`ErrorCode::SessionNotFound`], and those of the store and the stream manager.
    async fn page(&self, session: &SessionId) -> Result<SessionPage>;

    /// The session's stream from a chunk on, as [`page`](Self::page) says.
    ///
    /// # Errors
    /// The stream manager's.
    async fn follow(&self, session: &SessionId, from: u64) -> Result<ChunkStream>;

    /// A handle on the session's last run, wherever it is carried out.
    ///
    /// # Errors
    /// [`ErrorCode::SessionNotFound`], [`ErrorCode::RunNotFound`] for a session without a run,
    /// and the store's.
    async fn handle(&self, session: &SessionId) -> Result<RunHandle>;

    /// Whether [`resume`](Self::resume) would start a run now.
    ///
    /// # Errors
    /// [`ErrorCode::SessionNotFound`], and the store's.
    async fn can_resume(&self, session: &SessionId) -> Result<Resumable>;
}

/// Conveniences for agents with types.
#[async_trait]
pub trait AgentExecutorExt: AgentExecutor {
    /// Starts a turn of a typed agent.
    ///
    /// # Errors
    /// As [`AgentExecutor::execute`].
    async fn start<S, O>(
        &self,
        agent: &Agent<S, O>,
        input: impl Into<Input> + Send,
        options: ExecuteOptions,
    ) -> Result<AgentHandle<O>> {
        let handle = self.execute(agent.erased(), input.into(), options).await?;
        Ok(AgentHandle { handle, output: PhantomData })
    }

    /// Runs one turn of a typed agent in a new session and waits for its output.
    ///
    /// # Errors
    /// As [`AgentExecutor::execute`], and the run's own if it does not complete.
    async fn run<S, O: DeserializeOwned>(
        &self,
        agent: &Agent<S, O>,
        input: impl Into<Input> + Send,
    ) -> Result<O> {
        self.start(agent, input, ExecuteOptions::default()).await?.result().await?.into_output()
    }

    /// Goes on with a session of a typed agent.
    ///
    /// # Errors
    /// As [`AgentExecutor::resume`].
    async fn resume_agent<S, O>(
        &self,
        agent: &Agent<S, O>,
        session: &SessionId,
        options: ResumeOptions,
    ) -> Result<AgentHandle<O>> {
        let handle = self.resume(agent.erased(), session, options).await?;
        Ok(AgentHandle { handle, output: PhantomData })
    }
}

impl<T: AgentExecutor + ?Sized> AgentExecutorExt for T {}

#[cfg(test)]
mod tests;
