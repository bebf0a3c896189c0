//! The error of a tool: a sentence for the model.

use std::fmt;

/// What a tool returns when it fails. The message goes to the model, so it should say what the
/// model can do about it, and hold no secret.
///
/// Every `std::error::Error` turns into one by `?`.
pub struct ToolError {
    message: String,
    retryable: bool,
}

impl ToolError {
    /// A failure that the model is told of.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), retryable: false }
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
