//! Errors about the settings of a tool.

use std::error::Error as StdError;
use std::fmt;

use helix_agents_core::error::{Error, ErrorCode};

/// The error for invalid settings of a tool, with every problem found.
///
/// `?` converts it to an [`Error`] with the code [`ToolInvalid`](ErrorCode::ToolInvalid).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError {
    tool: &'static str,
    problems: Vec<SettingProblem>,
}

/// A problem with one setting of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingProblem {
    /// The name of the setting, with the index of a list item: `zone`, `hosts/0`.
    pub setting: String,
    /// The description of the problem.
    pub message: String,
}

impl SettingsError {
    pub(crate) fn new(tool: &'static str, problems: Vec<SettingProblem>) -> Self {
        Self { tool, problems }
    }

    /// The name of the tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        self.tool
    }

    /// The problems; at least one.
    #[must_use]
    pub fn problems(&self) -> &[SettingProblem] {
        &self.problems
    }
}

impl SettingProblem {
    pub(crate) fn new(setting: impl Into<String>, message: impl Into<String>) -> Self {
        Self { setting: setting.into(), message: message.into() }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the settings of the tool `{}` are invalid", self.tool)?;
        for (number, SettingProblem { setting, message }) in self.problems.iter().enumerate() {
            write!(f, "{} {setting}: {message}", if number == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl StdError for SettingsError {}

impl From<SettingsError> for Error {
    fn from(error: SettingsError) -> Self {
        Self::new(ErrorCode::ToolInvalid, error.to_string()).with_context("tool", error.tool)
    }
}

#[cfg(test)]
mod tests;
