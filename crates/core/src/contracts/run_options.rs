//! Inputs and options of executor methods.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::budget::Budget;
use crate::error::{Error, ErrorCode, Result};
use crate::hooks::AgentHooks;
use crate::id::{RunId, SessionId};
use crate::message::UserMessage;
use crate::trace::TraceParent;

/// The input of a turn.
///
/// # Examples
///
/// ```
/// use helix_agents_core::executor::Input;
///
/// # #[derive(serde::Serialize)]
/// # struct Order { customer: u64 }
/// let input = Input::new("Where is my parcel?").with_state(&Order { customer: 7 })?;
/// assert_eq!(input.messages.len(), 1);
/// # Ok::<(), helix_agents_core::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Input {
    /// The messages, at least one.
    pub messages: Vec<UserMessage>,
    /// Members of the custom state to set before the turn starts.
    pub state: Option<Value>,
}

impl Input {
    /// Creates an input with one message.
    ///
    /// ```
    /// use helix_agents_core::executor::Input;
    /// use serde::Serialize;
    ///
    /// #[derive(Serialize)]
    /// struct Notes {
    ///     topic: String,
    /// }
    ///
    /// let notes = Notes { topic: "tides".into() };
    /// let input = Input::new("Continue the report.").with_state(&notes)?;
    /// assert_eq!(input.state.unwrap()["topic"], "tides");
    /// # Ok::<(), helix_agents_core::error::Error>(())
    /// ```
    pub fn new(message: impl Into<UserMessage>) -> Self {
        Self { messages: vec![message.into()], state: None }
    }

    /// Adds a message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<UserMessage>) -> Self {
        self.messages.push(message.into());
        self
    }

    /// Sets the members of the custom state to those of this value, for example of the agent's
    /// state type. Members that the value lacks stay as they are.
    ///
    /// # Errors
    /// Returns [`ErrorCode::StateInvalid`] if the value cannot be written as JSON.
    pub fn with_state(mut self, state: &(impl Serialize + ?Sized)) -> Result<Self> {
        let state = serde_json::to_value(state).map_err(|error| {
            Error::new(ErrorCode::StateInvalid, "the state is not JSON").with_source(error)
        })?;
        self.state = Some(state);
        Ok(self)
    }
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self { messages: vec![UserMessage::new(text)], state: None }
    }
}

impl From<String> for Input {
    fn from(text: String) -> Self {
        Self { messages: vec![UserMessage::new(text)], state: None }
    }
}

impl From<UserMessage> for Input {
    fn from(message: UserMessage) -> Self {
        Self { messages: vec![message], state: None }
    }
}

/// Options of [`AgentExecutor::execute`](crate::executor::AgentExecutor::execute).
///
/// # Examples
///
/// ```
/// use helix_agents_core::budget::Budget;
/// use helix_agents_core::executor::ExecuteOptions;
///
/// let options = ExecuteOptions::default()
///     .session("ticket-7")
///     .tag("customer", "42")
///     .budget(Budget::new().steps(10));
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ExecuteOptions {
    /// The session: a new one, or one to continue. Default: a new session with a generated id.
    pub session: Option<SessionId>,
    /// The run's id. Default: a generated one. A second `execute` with the same session id and run
    /// id returns a handle to the first run and ignores the new input. Without a chosen
    /// [`session`](Self::session), every call creates a session, and the run id attaches to
    /// nothing.
    ///
    /// If a message with this request id was queued, the call returns a handle to the session's last run and starts none.
    ///
    /// Attaching does not take over a run whose process was killed. On an engine, the engine
    /// continues it. Otherwise it stays unfinished until a `resume` or a `recover` continues it.
    pub run: Option<RunId>,
    /// The labels of a new session.
    pub tags: BTreeMap<String, String>,
    /// Labels that an existing session must have. Otherwise `execute` fails with
    /// [`ErrorCode::SessionNotFound`](crate::error::ErrorCode::SessionNotFound) and changes nothing. A new
    /// session gets them; they take precedence over [`tags`](Self::tags).
    pub required_tags: BTreeMap<String, String>,
    /// Limits on the session's usage.
    pub budget: Option<Budget>,
    /// The caller's trace, to which the turn belongs. Default: a trace of its own; a sub-agent's turn belongs to the trace of
    /// its parent.
    pub trace: Option<TraceParent>,
    /// Hooks of this execution. They run after the agent's hooks. They are not recorded: a run that
    /// takes over or resumes this one does not call them. An executor whose runs are executed by
    /// other processes rejects them with
    /// [`ErrorCode::ConfigInvalid`](crate::error::ErrorCode::ConfigInvalid).
    pub hooks: Vec<Arc<dyn AgentHooks>>,
}

