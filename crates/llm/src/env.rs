//! The environment variables that this crate reads, all in one place.

/// One environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvVar {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// The first version that reads it.
    pub since: &'static str,
}

/// The key of the provider `openai`.
pub const OPENAI_API_KEY: EnvVar =
    EnvVar { name: "OPENAI_API_KEY", doc: "The key of the provider `openai`.", since: "0.1.0" };

/// Where the provider `openai` is, if not at OpenAI.
pub const OPENAI_BASE_URL: EnvVar = EnvVar {
    name: "OPENAI_BASE_URL",
    doc: "The address of the provider `openai` up to and including `/v1`, if it is not OpenAI itself.",
    since: "0.1.0",
};

/// All of them. Others are read only where `helix.toml` names them in `api_key_env`.
pub const ALL: &[EnvVar] = &[OPENAI_API_KEY, OPENAI_BASE_URL];
