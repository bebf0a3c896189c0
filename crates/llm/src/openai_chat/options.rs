//! The options of a Chat Completions server.

use helix_agents_core::llm::RetryPolicy;

use super::profile::ServerProfile;
use crate::http::{HttpClient, Timeouts};
use crate::secret::ApiKey;

/// The default limit for the size of a reply.
const MAX_REPLY_BYTES: usize = 32 * 1024 * 1024;

/// The options of a Chat Completions server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OpenAiChatOptions {
    /// The provider's name, which comes before the colon in `provider:model`, and the key of its
    /// [`provider_options`](helix_agents_core::llm::LlmConfig::provider_options).
    pub name: String,
    /// The base URL, including `/v1`.
    pub base_url: String,
    /// The API key, if the server requires one.
    pub api_key: Option<ApiKey>,
    /// The default model, which is used by calls that name no model.
    pub default_model: Option<String>,
    /// The capabilities of the server.
    pub profile: ServerProfile,
    /// The time limits for a silent server.
    pub timeouts: Timeouts,
    /// The waits between attempts. The caller sets the number of attempts:
    /// [`LlmRequest::max_retries`](helix_agents_core::llm::LlmRequest::max_retries).
    pub retry: RetryPolicy,
    /// The maximum size of a reply in bytes. Default: 32 MiB.
    pub max_reply_bytes: usize,
    /// Whether a key may be sent over plain HTTP to another machine.
    pub allow_http: bool,
    /// The connection pool to use. Default: a new pool.
    pub http: HttpClient,
}

impl OpenAiChatOptions {
    /// Creates the options of a server with a name and a base URL. OpenAI's URL gets OpenAI's
    /// profile, and every other URL gets the profile of a compatible server.
    #[must_use]
    pub fn new(name: &str, base_url: &str) -> Self {
        Self {
            name: name.to_owned(),
            base_url: base_url.to_owned(),
            api_key: None,
            default_model: None,
            profile: ServerProfile::of_address(base_url),
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

    /// Sets the model of calls that name none.
    #[must_use]
    pub fn with_default_model(mut self, model: &str) -> Self {
        self.default_model = Some(model.to_owned());
        self
    }

    /// Sets the capabilities of the server.
    #[must_use]
    pub fn with_profile(mut self, profile: ServerProfile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets the time limits for a silent server.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets the waits between attempts.
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