impl ExecuteOptions {
    /// Sets the session id.
    #[must_use]
    pub fn session(mut self, session: impl Into<SessionId>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Sets the run id.
    #[must_use]
    pub fn run(mut self, run: impl Into<RunId>) -> Self {
        self.run = Some(run.into());
        self
    }

    /// Adds a label to a new session.
    #[must_use]
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.insert(key.into(), value.into());
        self
    }

    /// Adds a label to a new session, and requires it of an existing one. The check and the start
    /// are atomic, so a label can name the owner of a session whose id several callers choose.
    #[must_use]
    pub fn required_tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.required_tags.insert(key.into(), value.into());
        self
    }

    /// Limits the session's usage over its whole lifetime. The limits are recorded in the log and
    /// apply to every process that continues the session. Each limit replaces that of the agent.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Sets the caller's trace.
    #[must_use]
    pub fn trace(mut self, trace: TraceParent) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Adds hooks of this execution.
    #[must_use]
    pub fn hooks(mut self, hooks: impl AgentHooks) -> Self {
        self.hooks.push(Arc::new(hooks));
        self
    }
}

impl fmt::Debug for ExecuteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecuteOptions")
            .field("session", &self.session)
            .field("run", &self.run)
            .field("tags", &self.tags)
            .field("required_tags", &self.required_tags)
            .field("budget", &self.budget)
            .field("trace", &self.trace)
            .field("hooks", &self.hooks.len())
            .finish()
    }
}

/// Options of [`AgentExecutor::resume`](crate::executor::AgentExecutor::resume).
///
/// # Examples
///
/// Goes back to a checkpoint and continues from there with another message:
///
/// ```
/// use helix_agents_core::executor::ResumeOptions;
///
/// let options = ResumeOptions::default().checkpoint(12).message("Rather in German.");
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ResumeOptions {
    /// The session's last run as seen by the caller. If another run has started since, the call
    /// fails with [`ErrorCode::AlreadyResumed`](crate::error::ErrorCode::AlreadyResumed). Default:
    /// the last run at the time of the call.
    pub after: Option<RunId>,
    /// A message to continue with.
    pub message: Option<UserMessage>,
    /// Limits on the session's usage, replacing the previous ones.
    pub budget: Option<Budget>,
    /// The checkpoint to rewind to first, or 0 for the start of the session. Default: continue where
    /// the session stopped.
    pub checkpoint: Option<u64>,
    /// The maximum time to wait for another run's lease to expire. Default: zero. The call fails
    /// with [`ErrorCode::AlreadyRunning`](crate::error::ErrorCode::AlreadyRunning) at once if the
    /// lease outlasts this time, and during the wait if the lease is renewed, because its owner is
    /// then alive.
    pub wait: Duration,
    /// Labels that the root of the session must have. Otherwise `resume` fails with
    /// [`ErrorCode::SessionNotFound`](crate::error::ErrorCode::SessionNotFound) and changes nothing.
    pub required_tags: BTreeMap<String, String>,
    /// The caller's trace, which is recorded with the run. A resumed turn keeps the trace that it started with. If a message
    /// starts another turn, that turn belongs to this trace.
    pub trace: Option<TraceParent>,
    /// Hooks of this execution. They run after the agent's hooks.
    pub hooks: Vec<Arc<dyn AgentHooks>>,
}

