//! What is wrong, or may be, and what to do about it.

use helix_agents::error::{Error, ErrorCode};
use serde::Serialize;

/// One thing that was found.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Finding {
    /// Stable, for programs: an error's code, or one of this command's own.
    code: &'static str,
    /// What it is.
    pub(super) message: String,
    /// What to do about it.
    pub(super) remedy: String,
}

/// All that was found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) advice: Vec<Finding>,
    pub(super) problems: Vec<Finding>,
}

impl Findings {
    /// Something has to be mended before agents run.
    pub(super) fn problem(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.problems.push(Finding { code, message: message.into(), remedy: remedy.into() });
    }

    /// Something may be worth a look.
    pub(super) fn advise(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.advice.push(Finding { code, message: message.into(), remedy: remedy.into() });
    }
}

/// An error as it stands in the report, beside what it is about.
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

/// What to do when a provider does not answer as it should.
pub(super) fn remedy_of_provider(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::ProviderUnauthorized => "check its key: the variable may hold an old one",
        ErrorCode::ProviderUnavailable | ErrorCode::ProviderTimeout => {
            "start the server, or correct its address (`base_url`, OPENAI_BASE_URL)"
        }
        ErrorCode::ProviderRateLimited => "wait, or look at the account's quota",
        ErrorCode::ConfigInvalid => "set the variable, or take the provider out of helix.toml",
        _ => "check that its address ends where its interface begins, mostly in `/v1`",
    }
}

/// What to do when the database cannot be used.
pub(super) fn remedy_of_database(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::StoreForeign => "name another file with --db or HELIX_DB",
        ErrorCode::StoreNewer => "upgrade helix, or name another file with --db or HELIX_DB",
        ErrorCode::StoreCorrupt => {
            "keep the file for a repair or take it from a backup, and name another one with --db or \
             HELIX_DB"
        }
        ErrorCode::StoreReadOnly => {
            "make the file and its folder writable, or name another file with --db or HELIX_DB"
        }
        ErrorCode::StoreBusy => "another process holds the file: try again when it is done",
        ErrorCode::ConfigInvalid => "name a file in a folder that exists with --db or HELIX_DB",
        _ => "look at the disk, or name another file with --db or HELIX_DB",
    }
}
