//! Problems and advice that configuration checks report, each with a remedy.
//!
//! Stores and model providers check their own configuration, so that every program reports the same
//! findings.

use std::borrow::Cow;

use serde::Serialize;

use crate::error::Error;

/// The severity of a [`Finding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Severity {
    /// A problem that prevents agents from running.
    Problem,
    /// Advice about something that may need attention.
    Advice,
}

/// A problem or advice that a check reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The stable code for programs: an [`ErrorCode`](crate::error::ErrorCode), or a code specific to the
    /// check.
    pub code: Cow<'static, str>,
    /// The severity.
    pub severity: Severity,
    /// The description for humans, without a trailing full stop.
    pub message: String,
    /// Instructions to fix it, without the commands of any particular program.
    pub remedy: Cow<'static, str>,
}

impl Finding {
    /// Creates a problem.
    pub fn problem(
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
        remedy: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (code, message, remedy) = (code.into(), message.into(), remedy.into());
        Self { code, severity: Severity::Problem, message, remedy }
    }

    /// Creates advice.
    pub fn advice(
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
        remedy: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { severity: Severity::Advice, ..Self::problem(code, message, remedy) }
    }

    /// Creates a problem from an error.
    pub fn from_error(error: &Error, remedy: impl Into<Cow<'static, str>>) -> Self {
        Self::problem(error.code().as_str(), error.message(), remedy)
    }

    /// Prefixes the message with the name of what was checked.
    #[must_use]
    pub fn with_subject(self, subject: &str) -> Self {
        Self { message: format!("{subject}: {}", self.message), ..self }
    }

    /// Returns `true` if the finding is a problem.
    #[must_use]
    pub fn is_problem(&self) -> bool {
        self.severity == Severity::Problem
    }
}

#[cfg(test)]
mod tests;
