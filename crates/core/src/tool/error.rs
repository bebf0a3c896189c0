//! The error of a tool: a sentence for the model.

use std::fmt;

use crate::error::ErrorCode;

/// What a tool returns when it fails. The message goes to the model, so it should say what the
/// model can do about it, and hold no secret. It is a result: it stands in the session's log and stream,
/// and in no error, trace or record of an engine.
///
/// Every `std::error::Error` turns into one by `?`.
pub struct ToolError {
    message: String,
    retryable: bool,
    code: ErrorCode,
}

impl ToolError {
    /// A failure that the model is told of.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), retryable: false, code: ErrorCode::ToolFailed }
    }

    /// Marks it as passing: the tool is run again first, as its `retry` option says.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// Whether it is passing.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// Gives it another code than [`ErrorCode::ToolFailed`].
    pub(crate) fn with_code(mut self, code: ErrorCode) -> Self {
        self.code = code;
        self
    }

    /// Its code: [`ErrorCode::ToolFailed`], unless the framework refused what the tool asked for.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// The sentence for the model.
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
