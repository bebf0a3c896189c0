//! The Responses API of OpenAI.
//!
//! Requests are stateless: each contains the whole conversation, with the encrypted reasoning of earlier replies.

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::LlmConfig;
use reqwest::Url;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};

use crate::capability::ModelCapabilities;
use crate::wire_format::{Call, RequestBody, WireFormat, has_budget};

mod item;
mod message;
mod open_item;
mod reply;
mod request;
mod tools;
mod wire;

/// The Responses API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenAiResponses;

impl WireFormat for OpenAiResponses {
    type Reply = reply::Reply;

    const API: &'static str = "openai_responses";
    const RESERVED_MEMBERS: &'static [&'static str] =
        &["model", "input", "instructions", "tools", "stream", "previous_response_id"];

    const OPTIONS_KEY: &'static str = "openai";

    const OUTPUT_MEMBER: Option<&'static str> = Some("text");

    fn add_path(self, url: &mut Url) {
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("responses");
        }
    }

    fn add_headers(self, _: &LlmConfig, _: Option<&ModelCapabilities>, headers: &mut HeaderMap) {
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    }

    fn check(self, provider: &str, config: &LlmConfig) -> Result<()> {
        let unsupported = [
            ("top_k", config.top_k.is_some()),
            ("presence_penalty", config.presence_penalty.is_some()),
            ("frequency_penalty", config.frequency_penalty.is_some()),
            ("seed", config.seed.is_some()),
            ("stop_sequences", !config.stop_sequences.is_empty()),
            ("thinking.budget", has_budget(config)),
        ];
        match unsupported.into_iter().find(|(_, is_set)| *is_set) {
            Some((setting, _)) => Err(Error::new(
                ErrorCode::ConfigInvalid,
                format!("the provider `{provider}` does not support `{setting}`"),
            )),
            None => Ok(()),
        }
    }

    fn assemble(self, call: &Call<'_>) -> RequestBody {
        request::assemble(call)
    }
}
