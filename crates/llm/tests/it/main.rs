//! The public API of `helix-agents-llm`, over HTTP against scripted and independent servers.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod apis;
mod attachments;
mod cancel;
mod cassettes;
mod config;
mod config_hosting;
mod config_models;
mod converse;
mod credentials;
mod detect;
mod dialects;
mod document;
mod embeddings;
mod errors;
#[cfg(feature = "gcp-auth")]
mod google_tokens;
mod hosting;
mod info;
mod llmock;
mod malformed;
mod model_pages;
mod odd_replies;
mod overload;
mod provider_settings;
mod registry;
mod request;
mod responses_stream;
mod retry;
mod rules;
mod secrets;
#[cfg(feature = "sigv4")]
mod signing;
mod split;
mod stop_reasons;
mod stream;
mod stream_calls;
mod support;
mod thinking;
mod timeouts;
