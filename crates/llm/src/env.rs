//! The environment variables that this crate reads, all in one place.

use std::ffi::OsString;

/// One environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvVar {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// The first version that reads it.
    pub since: &'static str,
    /// Whether its value may hold a key, and is not to be shown.
    pub is_secret: bool,
}

impl EnvVar {
    /// Its value, if it is set and not empty.
    #[must_use]
    pub fn get(self) -> Option<OsString> {
        std::env::var_os(self.name).filter(|value| !value.is_empty())
    }

    /// Its value as text, likewise.
    #[must_use]
    pub fn text(self) -> Option<String> {
        self.get().map(|value| value.to_string_lossy().into_owned())
    }
}

/// The model of agents that name none.
pub const HELIX_MODEL: EnvVar = EnvVar {
    name: "HELIX_MODEL",
    doc: "The model as `provider:model`, if none is named.",
    since: "0.1.0",
    is_secret: false,
};

/// The key of the provider `openai`.
pub const OPENAI_API_KEY: EnvVar = EnvVar {
    name: "OPENAI_API_KEY",
    doc: "The key of the provider `openai`.",
    since: "0.1.0",
    is_secret: true,
};

/// Where the provider `openai` is, if not at OpenAI.
pub const OPENAI_BASE_URL: EnvVar = EnvVar {
    name: "OPENAI_BASE_URL",
    doc: "The address of the provider `openai` up to and including `/v1`, if it is not OpenAI itself.",
    since: "0.1.0",
    is_secret: true,
};

/// All of them. Others are read only where `helix.toml` names them in `api_key_env`.
pub const ALL: &[EnvVar] = &[HELIX_MODEL, OPENAI_API_KEY, OPENAI_BASE_URL];
