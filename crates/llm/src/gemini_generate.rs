//! The `generateContent` API of Gemini.

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::LlmConfig;
use reqwest::Url;
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};

use crate::capability::ModelCapabilities;
use crate::wire_format::{Call, PageEnd, RequestBody, WireFormat, provider_options};

mod message;
mod part;
mod partial_arguments;
mod reply;
mod request;
mod tools;
mod wire;

/// The `generateContent` API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GeminiGenerate;

impl WireFormat for GeminiGenerate {
    type Reply = reply::Reply;

    const API: &'static str = "gemini";
    const RESERVED_MEMBERS: &'static [&'static str] = &["contents", "systemInstruction", "tools"];

    const OPTIONS_KEY: &'static str = "gemini";

    const OUTPUT_MEMBER: Option<&'static str> = Some("generationConfig");

    const KEY_HEADER: Option<HeaderName> = Some(HeaderName::from_static("x-goog-api-key"));

    fn add_path(self, url: &mut Url) {
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("models");
        }
    }

    fn next_models_page(self, end: PageEnd) -> Option<(&'static str, String)> {
        let token = end.next_page_token.filter(|token| !token.is_empty())?;
        Some(("pageToken", token))
    }

    fn url(self, endpoint: &Url, model: &str) -> Url {
        let mut url = endpoint.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.push(&format!("{model}:streamGenerateContent"));
        }
        url.query_pairs_mut().append_pair("alt", "sse");
        url
    }

    fn add_headers(self, _: &LlmConfig, _: Option<&ModelCapabilities>, headers: &mut HeaderMap) {
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    }

    fn check(self, provider: &str, config: &LlmConfig) -> Result<()> {
        let option =
            |name: &str| provider_options::<Self>(config, provider).find(|(key, _)| *key == name);
        match option(request::CACHED_CONTENT) {
            Some((key, value)) if !value.is_string() => {
                Err(Error::new(ErrorCode::ConfigInvalid, format!("`{key}` is not a text")))
            }
            Some((key, _)) if option("toolConfig").is_some() => Err(Error::new(
                ErrorCode::ConfigInvalid,
                format!(
                    "provider options must not set `toolConfig` together with `{key}`, which contains the tools"
                ),
            )),
            _ => Ok(()),
        }
    }

    fn check_call(self, call: &Call<'_>) -> Result<()> {
        let is_rejected = call.request.output_schema.is_some()
            && !call.request.tools.is_empty()
            && call.capabilities.is_some_and(|known| !known.tools_with_schema);
        if is_rejected {
            return Err(Error::new(
                ErrorCode::ConfigInvalid,
                format!(
                    "the model `{}` accepts either tools or the schema of an output; remove `native_output`",
                    call.model
                ),
            ));
        }
        Ok(())
    }

    fn assemble(self, call: &Call<'_>) -> RequestBody {
        request::assemble(call)
    }
}
