//! Model providers for Helix Agents.
//!
//! [`OpenAiChat`] speaks Chat Completions to OpenAI and to every server that imitates it.
//! [`ProviderRegistry`] finds the provider of a `provider:model` and is itself an
//! [`LlmAdapter`](helix_agents_core::llm::LlmAdapter), so that it is all a program needs.
//!
//! Wire types never leave their provider's folder. Keys, addresses and prompts are in no error,
//! log line or `Debug` output.

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

pub use http::{HttpClient, Timeouts};
pub use openai_chat::{
    MaxTokensField, OpenAiChat, OpenAiChatOptions, OutputFormat, ServerProfile, ServerTrait,
};

pub use registry::{
    CONFIG_FILE, LOCAL_PORTS, LocalServer, ProviderInfo, ProviderKey, ProviderRegistry,
    ResolvedModel,
};
pub use secret::ApiKey;
