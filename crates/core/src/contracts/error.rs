//! The framework's error type, with a kind that tells the caller how to react, a stable code and
//! context for humans.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::text::{MAX_QUOTED, excerpt};

mod record;

pub use record::ErrorRecord;

/// `Result` with the framework's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The caller's possible reaction to an error. There is one variant per reaction, not per cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// Change the input, the definition or the configuration.
    InvalidInput,
    /// The named object does not exist.
    NotFound,
    /// Another caller was first. Read the current state and decide again.
    Conflict,
    /// This run or owner was replaced. Stop.
    Superseded,
    /// The backend or model does not support the operation. Choose another or do without.
    Unsupported,
    /// Credentials are missing or were rejected.
    Unauthorized,
    /// Retry later, as given by `retry_after`.
    RateLimited,
    /// The other side is unreachable or failed temporarily. Retry.
    Unavailable,
    /// A configured limit was reached.
    LimitExceeded,
    /// The operation was cancelled on request.
    Cancelled,
    /// Stored data differs from what was written. A human has to investigate.
    Corrupt,
    /// A tool or the model failed; the message explains how.
    Failed,
    /// A bug in this framework or in user code.
    Internal,
}

impl ErrorKind {
    /// Returns `true` if the unchanged operation may succeed on retry.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::RateLimited | Self::Unavailable)
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $kind:ident;)+) => {
        /// The stable name of a failure. Each code has a page in the guide.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode { $($(#[$doc])* $variant,)+ }

        impl ErrorCode {
            /// All codes, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the name that is used in log messages, in session logs and in `--json`
            /// output.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// Returns the kind of all errors with this code.
            #[must_use]
            pub const fn kind(self) -> ErrorKind {
                match self { $(Self::$variant => ErrorKind::$kind,)+ }
            }
        }
    };
}

