//! The contract of a wire format: how it turns a model call into a request, and a response into a reply.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use helix_agents_core::error::Result;
use helix_agents_core::llm::{LlmConfig, LlmRequest, ThinkingAmount, ToolChoice};
use helix_agents_core::message::Media;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName};
use serde::Deserialize;

use crate::attempt::ReplyReader;
use crate::capability::ModelCapabilities;
use crate::server::Hosting;

/// Writes the requests to an API and reads its replies. One implementation per API, each in a module of its
/// own.
pub(crate) trait WireFormat: Copy + Send + Sync {
    /// The reader of its replies.
    type Reply: ReplyReader + Default;

    /// The name of the API, which marks the data that messages keep for it.
    const API: &'static str;

    /// The members of a request that provider options must not replace, because decoding, the conversation and the
    /// checks depend on them.
    const RESERVED_MEMBERS: &'static [&'static str];

    /// The key of the provider options that apply to every server of this API. Options under the provider's own name
    /// take precedence.
    const OPTIONS_KEY: &'static str;

    /// The member of a request that contains the schema of the output. Provider options must not replace it if there is a
    /// schema.
    const OUTPUT_MEMBER: Option<&'static str>;

    /// The header for the key, if it is not a bearer token in `authorization`.
    const KEY_HEADER: Option<HeaderName> = None;

    /// Adds the path of model calls to the base URL.
    fn add_path(self, url: &mut Url);

    /// Adds the path of the list of models to the base URL.
    fn add_models_path(self, url: &mut Url) {
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("models");
        }
    }

    /// Returns the URL of a call to a model. `endpoint` is the base URL with the path that [`add_path`](Self::add_path)
    /// added.
    fn url(self, endpoint: &Url, _model: &str) -> Url {
        endpoint.clone()
    }

    /// Adds the headers that the API requires. The caller's headers replace them.
    fn add_headers(
        self,
        config: &LlmConfig,
        capabilities: Option<&ModelCapabilities>,
        headers: &mut HeaderMap,
    );

    /// Returns the query parameter that requests the next page of the list of models, or `None` after the last page.
    fn next_models_page(self, _end: PageEnd) -> Option<(&'static str, String)> {
        None
    }

    /// Adds the headers that a call requires, after all others, including the caller's, have been set.
    fn complete_headers(self, _call: &Call<'_>, _headers: &mut HeaderMap) {}

    /// Rejects settings that the API does not support. `provider` is the name for error messages.
    fn check(self, provider: &str, config: &LlmConfig) -> Result<()>;

    /// Rejects calls that the API does not support.
    fn check_call(self, _call: &Call<'_>) -> Result<()> {
        Ok(())
    }

    /// Returns `true` if a request contains this file. Otherwise the model reads a note that there is one. `in_result` is
    /// `true` for a file of a tool result.
    fn sends(self, _media: &Media, _in_result: bool) -> bool {
        true
    }

    /// Writes the body of a request.
    fn assemble(self, call: &Call<'_>) -> RequestBody;

    /// Returns the reader of a reply, before any of the reply has arrived.
    fn reply(self) -> Self::Reply {
        Self::Reply::default()
    }
}

/// A model call, for which a request is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The provider's name.
    pub(crate) provider: &'a str,
    /// The [owner](crate::reply_data::data_owner) of the reply data that the provider can read.
    pub(crate) data_owner: &'a Arc<str>,
    /// The model's name as the server knows it.
    pub(crate) model: &'a str,
    /// The capabilities of the model, if it is known.
    pub(crate) capabilities: Option<&'a ModelCapabilities>,
    pub(crate) hosting: &'a Hosting,
    pub(crate) request: &'a LlmRequest<'a>,
}

/// The members of a page of the list of models that lead to the next page.
#[derive(Debug, Deserialize)]
pub(crate) struct PageEnd {
    pub(crate) has_more: Option<bool>,
    pub(crate) last_id: Option<String>,
    #[serde(rename = "nextPageToken")]
    pub(crate) next_page_token: Option<String>,
}

/// A request body, shared by all attempts of one call.
#[derive(Debug)]
pub(crate) struct RequestBody {
    pub(crate) bytes: Bytes,
    /// Whether the reply is streamed.
    pub(crate) streams: bool,
    /// The part of the body that contains the conversation.
    pub(crate) conversation: Range<usize>,
}

impl RequestBody {
    /// Returns the part of the body that contains the conversation, for redaction.
    pub(crate) fn conversation(&self) -> &[u8] {
        self.bytes.get(self.conversation.clone()).unwrap_or_default()
    }
}

impl<'a> Call<'a> {
    /// Returns the tool that the model must call, if the model supports that. For other models, a message in the
    /// transcript asks for the call.
    pub(crate) fn forced_tool(&self) -> Option<&'a str> {
        match self.request.tool_choice {
            ToolChoice::Tool(name)
                if !self.request.tools.is_empty()
                    && self.capabilities.is_none_or(|known| known.forced_tool) =>
            {
                Some(name)
            }
            _ => None,
        }
    }

    /// Returns the provider options: those under the key of the API, overridden by those under the provider's name.
    pub(crate) fn options<F: WireFormat>(
        &self,
    ) -> impl Iterator<Item = (&'a String, &'a serde_json::Value)> + use<'a, F> {
        provider_options::<F>(self.request.config, self.provider)
    }

    /// Returns the value of a provider option.
    pub(crate) fn option<F: WireFormat>(&self, key: &str) -> Option<&'a serde_json::Value> {
        self.options::<F>().find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

/// Returns `true` if the settings limit the reasoning to a number of tokens.
pub(crate) fn has_budget(config: &LlmConfig) -> bool {
    config.thinking.is_some_and(|thinking| matches!(thinking.amount, ThinkingAmount::Budget(_)))
}

/// Returns the provider options of a call.
pub(crate) fn provider_options<'a, F: WireFormat>(
    config: &'a LlmConfig,
    provider: &str,
) -> impl Iterator<Item = (&'a String, &'a serde_json::Value)> + use<'a, F> {
    let own = config.provider_options.get(provider);
    let common = config.provider_options.get(F::OPTIONS_KEY);
    let common = common.filter(|_| provider != F::OPTIONS_KEY).into_iter().flatten();
    common
        .filter(move |(key, _)| own.is_none_or(|own| !own.contains_key(*key)))
        .chain(own.into_iter().flatten())
}
