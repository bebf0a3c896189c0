//! How to reach one Chat Completions server.

use helix_agents_core::llm::RetryPolicy;

use super::profile::ServerProfile;
use crate::http::{HttpClient, Timeouts};
use crate::secret::ApiKey;

/// What a reply may have at most, unless told otherwise.
const MOST_REPLY_BYTES: usize = 32 * 1024 * 1024;

/// How to reach one Chat Completions server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OpenAiChatOptions {
    /// What comes before the colon in `provider:model`, and the name of its
    /// [`provider_options`](helix_agents_core::llm::LlmConfig::provider_options).
    pub name: String,
    /// The address up to and including `/v1`.
    pub base_url: String,
    /// The key, if the server wants one.
    pub api_key: Option<ApiKey>,
    /// The model of calls that name none.
    pub default_model: Option<String>,
    /// What the server can do.
    pub profile: ServerProfile,
    /// How long it may be silent.
    pub timeouts: Timeouts,
    /// The waits between attempts. Their number is the caller's:
    /// [`LlmRequest::max_retries`](helix_agents_core::llm::LlmRequest::max_retries).
    pub retry: RetryPolicy,
    /// The most bytes of one reply. Default: 32 MiB.
    pub max_reply_bytes: usize,
    /// Whether a key may go over plain HTTP to another machine.
    pub allow_http: bool,
    /// The connections to use. Default: some of its own.
    pub http: HttpClient,
}

impl OpenAiChatOptions {
    /// A server by name and address. OpenAI's own address gets OpenAI's profile, every other one
    /// that of a compatible server.
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
            max_reply_bytes: MOST_REPLY_BYTES,
            allow_http: false,
            http: HttpClient::default(),
        }
    }

    /// Sets the key.
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

    /// Says what the server can do.
    #[must_use]
    pub fn with_profile(mut self, profile: ServerProfile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets how long it may be silent.
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

    /// Sets the most bytes of one reply.
    #[must_use]
    pub fn with_max_reply_bytes(mut self, limit: usize) -> Self {
        self.max_reply_bytes = limit;
        self
    }

    /// Lets the key go over plain HTTP to another machine.
    #[must_use]
    pub fn with_allow_http(mut self) -> Self {
        self.allow_http = true;
        self
    }

    /// Shares connections with other providers.
    #[must_use]
    pub fn with_http(mut self, client: &HttpClient) -> Self {
        self.http = client.clone();
        self
    }
}