codes! {
    /// An agent definition contradicts itself.
    AgentInvalid = "agent_invalid", InvalidInput;
    /// A tool definition contradicts itself.
    ToolInvalid = "tool_invalid", InvalidInput;
    /// A runtime, store or provider has an invalid configuration.
    ConfigInvalid = "config_invalid", InvalidInput;
    /// An id is empty, too long or reserved.
    IdInvalid = "id_invalid", InvalidInput;
    /// The input of an operation cannot be used.
    InputInvalid = "input_invalid", InvalidInput;
    /// The tags of a session are too many or too long, or contain a character that is not allowed.
    TagInvalid = "tag_invalid", InvalidInput;
    /// No provider serves the named model.
    ModelUnknown = "model_unknown", InvalidInput;
    /// No session has this id.
    SessionNotFound = "session_not_found", NotFound;
    /// No agent is registered under this name.
    AgentNotFound = "agent_not_found", NotFound;
    /// The session has no such run.
    RunNotFound = "run_not_found", NotFound;
    /// The session has no checkpoint at this version.
    CheckpointNotFound = "checkpoint_not_found", NotFound;
    /// A session with this id exists already.
    SessionExists = "session_exists", Conflict;
    /// The session has an active run.
    AlreadyRunning = "already_running", Conflict;
    /// Another caller resumed the session first.
    AlreadyResumed = "already_resumed", Conflict;
    /// The last turn is complete: there is nothing to resume.
    NothingToResume = "nothing_to_resume", Conflict;
    /// The run is not in progress any more: there is nothing to interrupt or abort.
    NothingToStop = "nothing_to_stop", Conflict;
    /// The last run stopped without ending and must be resumed before a new turn.
    RunUnfinished = "run_unfinished", Conflict;
    /// The session belongs to another agent.
    AgentMismatch = "agent_mismatch", Conflict;
    /// A sub-agent of the session is not done, so the session cannot be rewound to before its
    /// start.
    ChildrenOpen = "children_open", Conflict;
    /// The session is suspended; its pending calls must be answered first.
    Suspended = "suspended", Conflict;
    /// The session and those below it have no pending call with this id.
    CallNotFound = "call_not_found", NotFound;
    /// Another caller answered the call first.
    AlreadyAnswered = "already_answered", Conflict;
    /// The answer came after the call's deadline.
    AnswerExpired = "answer_expired", Conflict;
    /// The run of the call was aborted.
    AnswerToAborted = "answer_to_aborted", Conflict;
    /// The call waits for another kind of answer.
    AnswerWrongKind = "answer_wrong_kind", InvalidInput;
    /// The answer does not match the schema of the call.
    AnswerInvalid = "answer_invalid", InvalidInput;
    /// The answer was given for other arguments.
    ArgumentsChanged = "arguments_changed", Conflict;
    /// The session is a child; the operation requires its root session.
    NotRoot = "not_root", InvalidInput;
    /// Another run owns the session now.
    Superseded = "superseded", Superseded;
    /// The chunks belong to a stream attempt that was discarded.
    AttemptDiscarded = "attempt_discarded", Superseded;
    /// The store no longer has data that it had acknowledged.
    HistoryLost = "history_lost", Corrupt;
    /// An event is not legal at its position in the log.
    LogInvalid = "log_invalid", Corrupt;
    /// The log holds an event or schema that this build does not know.
    SchemaUnknown = "schema_unknown", Unsupported;
    /// The backend does not support the requested capability.
    Unsupported = "unsupported", Unsupported;
    /// The provider refused the key.
    ProviderUnauthorized = "provider_unauthorized", Unauthorized;
    /// The key or access token of the provider has expired.
    ProviderCredentialsExpired = "provider_credentials_expired", Unauthorized;
    /// The provider does not serve the model to this account.
    ProviderModelNotFound = "provider_model_not_found", NotFound;
    /// The provider does not serve the model in this region.
    ProviderRegionUnsupported = "provider_region_unsupported", Unsupported;
    /// The model does not accept an attached image or file.
    MediaUnsupported = "media_unsupported", InvalidInput;
    /// The provider refused the request.
    ProviderRejected = "provider_rejected", InvalidInput;
    /// The provider's rate limit was reached.
    ProviderRateLimited = "provider_rate_limited", RateLimited;
    /// The provider could not be reached or failed.
    ProviderUnavailable = "provider_unavailable", Unavailable;
    /// The provider did not answer in time.
    ProviderTimeout = "provider_timeout", Unavailable;
    /// The provider closed the connection in the middle of a reply.
    ProviderStreamCut = "provider_stream_cut", Unavailable;
    /// The provider's response violates its protocol.
    ProviderProtocol = "provider_protocol", Unavailable;
    /// The approver denied the call.
    ToolDenied = "tool_denied", Failed;
    /// A sub-agent could not be started.
    SubAgentDispatchFailed = "sub_agent_dispatch_failed", Failed;
    /// The requested companion does not exist.
    CompanionUnknown = "companion_unknown", Failed;
    /// The session has reached the maximum number of companions.
    CompanionLimit = "companion_limit", Failed;
    /// A sub-agent failed or was aborted.
    SubAgentFailed = "sub_agent_failed", Failed;
    /// The call was not answered before its deadline.
    ToolUnanswered = "tool_unanswered", Failed;
    /// The output does not match the agent's output type.
    OutputInvalid = "output_invalid", Failed;
    /// The transform of a finish tool failed.
    FinishTransformFailed = "finish_transform_failed", Failed;
    /// Consecutive runs stopped in the same place without a result.
    CrashLoop = "crash_loop", Failed;
    /// The turn reached the maximum number of steps.
    StepLimit = "step_limit", LimitExceeded;
    /// The session has used up its budget.
    BudgetExceeded = "budget_exceeded", LimitExceeded;
    /// The reply was cut off at the token limit.
    MaxTokens = "max_tokens", LimitExceeded;
    /// The provider's content filter stopped the reply.
    ContentFilter = "content_filter", Failed;
    /// The model refused.
    Refusal = "refusal", Failed;
    /// The model reported an error.
    ModelError = "model_error", Failed;
    /// The model stopped for an unknown reason.
    StopReasonUnknown = "stop_reason_unknown", Failed;
    /// The agent has no tool with this name.
    ToolUnknown = "tool_unknown", NotFound;
    /// The tool existed when the call was made but no longer does.
    ToolMissing = "tool_missing", NotFound;
    /// The arguments do not match the tool's input schema.
    ToolInputInvalid = "tool_input_invalid", InvalidInput;
    /// The reply was cut off in the middle of the call.
    ToolCallTruncated = "tool_call_truncated", InvalidInput;
    /// The tool returned an error.
    ToolFailed = "tool_failed", Failed;
    /// The tool panicked.
    ToolPanicked = "tool_panicked", Internal;
    /// The tool did not finish within its timeout.
    ToolTimeout = "tool_timeout", LimitExceeded;
    /// The tool's result exceeds the size limit.
    ToolResultTooLarge = "tool_result_too_large", LimitExceeded;
    /// A hook refused the call.
    ToolRefused = "tool_refused", Failed;
    /// The call was not run.
    ToolNotRun = "tool_not_run", Cancelled;
    /// It is unknown whether the tool took effect.
    ToolOutcomeUnknown = "tool_outcome_unknown", Failed;
    /// A hook refused to continue the run.
    HookRefused = "hook_refused", Failed;
    /// A custom state does not match the agent's state type.
    StateInvalid = "state_invalid", InvalidInput;
    /// Cancelled on request.
    Cancelled = "cancelled", Cancelled;
    /// An append, message or chunk exceeds the size limit.
    TooLarge = "too_large", LimitExceeded;
    /// The store could not be reached or failed temporarily.
    StoreUnavailable = "store_unavailable", Unavailable;
    /// The store was locked by another user for too long.
    StoreBusy = "store_busy", Unavailable;
    /// The disk or quota is full.
    StoreFull = "store_full", LimitExceeded;
    /// The store is read-only.
    StoreReadOnly = "store_read_only", Unsupported;
    /// The store's data is damaged.
    StoreCorrupt = "store_corrupt", Corrupt;
    /// The file or database belongs to another program.
    StoreForeign = "store_foreign", InvalidInput;
    /// The store was written by a newer version.
    StoreNewer = "store_newer", Unsupported;
    /// The store's tables are outdated, and migrations are disabled.
    StoreOlder = "store_older", Unsupported;
    /// A request to the server has no valid credentials.
    Unauthenticated = "unauthenticated", Unauthorized;
    /// The caller is not permitted to perform the action.
    Forbidden = "forbidden", Unauthorized;
    /// The server does not accept requests with this host or origin.
    OriginRefused = "origin_refused", Unauthorized;
    /// The server has no route with this path.
    RouteNotFound = "route_not_found", NotFound;
    /// The route does not support the method of the request.
    MethodNotAllowed = "method_not_allowed", InvalidInput;
    /// The body of the request has a type that the server does not read.
    ContentTypeUnsupported = "content_type_unsupported", InvalidInput;
    /// The body of the request did not arrive in time.
    RequestTimeout = "request_timeout", Unavailable;
    /// The caller or all callers together have reached a limit of the server.
    RateLimited = "rate_limited", RateLimited;
    /// The caller has reached the maximum number of sessions.
    SessionLimit = "session_limit", LimitExceeded;
    /// The server is shutting down.
    ServerStopping = "server_stopping", Unavailable;
    /// The client could not reach the server, or the server did not answer in time.
    ServerUnreachable = "server_unreachable", Unavailable;
    /// The response is not one of an agent server.
    ServerProtocol = "server_protocol", InvalidInput;
    /// The receiver of telemetry did not accept an export.
    TelemetryFailed = "telemetry_failed", Failed;
    /// The store or executor was shut down.
    Closed = "closed", Cancelled;
    /// User code panicked.
    CodePanicked = "code_panicked", Internal;
    /// A bug in the framework.
    Internal = "internal", Internal;
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A framework error, for code to branch on ([`kind`](Error::kind), [`code`](Error::code)) and for
/// humans to read.
///
/// Message, context and source contain no content of a conversation (prompts, model text,
/// arguments, results, state, answers) and no secrets, so an error can be logged and recorded
/// anywhere. Text that may repeat content is in the [`detail`](Self::detail), which neither
/// `Display` nor `Debug` shows. `Display` does not repeat the source; error reporters walk
/// [`source`](std::error::Error::source).
///
/// # Examples
///
/// ```
/// use helix_agents_core::error::{Error, ErrorCode};
///
/// let error = Error::new(ErrorCode::SessionNotFound, "there is no session with this id")
///     .with_context("session", "ticket-7");
/// assert_eq!(error.code(), ErrorCode::SessionNotFound);
/// assert!(!error.is_retryable());
/// ```
pub struct Error {
    inner: Box<Inner>,
}

struct Inner {
    code: ErrorCode,
    message: Cow<'static, str>,
    detail: Option<String>,
    operation: Option<&'static str>,
    context: Vec<(&'static str, String)>,
    retry_after: Option<Duration>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

const _: () = {
    const fn assert_send_sync<T: Send + Sync + 'static>() {}
    assert_send_sync::<Error>();
    assert!(size_of::<Error>() == size_of::<usize>());
};

// The constructors are cold, so that the compiler moves the code of error paths away from the code that runs in every
// step: a step is limited by the instruction cache.
impl Error {
    /// Creates an error with a stable code and a message for humans.
    #[cold]
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            inner: Box::new(Inner {
                code,
                message: message.into(),
                detail: None,
                operation: None,
                context: Vec::new(),
                retry_after: None,
                source: None,
            }),
        }
    }

    /// Sets the operation that failed, as `area::verb`.
    #[cold]
    #[must_use]
    pub fn with_operation(mut self, operation: &'static str) -> Self {
        self.inner.operation = Some(operation);
        self
    }

    /// Adds context for humans, such as an id. It must not be a prompt, an argument or a secret.
    #[cold]
    #[must_use]
    pub fn with_context(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.inner.context.push((key, value.to_string()));
        self
    }

    /// Adds text that may repeat content: a provider's message, a hook's reason, a violation that
    /// quotes a value. At most [`MAX_QUOTED`] bytes are kept.
    #[cold]
    #[must_use]
    pub fn with_detail(mut self, detail: impl AsRef<str>) -> Self {
        self.inner.detail = Some(excerpt(detail.as_ref(), MAX_QUOTED).into_owned());
        self
    }

    /// Sets the error that caused this one.
    #[cold]
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// Sets how long the other side asked to wait.
    #[cold]
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.inner.retry_after = Some(wait);
        self
    }

    /// Returns the error's kind, which tells whether the caller can retry, must wait, or must
    /// change something.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.code.kind()
    }

    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.inner.code
    }

    /// Returns `true` if the unchanged operation may succeed on retry.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.kind().is_retryable()
    }

    /// Returns how long the other side asked to wait, if it did.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.inner.retry_after
    }

    /// Returns the message for humans, without code, operation and context.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// Returns the text that may repeat content. It belongs in the session's log and may be shown
    /// to users with access to the session, but not in a process log.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.inner.detail.as_deref()
    }

    /// Returns the message with the detail, for the session's log.
    #[must_use]
    pub fn in_full(&self) -> String {
        in_full(&self.inner.message, self.detail())
    }

    /// Returns the context added with [`with_context`](Self::with_context), in order.
    pub fn context(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.inner.context.iter().map(|(key, value)| (*key, value.as_str()))
    }

    /// Converts the error into the form that is kept in a session's log.
    #[must_use]
    pub fn record(&self) -> ErrorRecord {
        ErrorRecord {
            kind: self.kind(),
            code: Cow::Borrowed(self.inner.code.as_str()),
            message: self.inner.message.clone().into_owned(),
            detail: self.inner.detail.clone(),
        }
    }
}

