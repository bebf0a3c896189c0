//! What executors are told: with what a turn begins, and how.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::budget::Budget;
use crate::hooks::AgentHooks;
use crate::id::{RunId, SessionId};
use crate::message::UserMessage;

/// What a turn begins with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Input {
    /// Messages, at least one.
    pub messages: Vec<UserMessage>,
    /// Members of the custom state to set first.
    pub state: Option<Value>,
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

/// Options of [`AgentExecutor::execute`](super::AgentExecutor::execute).
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ExecuteOptions {
    /// The session: a new one, or one to continue. Without it a new one with a fresh id.
    pub session: Option<SessionId>,
    /// The run's id. A second `execute` with it attaches to the run of the first.
    pub run: Option<RunId>,
    /// Labels of a new session.
    pub tags: BTreeMap<String, String>,
    /// Limits on what the session may use up.
    pub budget: Option<Budget>,
    /// Hooks of this execution; they run after the agent's.
    pub hooks: Vec<Arc<dyn AgentHooks>>,
}

impl ExecuteOptions {
    /// Names the session.
    #[must_use]
    pub fn session(mut self, session: impl Into<SessionId>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Names the run.
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

    /// Limits what the session may use up, from its beginning on. The limits are in its log and
    /// hold whoever goes on with it; each takes the place of the agent's.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
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
            .field("budget", &self.budget)
            .field("hooks", &self.hooks.len())
            .finish()
    }
}

/// Options of [`AgentExecutor::resume`](super::AgentExecutor::resume).
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ResumeOptions {
    /// The session's last run as the caller saw it. If another one has begun since, the caller is
    /// told [`ErrorCode::AlreadyResumed`](crate::error::ErrorCode::AlreadyResumed). Without it, what the executor sees when it is called.
    pub after: Option<RunId>,
    /// A message to go on with.
    pub message: Option<UserMessage>,
    /// Limits on what the session may use up, in place of those that it had.
    pub budget: Option<Budget>,
    /// The checkpoint to go back to first. Without it, it goes on where the session stopped.
    pub checkpoint: Option<u64>,
    /// How long to wait for the lease of a run that may have died. A run whose lease is renewed
    /// meanwhile is alive, and the caller is told [`ErrorCode::AlreadyRunning`](crate::error::ErrorCode::AlreadyRunning) at once.
    pub wait: Duration,
    /// Hooks of this execution; they run after the agent's.
    pub hooks: Vec<Arc<dyn AgentHooks>>,
}

impl ResumeOptions {
    /// Only if this still is the session's last run.
    #[must_use]
    pub fn after(mut self, run: impl Into<RunId>) -> Self {
        self.after = Some(run.into());
        self
    }

    /// Goes on with a message.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(UserMessage::new(message));
        self
    }

    /// Sets other limits on what the session may use up, from its beginning on: what was used
    /// counts. Limits that it does not name stay as they were.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Goes back to a checkpoint first, one of [`Session::checkpoints`](crate::session::Session::checkpoints): the conversation and the
    /// state are again what they were there. What came after it stays in the log. So a session that
    /// is complete or aborted, or waits for people, can be resumed as well; one with a sub-agent
    /// that is not done cannot. A step that ended the turn ends it again, unless there is a message.
    #[must_use]
    pub fn from_checkpoint(mut self, version: u64) -> Self {
        self.checkpoint = Some(version);
        self
    }

    /// Waits this long for the lease of a run that may have died.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
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
            .field("budget", &self.budget)
            .field("hooks", &self.hooks.len())
            .finish()
    }
}

/// Options of [`AgentExecutor::fork`](super::AgentExecutor::fork).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ForkOptions {
    /// The checkpoint. Without it the last one.
    pub checkpoint: Option<u64>,
    /// The new session. Without it one with a fresh id.
    pub session: Option<SessionId>,
    /// Labels of the new session, beside and instead of the original's.
    pub tags: BTreeMap<String, String>,
}

impl ForkOptions {
    /// Forks at this checkpoint, one of [`Session::checkpoints`](crate::session::Session::checkpoints) or one that the session went back
    /// behind.
    #[must_use]
    pub fn at(mut self, version: u64) -> Self {
        self.checkpoint = Some(version);
        self
    }

    /// Names the new session.
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
}
