//! Model providers for Helix Agents.
//!
//! [`OpenAiChat`] speaks the Chat Completions protocol with OpenAI and compatible servers.
//! [`ProviderRegistry`] finds the provider of a `provider:model` name and is itself an
//! [`LlmAdapter`](helix_agents_core::llm::LlmAdapter), so most programs need nothing else.
//!
//! Wire types stay private to their provider's module. Keys, URLs and prompts never appear in
//! errors, log lines or `Debug` output.

mod diagnosis;
pub mod env;
mod exchange;
mod failure;
mod http;
mod openai_chat;
mod registry;

mod retry;
mod secret;
mod sse;
mod strict;

pub use diagnosis::{
    ConfigDiagnosis, ConfigFileState, DefaultModel, ModelsDiagnosis, ProviderDiagnosis,
    VariableState,
};
pub use http::{HttpClient, Timeouts};
pub use openai_chat::{
    MaxTokensField, OpenAiChat, OpenAiChatOptions, OutputFormat, ServerCapability, ServerProfile,
};

pub use registry::{
    CONFIG_FILE, LOCAL_PORTS, LocalServer, ModelSource, ProviderInfo, ProviderKey,
    ProviderRegistry, ResolvedModel, SelectedModel,
};
pub use secret::ApiKey;
