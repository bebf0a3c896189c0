//! Findings of checks: problems that have to be fixed, and advice, each with a remedy.
//!
//! Stores and model providers check their configuration and return findings, so that every program
//! reports the same ones.

use std::borrow::Cow;

use serde::Serialize;

use crate::error::Error;

/// The severity of a [`Finding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Severity {
    /// It has to be fixed before agents can run.
    Problem,
    /// It may need attention.
    Advice,
}

/// The result of a check that needs attention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The stable code, for programs: that of an error, or one of the check.
    pub code: Cow<'static, str>,
    /// The severity.
    pub severity: Severity,
    /// The description for humans, without a trailing full stop.
    pub message: String,
    /// The description of how to fix it. It names no command of a program.
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

    /// Creates the problem that an error describes.
    pub fn of_error(error: &Error, remedy: impl Into<Cow<'static, str>>) -> Self {
        Self::problem(error.code().as_str(), error.message(), remedy)
    }

    /// Returns the finding with the name of what was checked in front of its message.
    #[must_use]
    pub fn about(self, subject: &str) -> Self {
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
