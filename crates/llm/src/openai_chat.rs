//! Chat Completions: OpenAI's protocol, which most other servers also speak.

use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Method, Request, RequestBuilder, Url};

use crate::failure::Subject;
use crate::http::{Route, parse_base_url};
use crate::retry::with_retries;
use crate::secret::ApiKey;

mod attempt;
mod calls;
mod capabilities;
mod format;
mod message;
mod models;
mod object;
mod options;
mod outcome;
mod profile;
mod reply;
mod request;
mod settings;
mod tools;
mod wire;

pub use capabilities::ServerCapability;
pub use options::OpenAiChatOptions;
pub use profile::{MaxTokensField, OutputFormat, ServerProfile};

use request::RequestBody;

/// The adapter for one Chat Completions server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct OpenAiChat(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: OpenAiChatOptions,
    endpoint: Url,
    route: Route,
    authorization: Option<HeaderValue>,
}

impl OpenAiChat {
    /// Creates the adapter for a server. No connection is made yet.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if the address or the key is not usable, or if the key
    /// would be sent over plain HTTP to another machine.
    pub fn new(options: OpenAiChatOptions) -> Result<Self> {
        let invalid = |problem: String| Err(Error::new(ErrorCode::ConfigInvalid, problem));
        let name = &options.name;
        if name.is_empty()
            || name.contains(|character: char| character == ':' || character.is_whitespace())
        {
            return invalid(format!("the provider name `{name}` must be one word without a colon"));
        }
        let (mut endpoint, route) = parse_base_url(&options.base_url, name)?;
        if let Ok(mut path) = endpoint.path_segments_mut() {
            path.pop_if_empty().extend(["chat", "completions"]);
        }
        let key = options.api_key.as_ref().filter(|key| !key.expose().is_empty());
        if key.is_some() && route == Route::Plain && !options.allow_http {
            return invalid(format!(
                "the key of the provider `{name}` would be sent over plain HTTP to another machine; \
                 use https, or allow it with `allow_http`"
            ));
        }
        let authorization = match key {
            None => None,
            Some(key) => match HeaderValue::from_str(&format!("Bearer {}", key.expose())) {
                Ok(mut value) => {
                    value.set_sensitive(true);
                    Some(value)
                }
                Err(_) => {
                    return invalid(format!(
                        "the key of the provider `{name}` contains characters that a key cannot contain"
                    ));
                }
            },
        };
        Ok(Self(Arc::new(Inner { options, endpoint, route, authorization })))
    }

    /// Returns the provider's name, which comes before the colon in `provider:model`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.options.name
    }

    /// Returns the default model, which is used by calls that name no model.
    #[must_use]
    pub fn default_model(&self) -> Option<&str> {
        self.0.options.default_model.as_deref()
    }

    /// Returns the options of the adapter.
    pub(crate) fn options(&self) -> &OpenAiChatOptions {
        &self.0.options
    }

    /// Returns the base URL without query and fragment, which could contain credentials.
    pub(crate) fn base_url(&self) -> String {
        let mut url = self.0.endpoint.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.as_str().trim_end_matches("/chat/completions").to_owned()
    }

    /// Returns the model's name as the server knows it.
    fn model<'a>(&'a self, config: &'a LlmConfig) -> Result<&'a str> {
        let named = config.model.strip_prefix(self.name());
        let named = named.and_then(|rest| rest.strip_prefix(':'));
        let model = named.unwrap_or(&config.model);
        if !model.is_empty() {
            return Ok(model);
        }
        self.default_model().ok_or_else(|| {
            Error::new(
                ErrorCode::ModelUnknown,
                format!(
                    "no model is named, and the provider `{}` has no default model",
                    self.name()
                ),
            )
        })
    }
}

#[async_trait]
impl LlmAdapter for OpenAiChat {
    async fn generate_step(
        &self,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        self.check(request.config)?;
        let model = self.model(request.config)?;
        let headers = settings::headers(request.config, self.0.authorization.as_ref())?;
        let client = self.0.options.http.on_this_runtime(self.0.route)?;
        let body = RequestBody::assemble(&self.0, model, &request);
        let subject = Subject { provider: self.name(), model };
        let mut policy = self.0.options.retry;
        policy.max_retries = request.max_retries;
        with_retries(policy, subject, request.cancel, sink, || {
            let mut http = Request::new(Method::POST, self.0.endpoint.clone());
            *http.headers_mut() = headers.clone();
            *http.body_mut() = Some(body.bytes.clone().into());
            let http = RequestBuilder::from_parts(client.clone(), http);
            let attempt = attempt::Attempt::new(&self.0, subject, &request, &body);
            async move { attempt.run(http, sink).await }
        })
        .await
    }

    fn check(&self, config: &LlmConfig) -> Result<()> {
        self.model(config)?;
        settings::check(config, &self.0)
    }
}

impl Inner {
    /// Returns `true` if a secret header would be sent in clear text.
    fn is_exposed(&self) -> bool {
        self.route == Route::Plain && !self.options.allow_http
    }

    /// Returns the key, for redaction.
    fn key(&self) -> Option<&ApiKey> {
        self.options.api_key.as_ref()
    }

    fn profile(&self) -> &ServerProfile {
        &self.options.profile
    }
}

/// Returns `true` for headers that contain keys.
fn is_secret_header(name: &str) -> bool {
    name == AUTHORIZATION || ["api-key", "x-api-key", "cookie"].contains(&name)
}
