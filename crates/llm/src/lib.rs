//! Model providers for Helix Agents.
//!
//! [`ModelServer`] calls a server through its API ([`ApiFormat`]): Chat Completions, Responses, Messages,
//! `generateContent` or Converse.
//! [`ProviderRegistry`] finds the provider of a `provider:model` name and is itself an
//! [`LlmAdapter`](helix_agents_core::llm::LlmAdapter), so most programs need nothing else.
//!
//! Wire types stay private to their provider's module. Keys, URLs and prompts never appear in
//! errors, log lines or `Debug` output.

mod anthropic_messages;
mod arguments;
mod attempt;
mod bedrock_converse;
mod call_id;
mod capability;
mod claude_reasoning;
mod conversation;
mod diagnosis;
pub mod env;
mod exchange;
mod failure;
mod frames;
mod gemini_generate;
mod http;
mod json_writer;
mod openai_chat;
mod openai_responses;
mod registry;
mod reply_data;
mod response_id;
mod retry;
mod secret;
mod server;
mod strict;
mod wire_format;

pub use capability::{ModelCapabilities, Sampling};
pub use diagnosis::{
    ConfigDiagnosis, ConfigFileState, DefaultModel, ModelsDiagnosis, ProviderDiagnosis,
    VariableState,
};
pub use http::{HttpClient, Timeouts};
pub use openai_chat::{MaxTokensField, OutputFormat, ServerCapability, ServerProfile};

pub use registry::{
    CONFIG_FILE, LOCAL_PORTS, LocalServer, ModelSource, ProviderInfo, ProviderKey,
    ProviderRegistry, ProviderSource, ResolvedModel, SelectedModel,
};
pub use secret::ApiKey;
#[cfg(feature = "sigv4")]
pub use server::AwsCredentials;
#[cfg(feature = "gcp-auth")]
pub use server::GoogleTokens;
pub use server::{
    ApiFormat, Authenticator, Hosting, KeyHeader, ModelServer, ModelServerOptions, ServerEmbedder,
};
