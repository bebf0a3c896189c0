//! The texts of errors for users of a front end.

use helix_agents_core::error::ErrorRecord;

/// The errors whose messages are shown to users of a front end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ErrorTexts {
    /// Messages with these codes, which this framework writes: limits, denials, deadlines and refusals of models. Other
    /// messages may contain details of the server, so only their codes are shown.
    #[default]
    Own,
    /// All messages.
    All,
}

impl ErrorTexts {
    /// Returns the text for an error.
    #[must_use]
    pub fn of(self, error: &ErrorRecord) -> String {
        let is_own = matches!(
            &*error.code,
            "tool_denied"
                | "tool_unanswered"
                | "tool_not_run"
                | "tool_timeout"
                | "tool_result_too_large"
                | "tool_call_truncated"
                | "step_limit"
                | "budget_exceeded"
                | "max_tokens"
                | "content_filter"
                | "refusal"
                | "cancelled"
                | "crash_loop"
        );
        if self == Self::All || is_own {
            return error.message.clone();
        }
        match &*error.code {
            code if code.starts_with("tool_") => format!("the tool failed ({code})"),
            code => format!("the run failed ({code})"),
        }
    }
}
