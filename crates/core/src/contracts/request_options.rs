//! Options of requests to existing sessions: stops and messages.

use std::collections::BTreeMap;

use crate::id::{RequestId, RunId};
use crate::trace::TraceParent;

/// Options of [`AgentExecutor::stop`](crate::executor::AgentExecutor::stop).
///
/// # Examples
///
/// ```
/// use helix_agents_core::executor::StopOptions;
///
/// let options = StopOptions::default().run("run-7").reason("the user left");
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StopOptions {
    /// The run to stop. If another run has started since, there is nothing to stop. Default: the session's last run.
    pub run: Option<RunId>,
    /// The reason, which the log records.
    pub reason: Option<String>,
    /// Labels that the root of the session must have. Otherwise the call fails with
    /// [`ErrorCode::SessionNotFound`](crate::error::ErrorCode::SessionNotFound) and changes nothing.
    pub required_tags: BTreeMap<String, String>,
}

impl StopOptions {
    /// Stops only this run. The check and the append of the request are atomic.
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

    /// Requires a label of the root of the session. The check and the append of the request are atomic.
    #[must_use]
    pub fn required_tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.required_tags.insert(key.into(), value.into());
        self
    }
}

/// Options of [`AgentExecutor::queue_message`](crate::executor::AgentExecutor::queue_message).
///
/// # Examples
///
/// ```
/// use helix_agents_core::executor::MessageOptions;
///
/// let options = MessageOptions::default().request("message-3");
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct MessageOptions {
    /// The id of the message. A second message with the same id is not queued. Default: a generated one.
    pub request: Option<RequestId>,
    /// Labels that the root of the session must have. Otherwise the call fails with
    /// [`ErrorCode::SessionNotFound`](crate::error::ErrorCode::SessionNotFound) and queues nothing.
    pub required_tags: BTreeMap<String, String>,
    /// The caller's trace. The log keeps it with the message.
    pub trace: Option<TraceParent>,
}

impl MessageOptions {
    /// Sets the id of the message.
    #[must_use]
    pub fn request(mut self, request: impl Into<RequestId>) -> Self {
        self.request = Some(request.into());
        self
    }

    /// Requires a label of the root of the session. The check and the append of the message are atomic.
    #[must_use]
    pub fn required_tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.required_tags.insert(key.into(), value.into());
        self
    }

    /// Sets the caller's trace.
    #[must_use]
    pub fn trace(mut self, trace: TraceParent) -> Self {
        self.trace = Some(trace);
        self
    }
}
