//! The one error type of the framework: what a caller can do about it, a stable code, and context
//! for people.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::text::{MAX_QUOTED, excerpt};

mod record;

pub use record::ErrorRecord;

/// `Result` with the framework's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a caller can do about an error. One variant per reaction, not per cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// Change the input, the definition or the configuration.
    InvalidInput,
    /// The named thing does not exist.
    NotFound,
    /// Somebody else was first; look at the present state and decide anew.
    Conflict,
    /// This run or owner was replaced; stop.
    Superseded,
    /// This backend or model cannot do it; choose another or do without.
    Unsupported,
    /// Credentials are missing or refused.
    Unauthorized,
    /// Ask again later, as told by `retry_after`.
    RateLimited,
    /// The other side is not reachable or failed for a moment; ask again.
    Unavailable,
    /// A limit that somebody set was reached.
    LimitExceeded,
    /// It was cancelled on request.
    Cancelled,
    /// What was read back is not what was written; a person has to look.
    Corrupt,
    /// A tool or the model failed in its own way; the message says how.
    Failed,
    /// A bug in this framework or in code handed to it.
    Internal,
}

impl ErrorKind {
    /// Whether asking again, unchanged, could succeed.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::RateLimited | Self::Unavailable)
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $kind:ident;)+) => {
        /// The stable name of one way to fail. Each has a page in the guide.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode { $($(#[$doc])* $variant,)+ }

        impl ErrorCode {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name as it stands in logs, in the session's log and in `--json` output.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// The kind that every error with this code has.
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
    /// An executor or provider was configured in a way that cannot work.
    ConfigInvalid = "config_invalid", InvalidInput;
    /// An id is empty, too long or reserved.
    IdInvalid = "id_invalid", InvalidInput;
    /// The input of an operation cannot be used.
    InputInvalid = "input_invalid", InvalidInput;
    /// No provider serves the model that was named.
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
    /// The session has a live run.
    AlreadyRunning = "already_running", Conflict;
    /// Another caller resumed the session first.
    AlreadyResumed = "already_resumed", Conflict;
    /// The last turn is complete: there is nothing to resume.
    NothingToResume = "nothing_to_resume", Conflict;
    /// The last run stopped without ending; it has to be resumed before a new turn.
    RunUnfinished = "run_unfinished", Conflict;
    /// The session belongs to another agent.
    AgentMismatch = "agent_mismatch", Conflict;
    /// A sub-agent of the session is not done; a session does not go back behind its beginning.
    ChildrenOpen = "children_open", Conflict;
    /// The session waits for people; what it waits for has to be answered first.
    Suspended = "suspended", Conflict;
    /// No call of this id waits for people in the session or below it.
    CallNotFound = "call_not_found", NotFound;
    /// Somebody else answered the call first.
    AlreadyAnswered = "already_answered", Conflict;
    /// The answer came after the call's deadline.
    AnswerExpired = "answer_expired", Conflict;
    /// The run that the call belonged to was aborted.
    AnswerToAborted = "answer_to_aborted", Conflict;
    /// The call waits for another kind of answer.
    AnswerWrongKind = "answer_wrong_kind", InvalidInput;
    /// The answer does not fit what the call needs.
    AnswerInvalid = "answer_invalid", InvalidInput;
    /// The arguments are not those that the answer was given to.
    ArgumentsChanged = "arguments_changed", Conflict;
    /// The session is a child: its root is the one to ask.
    NotRoot = "not_root", InvalidInput;
    /// Another run owns the session now.
    Superseded = "superseded", Superseded;
    /// Chunks of a stream attempt that was discarded.
    AttemptDiscarded = "attempt_discarded", Superseded;
    /// The store no longer holds what it had acknowledged.
    HistoryLost = "history_lost", Corrupt;
    /// An event is not legal where it stands.
    LogInvalid = "log_invalid", Corrupt;
    /// The log holds an event or schema that this build does not know.
    SchemaUnknown = "schema_unknown", Unsupported;
    /// The backend does not have the capability that was asked for.
    Unsupported = "unsupported", Unsupported;
    /// The provider refused the key.
    ProviderUnauthorized = "provider_unauthorized", Unauthorized;
    /// The provider refused the request.
    ProviderRejected = "provider_rejected", InvalidInput;
    /// The provider asked to come back later.
    ProviderRateLimited = "provider_rate_limited", RateLimited;
    /// The provider could not be reached or failed.
    ProviderUnavailable = "provider_unavailable", Unavailable;
    /// The provider did not answer in time.
    ProviderTimeout = "provider_timeout", Unavailable;
    /// The provider closed the connection in the middle of a reply.
    ProviderStreamCut = "provider_stream_cut", Unavailable;
    /// The provider sent something that is not its protocol.
    ProviderProtocol = "provider_protocol", Unavailable;
    /// Whoever was asked did not approve the call.
    ToolDenied = "tool_denied", Failed;
    /// A sub-agent could not be begun.
    SubAgentDispatchFailed = "sub_agent_dispatch_failed", Failed;
    /// There is no companion as it was asked for.
    CompanionUnknown = "companion_unknown", Failed;
    /// The session has as many companions as its agent may have.
    CompanionLimit = "companion_limit", Failed;
    /// A sub-agent failed, or was aborted.
    SubAgentFailed = "sub_agent_failed", Failed;
    /// Nobody answered the call in time.
    ToolUnanswered = "tool_unanswered", Failed;
    /// The output does not fit the agent's output type.
    OutputInvalid = "output_invalid", Failed;
    /// The transform of a finish tool failed.
    FinishTransformFailed = "finish_transform_failed", Failed;
    /// Run after run stopped without a result in the same place.
    CrashLoop = "crash_loop", Failed;
    /// The run took as many steps as it may.
    StepLimit = "step_limit", LimitExceeded;
    /// The session has used as much as its budget allows.
    BudgetExceeded = "budget_exceeded", LimitExceeded;
    /// The reply was cut off at the token limit.
    MaxTokens = "max_tokens", LimitExceeded;
    /// The provider's content filter stopped the reply.
    ContentFilter = "content_filter", Failed;
    /// The model refused.
    Refusal = "refusal", Failed;
    /// The model reported an error.
    ModelError = "model_error", Failed;
    /// The model stopped for a reason that is not known.
    StopReasonUnknown = "stop_reason_unknown", Failed;
    /// The agent has no tool of that name.
    ToolUnknown = "tool_unknown", NotFound;
    /// The tool was there when the call was made and is gone.
    ToolMissing = "tool_missing", NotFound;
    /// The arguments do not fit the tool's input schema.
    ToolInputInvalid = "tool_input_invalid", InvalidInput;
    /// The reply was cut off in the middle of the call.
    ToolCallTruncated = "tool_call_truncated", InvalidInput;
    /// The tool returned an error.
    ToolFailed = "tool_failed", Failed;
    /// The tool panicked.
    ToolPanicked = "tool_panicked", Internal;
    /// The tool did not finish within its timeout.
    ToolTimeout = "tool_timeout", LimitExceeded;
    /// The tool's result is larger than allowed.
    ToolResultTooLarge = "tool_result_too_large", LimitExceeded;
    /// A hook refused the call.
    ToolRefused = "tool_refused", Failed;
    /// The call was not run.
    ToolNotRun = "tool_not_run", Cancelled;
    /// Whether the tool acted is not known.
    ToolOutcomeUnknown = "tool_outcome_unknown", Failed;
    /// A hook refused to let the run go on.
    HookRefused = "hook_refused", Failed;
    /// The custom state in the log does not fit the agent's state type.
    StateInvalid = "state_invalid", InvalidInput;
    /// Cancelled on request.
    Cancelled = "cancelled", Cancelled;
    /// One append, message or chunk is larger than the limit.
    TooLarge = "too_large", LimitExceeded;
    /// The store could not be reached or failed for a moment.
    StoreUnavailable = "store_unavailable", Unavailable;
    /// The store was locked by somebody else for too long.
    StoreBusy = "store_busy", Unavailable;
    /// The disk or quota is full.
    StoreFull = "store_full", LimitExceeded;
    /// The store cannot be written.
    StoreReadOnly = "store_read_only", Unsupported;
    /// The store's data is damaged.
    StoreCorrupt = "store_corrupt", Corrupt;
    /// The file or database belongs to another program.
    StoreForeign = "store_foreign", InvalidInput;
    /// The store was written by a newer version.
    StoreNewer = "store_newer", Unsupported;
    /// The store's tables are not up to date, and were not to be changed.
    StoreOlder = "store_older", Unsupported;
    /// The store or executor was shut down.
    Closed = "closed", Cancelled;
    /// Code that was handed to the framework panicked.
    CodePanicked = "code_panicked", Internal;
    /// A bug.
    Internal = "internal", Internal;
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What went wrong, for code to branch on ([`kind`](Error::kind), [`code`](Error::code)) and for
/// people to read.
///
/// Message, context and source hold no content of a conversation (prompts, model text, arguments, results,
/// state, answers) and no secret, so an error can be logged and recorded anywhere. Text that may repeat
/// content is the [`detail`](Self::detail), which neither `Display` nor `Debug` shows. `Display` does not
/// repeat the source; reporters walk [`source`](std::error::Error::source).
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

impl Error {
    /// An error with a stable code and a sentence for people.
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

    /// Names the operation that failed, as `area::verb`.
    #[must_use]
    pub fn with_operation(mut self, operation: &'static str) -> Self {
        self.inner.operation = Some(operation);
        self
    }

    /// Adds a fact for people, such as an id. Never a prompt, an argument or a secret.
    #[must_use]
    pub fn with_context(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.inner.context.push((key, value.to_string()));
        self
    }

    /// Adds text that may repeat content: a provider's words, a hook's reason, a violation that quotes a
    /// value. At most [`MAX_QUOTED`] bytes of it are kept.
    #[must_use]
    pub fn with_detail(mut self, detail: impl AsRef<str>) -> Self {
        self.inner.detail = Some(excerpt(detail.as_ref(), MAX_QUOTED).into_owned());
        self
    }

    /// Keeps the error that caused this one.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// How long the other side asked us to wait.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.inner.retry_after = Some(wait);
        self
    }

    /// Returns the error's kind: whether a caller may try again, has to wait, or has to change something.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.code.kind()
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.inner.code
    }

    /// Whether asking again, unchanged, could succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.kind().is_retryable()
    }

    /// How long the other side asked us to wait, if it did.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.inner.retry_after
    }

    /// The sentence for people, without code, operation and context.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The text that may repeat content. It belongs into the session's log and before the eyes of those who
    /// may read the session, not into the log of a process.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.inner.detail.as_deref()
    }

    /// The message with the detail, for the log of the session.
    #[must_use]
    pub fn in_full(&self) -> String {
        in_full(&self.inner.message, self.detail())
    }

    /// The facts added with [`with_context`](Self::with_context), in order.
    pub fn context(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.inner.context.iter().map(|(key, value)| (*key, value.as_str()))
    }

    /// The form that is kept in a session's log.
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

/// Stands in `Debug` for a detail.
fn bytes_of(detail: Option<&str>) -> Option<String> {
    detail.map(|detail| format!("{} bytes", detail.len()))
}

impl fmt::Debug for Error {
    /// For people, with the causes: this is what a `main` that returns an error shows. `{:#?}` has
    /// the fields.
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
        // As text: a driver's fields may hold the values of a statement.
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
            // Others chose it, and it has no end but that of the line.
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
