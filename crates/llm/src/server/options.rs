//! The options of a model server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use helix_agents_core::llm::RetryPolicy;

use super::authenticator::Authenticator;
use super::hosting::{Hosting, KeyHeader};
#[cfg(feature = "sigv4")]
use super::signing::AwsCredentials;
use crate::capability::ModelCapabilities;
use crate::http::{HttpClient, Timeouts, public_url};
use crate::openai_chat::{ServerProfile, is_openai};
use crate::secret::ApiKey;

/// The default limit for the size of a reply.
const MAX_REPLY_BYTES: usize = 32 * 1024 * 1024;

/// The API of a model server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApiFormat {
    /// The Chat Completions API, which OpenAI and compatible servers provide.
    ChatCompletions(ServerProfile),
    /// The Responses API, which OpenAI and some compatible servers provide.
    OpenAiResponses,
    /// The `generateContent` API of Gemini.
    GeminiGenerate,
    /// The Messages API, which Anthropic and servers of its models provide.
    AnthropicMessages,
    /// The Converse API of Amazon Bedrock, which provides the models of many vendors.
    BedrockConverse,
}

impl ApiFormat {
    /// Returns the profile of a Chat Completions server, or `None` for another API.
    #[must_use]
    pub fn profile(&self) -> Option<&ServerProfile> {
        match self {
            Self::ChatCompletions(profile) => Some(profile),
            _ => None,
        }
    }

    /// Returns the name of the API in `helix.toml`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ChatCompletions(_) => "chat_completions",
            Self::OpenAiResponses => "openai_responses",
            Self::GeminiGenerate => "gemini_generate",
            Self::AnthropicMessages => "anthropic_messages",
            Self::BedrockConverse => "bedrock_converse",
        }
    }

    /// Returns the API of a known address. Every other server is taken to be compatible with Chat Completions.
    fn of_address(base_url: &str) -> Self {
        match &*host(base_url) {
            "api.anthropic.com" => Self::AnthropicMessages,
            "generativelanguage.googleapis.com" => Self::GeminiGenerate,
            host if is_openai(host) => Self::OpenAiResponses,
            host => Self::ChatCompletions(ServerProfile::of_host(host)),
        }
    }

    /// Returns Chat Completions with the profile of an address.
    pub(crate) fn chat_of_address(base_url: &str) -> Self {
        Self::ChatCompletions(ServerProfile::of_host(&host(base_url)))
    }
}

/// Returns the host of a base URL, or an empty text if it has none.
fn host(base_url: &str) -> String {
    let url = reqwest::Url::parse(base_url.trim()).ok();
    url.as_ref().and_then(reqwest::Url::host_str).unwrap_or_default().to_owned()
}

/// The options of a model server.
#[derive(Clone)]
#[non_exhaustive]
pub struct ModelServerOptions {
    /// The provider's name, which comes before the colon in `provider:model`, and the key of its
    /// [`provider_options`](helix_agents_core::llm::LlmConfig::provider_options).
    pub name: String,
    /// The base URL, including `/v1` if the API has it.
    pub base_url: String,
    /// The API key, if the server requires one.
    pub api_key: Option<ApiKey>,
    /// The header that carries the key.
    pub key_header: KeyHeader,
    /// Supplies access tokens that expire. If set, `api_key` is ignored.
    pub authenticator: Option<Arc<dyn Authenticator>>,
    /// The credentials that sign requests to Amazon Bedrock. If set, `api_key` is ignored.
    #[cfg(feature = "sigv4")]
    pub aws_credentials: Option<AwsCredentials>,
    /// The host of the models, if it is not the vendor of the API.
    pub hosting: Hosting,
    /// The default model, which is used by calls that name no model.
    pub default_model: Option<String>,
    /// The API of the server.
    pub format: ApiFormat,
    /// The capabilities of models by their names. They replace those of [known models](ModelCapabilities::of).
    pub model_capabilities: BTreeMap<String, ModelCapabilities>,
    /// The time to wait for a server that sends nothing.
    pub timeouts: Timeouts,
    /// The delays between retries. The number of retries of a model call is
    /// [`LlmRequest::max_retries`](helix_agents_core::llm::LlmRequest::max_retries); that of embeddings is part of this
    /// policy.
    pub retry: RetryPolicy,
    /// The maximum size of a reply in bytes. Default: 32 MiB.
    pub max_reply_bytes: usize,
    /// Whether a key may be sent over plain HTTP to another machine.
    pub allow_http: bool,
    /// The connection pool to use. Default: a new pool.
    pub http: HttpClient,
}

