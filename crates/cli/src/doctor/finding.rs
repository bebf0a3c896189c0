//! Findings of the checks: problems and advice, with remedies.

use helix_agents::error::{Error, ErrorCode};
use serde::Serialize;

/// A finding.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Finding {
    /// A stable code for programs: an error code, or a code of this command.
    code: &'static str,
    /// A description of the finding.
    pub(super) message: String,
    /// How to fix it.
    pub(super) remedy: String,
}

/// All findings.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) advice: Vec<Finding>,
    pub(super) problems: Vec<Finding>,
}

impl Findings {
    /// Adds a problem that has to be fixed before agents can run.
    pub(super) fn problem(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.problems.push(Finding { code, message: message.into(), remedy: remedy.into() });
    }

    /// Adds advice.
    pub(super) fn advise(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.advice.push(Finding { code, message: message.into(), remedy: remedy.into() });
    }
}

/// An error in the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Failed {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl From<&Error> for Failed {
    fn from(error: &Error) -> Self {
        Self { code: error.code().as_str(), message: error.message().to_owned() }
    }
}

/// The remedy for a provider error.
pub(super) fn remedy_of_provider(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::ProviderUnauthorized => "check its API key: the variable may hold an old one",
        ErrorCode::ProviderUnavailable | ErrorCode::ProviderTimeout => {
            "start the server, or correct its URL (`base_url`, OPENAI_BASE_URL)"
        }
        ErrorCode::ProviderRateLimited => "wait, or check the account's quota",
        ErrorCode::ConfigInvalid => "set the variable, or remove the provider from helix.toml",
        _ => "check that its URL is the root of the API, which usually ends in `/v1`",
    }
}

/// The remedy for a database error.
pub(super) fn remedy_of_database(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::StoreForeign => "choose another file with --db or HELIX_DB",
        ErrorCode::StoreNewer => "upgrade helix, or choose another file with --db or HELIX_DB",
        ErrorCode::StoreCorrupt => {
            "restore the file from a backup or keep it for a repair, and choose another one with --db \
             or HELIX_DB"
        }
        ErrorCode::StoreReadOnly => {
            "make the file and its folder writable, or choose another file with --db or HELIX_DB"
        }
        ErrorCode::StoreBusy => "another process has locked the file: try again when it is done",
        ErrorCode::ConfigInvalid => "choose a file in an existing folder with --db or HELIX_DB",
        _ => "check the disk, or choose another file with --db or HELIX_DB",
    }
}
