//! Chat Completions: OpenAI's protocol, which most other servers also speak.

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::LlmConfig;
use helix_agents_core::message::Media;
use reqwest::Url;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};

use crate::capability::ModelCapabilities;
use crate::wire_format::{Call, RequestBody, WireFormat, has_budget};

mod calls;
mod capabilities;
mod details;
mod format;
mod json_scan;
mod message;
mod outcome;
mod profile;
mod reply;
mod request;
mod tools;
mod wire;

pub use capabilities::ServerCapability;
pub(crate) use profile::is_openai;
pub use profile::{MaxTokensField, OutputFormat, ServerProfile};

/// The Chat Completions API of a server with these capabilities.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenAiChat<'a>(pub(crate) &'a ServerProfile);

impl WireFormat for OpenAiChat<'_> {
    type Reply = reply::Reply;

    const API: &'static str = "openai_chat";
    const RESERVED_MEMBERS: &'static [&'static str] = &["model", "messages", "tools", "stream"];

    const OPTIONS_KEY: &'static str = "openai";

    const OUTPUT_MEMBER: Option<&'static str> = Some("response_format");

    fn add_path(self, url: &mut Url) {
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["chat", "completions"]);
        }
    }

    fn add_headers(self, _: &LlmConfig, _: Option<&ModelCapabilities>, headers: &mut HeaderMap) {
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    }

    fn check(self, provider: &str, config: &LlmConfig) -> Result<()> {
        if config.top_k.is_some() && !self.0.top_k {
            let message = format!("the provider `{provider}` does not support `top_k`");
            return Err(Error::new(ErrorCode::ConfigInvalid, message));
        }
        if has_budget(config) {
            let message = format!("the provider `{provider}` does not support `thinking.budget`");
            return Err(Error::new(ErrorCode::ConfigInvalid, message));
        }
        if config.native_output && self.0.output_format == OutputFormat::Unsupported {
            let message = format!(
                "the provider `{provider}` has no response format for JSON schemas; remove `native_output`"
            );
            return Err(Error::new(ErrorCode::ConfigInvalid, message));
        }
        Ok(())
    }

    fn sends(self, media: &Media, in_result: bool) -> bool {
        !in_result && message::sends(media)
    }

    fn assemble(self, call: &Call<'_>) -> RequestBody {
        request::assemble(self.0, call)
    }

    fn reply(self) -> reply::Reply {
        reply::Reply::new(self.0)
    }
}
