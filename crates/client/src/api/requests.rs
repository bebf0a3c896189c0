//! Requests with several parameters.

use std::collections::BTreeMap;

use helix_agents_core::budget::Budget;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::message::UserMessage;
use helix_agents_core::store::SessionStatus;
use helix_agents_core::trace::TraceParent;
use serde_json::Value;

/// A request to start a turn.
///
/// # Examples
/// ```
/// use helix_agents_client::StartRequest;
///
/// let request = StartRequest::new("guide", "What is the capital of Norway?")
///     .session("question-1")
///     .label("topic", "cities");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StartRequest {
    /// The name of the agent.
    pub agent: String,
    /// The message of the user.
    pub message: UserMessage,
    /// The session: one of the caller, or the id of a new one. Default: a new session with a generated id.
    pub session: Option<SessionId>,
    /// The id of the run. Default: a generated one. A request that is sent again with the same id attaches to the run.
    pub run: Option<RunId>,
    /// Members of the custom state to set before the turn starts.
    pub state: Option<Value>,
    /// The labels of a new session.
    pub labels: BTreeMap<String, String>,
    /// Limits on the session's usage.
    pub budget: Option<Budget>,
    /// The caller's trace. The turn belongs to it.
    pub trace: Option<TraceParent>,
}

impl StartRequest {
    /// Creates a request for a turn in a new session.
    pub fn new(agent: impl Into<String>, message: impl Into<UserMessage>) -> Self {
        Self {
            agent: agent.into(),
            message: message.into(),
            session: None,
            run: None,
            state: None,
            labels: BTreeMap::new(),
            budget: None,
            trace: None,
        }
    }

    /// Sets the session.
    #[must_use]
    pub fn session(mut self, session: impl Into<SessionId>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Sets the id of the run.
    #[must_use]
    pub fn run(mut self, run: impl Into<RunId>) -> Self {
        self.run = Some(run.into());
        self
    }

    /// Sets members of the custom state.
    #[must_use]
    pub fn state(mut self, state: Value) -> Self {
        self.state = Some(state);
        self
    }

    /// Adds a label to a new session.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// Sets limits on the session's usage.
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
}

/// A request to resume a session.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResumeRequest {
    /// The root session.
    pub session: SessionId,
    /// A message to continue with.
    pub message: Option<UserMessage>,
    /// The last run that the caller has seen. If another one has started since, the request fails.
    pub after: Option<RunId>,
    /// The version of the checkpoint to rewind to first.
    pub checkpoint: Option<u64>,
    /// Limits on the session's usage, replacing the previous ones.
    pub budget: Option<Budget>,
    /// The caller's trace. A resumed turn keeps the trace that it started with.
    pub trace: Option<TraceParent>,
}

impl ResumeRequest {
    /// Creates a request that continues where the session stopped.
    pub fn new(session: impl Into<SessionId>) -> Self {
        Self {
            session: session.into(),
            message: None,
            after: None,
            checkpoint: None,
            budget: None,
            trace: None,
        }
    }

    /// Continues with a message.
    #[must_use]
    pub fn message(mut self, message: impl Into<UserMessage>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Fails if a run has started after this one.
    #[must_use]
    pub fn after(mut self, run: impl Into<RunId>) -> Self {
        self.after = Some(run.into());
        self
    }

    /// Rewinds to a checkpoint first.
    #[must_use]
    pub fn checkpoint(mut self, version: u64) -> Self {
        self.checkpoint = Some(version);
        self
    }

    /// Replaces the limits on the session's usage.
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
}

/// A request to interrupt or abort a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StopRequest {
    /// The session.
    pub session: SessionId,
    /// The run. Default: the last one. With a run, the request can be repeated after a lost response.
    pub run: Option<RunId>,
    /// The reason, which the log records.
    pub reason: Option<String>,
}

impl StopRequest {
    /// Creates a request for the last run of a session.
    pub fn new(session: impl Into<SessionId>) -> Self {
        Self { session: session.into(), run: None, reason: None }
    }

    /// Names the run, so that a later one is not stopped.
    #[must_use]
    pub fn run(mut self, run: impl Into<RunId>) -> Self {
        self.run = Some(run.into());
        self
    }

    /// Sets the reason.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

/// The sessions that a listing selects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SessionQuery {
    /// Sessions of this agent.
    pub agent: Option<String>,
    /// Sessions with this status.
    pub status: Option<SessionStatus>,
    /// Only sessions that wait for an answer.
    pub pending: bool,
    /// Only sessions that were created with all of these labels.
    pub labels: BTreeMap<String, String>,
    /// The [`next`](crate::Listing::next) of the previous part.
    pub after: Option<String>,
    /// The maximum number of sessions, up to 1,000. Default: 100.
    pub limit: Option<u32>,
}

impl SessionQuery {
    /// Selects all sessions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects the sessions of an agent.
    #[must_use]
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Selects the sessions with a status.
    #[must_use]
    pub fn status(mut self, status: SessionStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// Selects the sessions that wait for an answer.
    #[must_use]
    pub fn pending(mut self) -> Self {
        self.pending = true;
        self
    }

    /// Selects the sessions that were created with a label.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// Continues after the previous part.
    #[must_use]
    pub fn after(mut self, next: impl Into<String>) -> Self {
        self.after = Some(next.into());
        self
    }

    /// Sets the maximum number of sessions.
    #[must_use]
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit);
        self
    }
}