fn in_full(message: &str, detail: Option<&str>) -> String {
    detail.map_or_else(|| message.to_owned(), |detail| format!("{message}: {detail}"))
}

/// Replaces a detail in `Debug` output.
fn bytes_of(detail: Option<&str>) -> Option<String> {
    detail.map(|detail| format!("{} bytes", detail.len()))
}

impl fmt::Debug for Error {
    /// Prints the message and its causes, which is what a `main` that returns an error shows.
    /// `{:#?}` prints the fields.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            write!(f, "{self}")?;
            let first = std::error::Error::source(self);
            let causes = std::iter::successors(first, |cause| cause.source());
            for (index, cause) in causes.enumerate() {
                write!(f, "{}    {cause}", if index == 0 { "\n\nCaused by:\n" } else { "\n" })?;
            }
            return Ok(());
        }
        let mut out = f.debug_struct("Error");
        out.field("kind", &self.kind()).field("code", &self.inner.code.as_str());
        out.field("message", &self.inner.message).field("detail", &bytes_of(self.detail()));
        out.field("operation", &self.inner.operation).field("context", &self.inner.context);
        out.field("retry_after", &self.inner.retry_after);
        // Printed as text: the fields of a driver's error may contain the values of a statement.
        let source = self.inner.source.as_deref().map(ToString::to_string);
        out.field("source", &source).finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner.code)?;
        if let Some(operation) = self.inner.operation {
            write!(f, " in {operation}")?;
        }
        write!(f, ": {}", self.inner.message)?;
        for (index, (key, value)) in self.inner.context.iter().enumerate() {
            write!(f, "{}{key}=", if index == 0 { "; " } else { ", " })?;
            // The value is untrusted, so control characters are escaped.
            for c in value.chars() {
                if c.is_control() { write!(f, "{}", c.escape_default())? } else { f.write_char(c)? }
            }
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.inner.source.as_deref()?;
        Some(source)
    }
}

#[cfg(test)]
mod tests;