impl ResumeOptions {
    /// Requires that `run` is still the session's last run.
    #[must_use]
    pub fn after(mut self, run: impl Into<RunId>) -> Self {
        self.after = Some(run.into());
        self
    }

    /// Adds a message to continue with: a text, or a [`UserMessage`] with images and files.
    #[must_use]
    pub fn message(mut self, message: impl Into<UserMessage>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Sets new limits on the session's usage over its whole lifetime: past usage counts. Limits
    /// that are not set stay as they were.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Rewinds to a checkpoint first, one of
    /// [`Session::checkpoints`](crate::session::Session::checkpoints). The conversation and the
    /// state are then as they were at the checkpoint. Later events stay in the log. With a
    /// checkpoint, sessions that are complete, aborted or suspended can be resumed as well; one
    /// with an unfinished sub-agent cannot. If the step at the checkpoint ended the turn, it ends
    /// the turn again, unless a message is given.
    ///
    /// Version 0 is the start of the session, before its first message: the transcript is empty and
    /// the state is the initial one. It needs a [`message`](Self::message).
    #[must_use]
    pub fn checkpoint(mut self, version: u64) -> Self {
        self.checkpoint = Some(version);
        self
    }

    /// Requires a label of the root of the session. The check and the start are atomic.
    #[must_use]
    pub fn required_tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.required_tags.insert(key.into(), value.into());
        self
    }

    /// Waits up to `wait` for the lease of a run whose process may have crashed.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Sets the caller's trace.
    #[must_use]
    pub fn trace(mut self, trace: TraceParent) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Adds hooks of this execution.
    #[must_use]
    pub fn hooks(mut self, hooks: impl AgentHooks) -> Self {
        self.hooks.push(Arc::new(hooks));
        self
    }
}

impl fmt::Debug for ResumeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResumeOptions")
            .field("after", &self.after)
            .field("message", &self.message.is_some())
            .field("checkpoint", &self.checkpoint)
            .field("wait", &self.wait)
            .field("required_tags", &self.required_tags)
            .field("budget", &self.budget)
            .field("trace", &self.trace)
            .field("hooks", &self.hooks.len())
            .finish()
    }
}

/// Options of [`AgentExecutor::fork`](crate::executor::AgentExecutor::fork).
///
/// # Examples
///
/// ```
/// use helix_agents_core::executor::ForkOptions;
///
/// let options = ForkOptions::default().checkpoint(12).session("ticket-7-german");
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ForkOptions {
    /// The checkpoint. Default: the last one.
    pub checkpoint: Option<u64>,
    /// The new session's id. Default: a generated one.
    pub session: Option<SessionId>,
    /// Labels of the new session. They extend and override those of the original.
    pub tags: BTreeMap<String, String>,
    /// Labels that the root of the original must have. Otherwise `fork` fails with
    /// [`ErrorCode::SessionNotFound`](crate::error::ErrorCode::SessionNotFound) and creates nothing.
    pub required_tags: BTreeMap<String, String>,
}

impl ForkOptions {
    /// Forks at this checkpoint: one of
    /// [`Session::checkpoints`](crate::session::Session::checkpoints), or one that a rewind has
    /// removed from that list.
    #[must_use]
    pub fn checkpoint(mut self, version: u64) -> Self {
        self.checkpoint = Some(version);
        self
    }

    /// Sets the id of the new session.
    #[must_use]
    pub fn session(mut self, session: impl Into<SessionId>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Adds a label to the new session.
    #[must_use]
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.insert(key.into(), value.into());
        self
    }

    /// Requires a label of the root of the original. The check and the fork are atomic.
    #[must_use]
    pub fn required_tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.required_tags.insert(key.into(), value.into());
        self
    }
}