impl ModelServerOptions {
    /// Creates the options of a server with a name and a base URL. The URLs of Anthropic and Gemini select their APIs,
    /// and those of OpenAI select Responses. Every other URL selects Chat Completions.
    #[must_use]
    pub fn new(name: &str, base_url: &str) -> Self {
        Self {
            name: name.to_owned(),
            base_url: base_url.to_owned(),
            api_key: None,
            key_header: KeyHeader::default(),
            authenticator: None,
            #[cfg(feature = "sigv4")]
            aws_credentials: None,
            hosting: Hosting::default(),
            default_model: None,
            format: ApiFormat::of_address(base_url),
            model_capabilities: BTreeMap::new(),
            timeouts: Timeouts::default(),
            retry: RetryPolicy::default(),
            max_reply_bytes: MAX_REPLY_BYTES,
            allow_http: false,
            http: HttpClient::default(),
        }
    }

    /// Sets the API key.
    #[must_use]
    pub fn with_api_key(mut self, key: impl Into<ApiKey>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// Sets the header that carries the key.
    #[must_use]
    pub fn with_key_header(mut self, header: KeyHeader) -> Self {
        self.key_header = header;
        self
    }

    /// Sets the source of access tokens. The key is then ignored.
    #[must_use]
    pub fn with_authenticator(mut self, authenticator: impl Authenticator + 'static) -> Self {
        self.authenticator = Some(Arc::new(authenticator));
        self
    }

    /// Sets the credentials that sign requests. The key is then ignored. Only requests to Amazon Bedrock can be signed,
    /// so the options must come from one of its constructors, such as [`bedrock_claude`](Self::bedrock_claude).
    #[cfg(feature = "sigv4")]
    #[must_use]
    pub fn with_aws_credentials(mut self, credentials: AwsCredentials) -> Self {
        self.aws_credentials = Some(credentials);
        self
    }

    /// Sets the host of the models, if it is not the vendor of the API.
    #[must_use]
    pub fn with_hosting(mut self, hosting: Hosting) -> Self {
        self.hosting = hosting;
        self
    }

    /// Sets the model of calls that name none.
    #[must_use]
    pub fn with_default_model(mut self, model: &str) -> Self {
        self.default_model = Some(model.to_owned());
        self
    }

    /// Sets the API of the server.
    #[must_use]
    pub fn with_format(mut self, format: ApiFormat) -> Self {
        self.format = format;
        self
    }

    /// Selects Chat Completions with this profile. Replaces the format.
    #[must_use]
    pub fn with_profile(self, profile: ServerProfile) -> Self {
        self.with_format(ApiFormat::ChatCompletions(profile))
    }

    /// Sets the capabilities of a model, instead of those of the [known model](ModelCapabilities::of). `model` is the
    /// whole name as the server knows it.
    #[must_use]
    pub fn with_model_capabilities(mut self, model: &str, capabilities: ModelCapabilities) -> Self {
        self.model_capabilities.insert(model.to_owned(), capabilities);
        self
    }

    /// Returns the capabilities of a model, or `None` if it is unknown.
    pub(super) fn capabilities_of(&self, model: &str) -> Option<&ModelCapabilities> {
        self.model_capabilities.get(model).or_else(|| ModelCapabilities::of(model))
    }

    /// Sets how long to wait for a server that sends nothing.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets the delays between retries, and the number of retries of embeddings.
    #[must_use]
    pub fn with_retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Sets the maximum size of a reply in bytes.
    #[must_use]
    pub fn with_max_reply_bytes(mut self, limit: usize) -> Self {
        self.max_reply_bytes = limit;
        self
    }

    /// Allows a key to be sent over plain HTTP to another machine.
    #[must_use]
    pub fn with_allow_http(mut self) -> Self {
        self.allow_http = true;
        self
    }

    /// Shares a connection pool with other providers.
    #[must_use]
    pub fn with_http(mut self, client: &HttpClient) -> Self {
        self.http = client.clone();
        self
    }
}

impl fmt::Debug for ModelServerOptions {
    /// Omits the parts of the base URL that may contain credentials, and everything of the authenticator and of AWS
    /// credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base_url = reqwest::Url::parse(self.base_url.trim()).ok();
        f.debug_struct("ModelServerOptions")
            .field("name", &self.name)
            .field("base_url", &base_url.as_ref().map(public_url))
            .field("api_key", &self.api_key)
            .field("key_header", &self.key_header)
            .field("has_authenticator", &self.authenticator.is_some())
            .field("hosting", &self.hosting)
            .field("default_model", &self.default_model)
            .field("format", &self.format)
            .field("model_capabilities", &self.model_capabilities)
            .field("timeouts", &self.timeouts)
            .field("retry", &self.retry)
            .field("max_reply_bytes", &self.max_reply_bytes)
            .field("allow_http", &self.allow_http)
            .finish_non_exhaustive()
    }
}
