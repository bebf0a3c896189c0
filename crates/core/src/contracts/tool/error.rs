//! The error of a tool: a message for the model.

use std::fmt;

use crate::error::ErrorCode;

/// An error that a tool returns. The model reads the message, so it should say what the model can
/// do about the error, and must not contain secrets. The message is a tool result: it is kept in
/// the session's log and stream, but not in errors, traces or records of an engine.
///
/// Any `std::error::Error` converts into it with `?`.
pub struct ToolError {
    message: String,
    retryable: bool,
    code: ErrorCode,
}

impl ToolError {
    /// Creates an error whose message the model reads.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), retryable: false, code: ErrorCode::ToolFailed }
    }

    /// Marks the error as transient: the tool's `retry` option applies before the model sees the
    /// error.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// Returns `true` if the error is transient.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// Sets a code other than [`ErrorCode::ToolFailed`].
    pub(crate) fn with_code(mut self, code: ErrorCode) -> Self {
        self.code = code;
        self
    }

    /// Returns the error code: [`ErrorCode::ToolFailed`], unless the framework refused a request of
    /// the tool.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// Returns the message for the model.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError")
            .field("message", &self.message)
            .field("retryable", &self.retryable)
            .field("code", &self.code)
            .finish()
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}
