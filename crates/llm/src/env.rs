//! The environment variables that this crate reads.

use std::ffi::OsString;

/// An environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvVar {
    /// The name of the variable.
    pub name: &'static str,
    /// The purpose of the variable.
    pub doc: &'static str,
    /// The first version that reads the variable.
    pub since: &'static str,
    /// Whether the value may contain a key and must not be shown.
    pub is_secret: bool,
}

impl EnvVar {
    /// Returns the value of the variable, if it is set and not empty.
    #[must_use]
    pub fn get(self) -> Option<OsString> {
        std::env::var_os(self.name).filter(|value| !value.is_empty())
    }

    /// Returns the value as text, if it is set and not empty.
    #[must_use]
    pub fn text(self) -> Option<String> {
        self.get().map(|value| value.to_string_lossy().into_owned())
    }
}

/// The default model of agents that name none.
pub const HELIX_MODEL: EnvVar = EnvVar {
    name: "HELIX_MODEL",
    doc: "The default model, as `provider:model`.",
    since: "0.1.0",
    is_secret: false,
};

/// The API key of the provider `openai`.
pub const OPENAI_API_KEY: EnvVar = EnvVar {
    name: "OPENAI_API_KEY",
    doc: "The API key of the provider `openai`.",
    since: "0.1.0",
    is_secret: true,
};

/// The base URL of the provider `openai`, if it is not OpenAI's own.
pub const OPENAI_BASE_URL: EnvVar = EnvVar {
    name: "OPENAI_BASE_URL",
    doc: "The base URL of the provider `openai`, including `/v1`, if it is not OpenAI's own.",
    since: "0.1.0",
    is_secret: true,
};

/// The API key of the provider `anthropic`.
pub const ANTHROPIC_API_KEY: EnvVar = EnvVar {
    name: "ANTHROPIC_API_KEY",
    doc: "The API key of the provider `anthropic`.",
    since: "0.1.0",
    is_secret: true,
};

/// The base URL of the provider `anthropic`, if it is not Anthropic's own.
pub const ANTHROPIC_BASE_URL: EnvVar = EnvVar {
    name: "ANTHROPIC_BASE_URL",
    doc: "The base URL of the provider `anthropic`, if it is not Anthropic's own.",
    since: "0.1.0",
    is_secret: true,
};

/// The API key of the provider `gemini`.
pub const GEMINI_API_KEY: EnvVar = EnvVar {
    name: "GEMINI_API_KEY",
    doc: "The API key of the provider `gemini`.",
    since: "0.1.0",
    is_secret: true,
};

/// The API key of the provider `xai`.
pub const XAI_API_KEY: EnvVar = EnvVar {
    name: "XAI_API_KEY",
    doc: "The API key of the provider `xai`.",
    since: "0.1.0",
    is_secret: true,
};

/// The API key of the provider `groq`.
pub const GROQ_API_KEY: EnvVar = EnvVar {
    name: "GROQ_API_KEY",
    doc: "The API key of the provider `groq`.",
    since: "0.1.0",
    is_secret: true,
};

/// The API key of the provider `deepseek`.
pub const DEEPSEEK_API_KEY: EnvVar = EnvVar {
    name: "DEEPSEEK_API_KEY",
    doc: "The API key of the provider `deepseek`.",
    since: "0.1.0",
    is_secret: true,
};

/// The API key of the provider `mistral`.
pub const MISTRAL_API_KEY: EnvVar = EnvVar {
    name: "MISTRAL_API_KEY",
    doc: "The API key of the provider `mistral`.",
    since: "0.1.0",
    is_secret: true,
};

/// The API key of the provider `openrouter`.
pub const OPENROUTER_API_KEY: EnvVar = EnvVar {
    name: "OPENROUTER_API_KEY",
    doc: "The API key of the provider `openrouter`.",
    since: "0.1.0",
    is_secret: true,
};

/// The region of Amazon Bedrock.
pub const AWS_REGION: EnvVar = EnvVar {
    name: "AWS_REGION",
    doc: "The region of Amazon Bedrock, if helix.toml names none.",
    since: "0.1.0",
    is_secret: false,
};

/// The region of Amazon Bedrock, if [`AWS_REGION`] is not set.
pub const AWS_DEFAULT_REGION: EnvVar = EnvVar {
    name: "AWS_DEFAULT_REGION",
    doc: "The region of Amazon Bedrock, if neither helix.toml nor AWS_REGION names one.",
    since: "0.1.0",
    is_secret: false,
};

/// The id of the key that signs requests to Amazon Bedrock.
#[cfg(feature = "sigv4")]
pub const AWS_ACCESS_KEY_ID: EnvVar = EnvVar {
    name: "AWS_ACCESS_KEY_ID",
    doc: "The id of the key that signs requests to Amazon Bedrock.",
    since: "0.1.0",
    is_secret: true,
};

/// The key that signs requests to Amazon Bedrock.
#[cfg(feature = "sigv4")]
pub const AWS_SECRET_ACCESS_KEY: EnvVar = EnvVar {
    name: "AWS_SECRET_ACCESS_KEY",
    doc: "The key that signs requests to Amazon Bedrock.",
    since: "0.1.0",
    is_secret: true,
};

/// The session token of temporary AWS credentials.
#[cfg(feature = "sigv4")]
pub const AWS_SESSION_TOKEN: EnvVar = EnvVar {
    name: "AWS_SESSION_TOKEN",
    doc: "The session token of the key in AWS_ACCESS_KEY_ID, if that key is temporary.",
    since: "0.1.0",
    is_secret: true,
};

/// All variables of this crate. Other variables are read only if `helix.toml` names them in `api_key_env`. With the
/// feature `gcp-auth`, `GoogleTokens` also reads `GOOGLE_APPLICATION_CREDENTIALS`.
pub const ALL: &[EnvVar] = &[
    HELIX_MODEL,
    OPENAI_API_KEY,
    OPENAI_BASE_URL,
    ANTHROPIC_API_KEY,
    ANTHROPIC_BASE_URL,
    GEMINI_API_KEY,
    XAI_API_KEY,
    GROQ_API_KEY,
    DEEPSEEK_API_KEY,
    MISTRAL_API_KEY,
    OPENROUTER_API_KEY,
    AWS_REGION,
    AWS_DEFAULT_REGION,
    #[cfg(feature = "sigv4")]
    AWS_ACCESS_KEY_ID,
    #[cfg(feature = "sigv4")]
    AWS_SECRET_ACCESS_KEY,
    #[cfg(feature = "sigv4")]
    AWS_SESSION_TOKEN,
];
