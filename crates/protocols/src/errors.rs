//! The texts of errors for users of a front end.

use helix_agents_core::error::{ErrorCode, ErrorRecord};

/// The errors whose messages are shown to users of a front end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ErrorTexts {
    /// Messages that this framework writes. Of the [others](has_foreign_message), only the code is shown.
    #[default]
    Own,
    /// All messages.
    All,
}

impl ErrorTexts {
    /// Returns the text for an error.
    #[must_use]
    pub fn of(self, error: &ErrorRecord) -> String {
        if self == Self::All || !has_foreign_message(error) {
            return error.message.clone();
        }
        match &*error.code {
            code if code.starts_with("tool_") => format!("the tool failed ({code})"),
            code => format!("the run failed ({code})"),
        }
    }
}

/// Returns `true` if the message of an error may contain details of the server: a model provider, a tool, a hook, a
/// sub-agent or a library wrote at least a part of it, or its code is unknown.
#[must_use]
pub fn has_foreign_message(error: &ErrorRecord) -> bool {
    let known = ErrorCode::ALL.iter().find(|code| error.is(**code));
    known.is_none_or(|code| {
        let is_foreign = matches!(
            code,
            ErrorCode::HookRefused
                | ErrorCode::Internal
                | ErrorCode::SubAgentDispatchFailed
                | ErrorCode::SubAgentFailed
                | ErrorCode::ToolFailed
                | ErrorCode::ToolPanicked
                | ErrorCode::ToolRefused
        );
        is_foreign || code.as_str().starts_with("provider_")
    })
}
