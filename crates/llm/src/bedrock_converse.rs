//! The Converse API of Amazon Bedrock, for the models of all vendors.

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::LlmConfig;
use helix_agents_core::message::{Media, MediaSource};
use reqwest::Url;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};

use crate::capability::ModelCapabilities;
use crate::wire_format::{Call, RequestBody, WireFormat};

mod message;
mod reply;
mod request;
mod wire;

/// The Converse API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BedrockConverse;

impl WireFormat for BedrockConverse {
    type Reply = reply::Reply;

    const API: &'static str = "bedrock_converse";
    const RESERVED_MEMBERS: &'static [&'static str] = &["messages", "system", "toolConfig"];

    const OPTIONS_KEY: &'static str = "bedrock";

    const OUTPUT_MEMBER: Option<&'static str> = None;

    fn add_path(self, url: &mut Url) {
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("model");
        }
    }

    fn url(self, endpoint: &Url, model: &str) -> Url {
        let mut url = endpoint.clone();
        // Names of models contain colons and, as ARNs, slashes.
        let model = model.replace('%', "%25").replace(':', "%3A").replace('/', "%2F");
        let path = format!("{}/{model}/converse-stream", endpoint.path());
        url.set_path(&path);
        url
    }

    fn add_headers(self, _: &LlmConfig, _: Option<&ModelCapabilities>, headers: &mut HeaderMap) {
        let accept = "application/vnd.amazon.eventstream, application/json";
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
    }

    fn check(self, provider: &str, config: &LlmConfig) -> Result<()> {
        let unsupported = [
            ("top_k", config.top_k.is_some()),
            ("presence_penalty", config.presence_penalty.is_some()),
            ("frequency_penalty", config.frequency_penalty.is_some()),
            ("seed", config.seed.is_some()),
            // Each vendor has its own settings, which provider options can contain.
            ("thinking", config.thinking.is_some()),
            ("native_output", config.native_output),
        ];
        match unsupported.into_iter().find(|(_, is_set)| *is_set) {
            Some((setting, _)) => Err(Error::new(
                ErrorCode::ConfigInvalid,
                format!("the provider `{provider}` does not support `{setting}`"),
            )),
            None => Ok(()),
        }
    }

    /// The API takes only bytes.
    fn sends(self, media: &Media, _in_result: bool) -> bool {
        matches!(media.source, MediaSource::Base64(_))
    }

    fn assemble(self, call: &Call<'_>) -> RequestBody {
        request::assemble(call)
    }
}
