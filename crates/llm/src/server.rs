//! A model server: its address, its key, and the calls to it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use futures_util::future::BoxFuture;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink};
use helix_agents_core::message::Media;
use reqwest::header::{AUTHORIZATION, Entry, HeaderName, HeaderValue, InvalidHeaderValue};
use reqwest::{Method, Request, Url};
use tokio_util::sync::CancellationToken;

use crate::attempt::{Attempt, Reading};
use crate::capability::ModelCapabilities;
use crate::failure::{FailedAttempt, Failure, Redactor, Secrets, Subject};
use crate::http::{Route, parse_base_url, public_url};
use crate::reply_data;
use crate::retry::{cancelled, rejected_before_request, with_retries};
use crate::secret::ApiKey;
use crate::wire_format::{Call, WireFormat};

/// Runs code with the wire format of a server.
macro_rules! with_format {
    ($api:expr, $format:ident => $run:expr) => {
        match $api {
            $crate::server::ApiFormat::ChatCompletions(profile) => {
                let $format = $crate::openai_chat::OpenAiChat(profile);
                $run
            }
            $crate::server::ApiFormat::OpenAiResponses => {
                let $format = $crate::openai_responses::OpenAiResponses;
                $run
            }
            $crate::server::ApiFormat::GeminiGenerate => {
                let $format = $crate::gemini_generate::GeminiGenerate;
                $run
            }
            $crate::server::ApiFormat::AnthropicMessages => {
                let $format = $crate::anthropic_messages::AnthropicMessages;
                $run
            }
            $crate::server::ApiFormat::BedrockConverse => {
                let $format = $crate::bedrock_converse::BedrockConverse;
                $run
            }
        }
    };
}

mod authenticator;
mod embeddings;
#[cfg(feature = "gcp-auth")]
mod google_tokens;
mod hosting;
mod models;
mod options;
mod provider_name;
mod settings;
mod signing;

pub use authenticator::Authenticator;
pub use embeddings::ServerEmbedder;
#[cfg(feature = "gcp-auth")]
pub use google_tokens::GoogleTokens;
pub use hosting::{Hosting, KeyHeader};
pub use options::{ApiFormat, ModelServerOptions};
use provider_name::provider_name;
#[cfg(feature = "sigv4")]
pub use signing::AwsCredentials;

/// Calls a model server. Implements [`LlmAdapter`]. Cheap to clone.
///
/// Calls are retried before the first output only. If one fails after all retries, the response is a
/// [`StepResult::Error`](helix_agents_core::step::StepResult::Error). After the first output, the adapter does not
/// retry, because the text has been delivered; the runtime may repeat the request as a new step.
///
/// # Cancel safety
/// Dropping the future of a call closes its connection. Nothing else is affected: between calls, the
/// adapter keeps only its connections, and its [`Authenticator`] the access token.
#[derive(Clone)]
pub struct ModelServer(Arc<Inner>);

impl fmt::Debug for ModelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelServer").field("options", self.options()).finish_non_exhaustive()
    }
}

struct Inner {
    options: ModelServerOptions,
    /// The owner of the data in replies.
    data_owner: Arc<str>,
    base_url: Url,
    /// The address of model calls.
    endpoint: Url,
    route: Route,
    /// The header with the key.
    key_header: Option<(HeaderName, HeaderValue)>,
}

impl ModelServer {
    /// Creates the adapter for a server. No connection is made yet.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if the options are not usable, or if credentials would be sent over plain
    /// HTTP to another machine.
    pub fn new(options: ModelServerOptions) -> Result<Self> {
        let invalid = |problem: String| Err(Error::new(ErrorCode::ConfigInvalid, problem));
        let name = &options.name;
        if name.is_empty()
            || name.contains(|character: char| character == ':' || character.is_whitespace())
        {
            return invalid(format!("the provider name `{name}` must be one word without a colon"));
        }
        let is_chat = matches!(options.format, ApiFormat::ChatCompletions(_));
        if matches!(options.hosting, Hosting::AzureDeployments { .. }) && !is_chat {
            return invalid(format!(
                "the provider `{name}` has a dated version of Azure OpenAI, which serves only Chat Completions"
            ));
        }
        let (base_url, route) = parse_base_url(&options.base_url, name)?;
        options.check_signing()?;
        // Access tokens and signatures replace the key.
        let has_tokens = options.authenticator.is_some() || options.signs();
        let key = options.api_key.as_ref().filter(|key| !has_tokens && !key.expose().is_empty());
        if (has_tokens || key.is_some()) && route == Route::Plain && !options.allow_http {
            return invalid(format!(
                "the credentials of the provider `{name}` would be sent over plain HTTP to another machine; use \
                 https, or allow it with `allow_http`"
            ));
        }
        let header = match options.key_header {
            KeyHeader::Default => with_format!(&options.format, format => key_header_name(format)),
            KeyHeader::Bearer => None,
            KeyHeader::AzureApiKey => Some(HeaderName::from_static("api-key")),
        };
        let key_header = match key {
            None => None,
            Some(key) => match key_value(header.is_none(), key) {
                Ok(mut value) => {
                    value.set_sensitive(true);
                    Some((header.unwrap_or(AUTHORIZATION), value))
                }
                Err(_) => {
                    return invalid(format!(
                        "the key of the provider `{name}` contains characters that a key cannot contain"
                    ));
                }
            },
        };
        let mut endpoint = base_url.clone();
        with_format!(&options.format, format => format.add_path(&mut endpoint));
        let api = with_format!(&options.format, format => api_name(format));
        let data_owner = reply_data::data_owner(api, &options.name);
        let inner = Inner { options, data_owner, base_url, endpoint, route, key_header };
        Ok(Self(Arc::new(inner)))
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
    pub(crate) fn options(&self) -> &ModelServerOptions {
        &self.0.options
    }

    /// Returns `true` if requests carry a key, an access token or a signature.
    pub(crate) fn has_credentials(&self) -> bool {
        let Inner { options, key_header, .. } = &*self.0;
        key_header.is_some() || options.authenticator.is_some() || options.signs()
    }

    /// Returns the base URL without query and fragment, which could contain credentials.
    pub(crate) fn base_url(&self) -> String {
        public_url(&self.0.base_url).trim_end_matches('/').to_owned()
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

    /// Returns the capabilities of a model, after a check of the settings.
    fn capabilities(&self, model: &str, config: &LlmConfig) -> Result<Option<&ModelCapabilities>> {
        let known = self.0.options.capabilities_of(model);
        if let Some(known) = known {
            known.check(model, config)?;
        }
        Ok(known)
    }

    /// Returns an access token, if the provider has an authenticator.
    async fn token(&self, cancel: &CancellationToken) -> Result<Option<ApiKey>> {
        let Some(authenticator) = &self.0.options.authenticator else { return Ok(None) };
        self.authenticate(authenticator.token(), cancel).await?.map(Some)
    }

    /// Waits for the authenticator as long as for a response of the provider.
    async fn authenticate<T>(
        &self,
        work: impl Future<Output = T>,
        cancel: &CancellationToken,
    ) -> Result<T> {
        let limit = self.0.options.timeouts.first_byte;
        let done = cancel.run_until_cancelled(tokio::time::timeout(limit, work)).await;
        done.ok_or_else(cancelled)?.map_err(|_| self.slow_authenticator(limit))
    }

    /// Returns the error of an authenticator that did not respond in time.
    fn slow_authenticator(&self, limit: Duration) -> Error {
        let message = format!(
            "the authenticator of the provider `{}` did not respond within {} ms",
            self.name(),
            limit.as_millis()
        );
        Error::new(ErrorCode::ProviderTimeout, message)
    }

    /// Returns a new access token in place of one that the provider refused. If there is no other, returns the failure
    /// of the attempt, which is `refusal` unless the call was cancelled or a retry may help.
    async fn renewed(
        &self,
        refused: Option<&ApiKey>,
        refusal: Failure,
        cancel: &CancellationToken,
    ) -> Result<ApiKey, Failure> {
        let (Some(authenticator), Some(refused)) = (&self.0.options.authenticator, refused) else {
            return Err(refusal);
        };
        self.authenticate(authenticator.discard(refused), cancel).await?;
        let provider = self.name();
        match self.token(cancel).await {
            Ok(Some(token)) if token != *refused => {
                tracing::warn!(provider, "the access token was refused; trying a new one");
                Ok(token)
            }
            Ok(_) => Err(refusal),
            Err(error) if error.code() == ErrorCode::Cancelled || error.is_retryable() => {
                Err(error.into())
            }
            Err(error) => {
                let code = error.code().as_str();
                tracing::warn!(provider, code, "the access token was refused; there is no other");
                Err(refusal)
            }
        }
    }

    /// Returns the header with the access token or the key, if there is one.
    fn credentials(&self, token: Option<&ApiKey>) -> Result<Option<(HeaderName, HeaderValue)>> {
        match token {
            Some(token) => Ok(Some((AUTHORIZATION, token_value(token)?))),
            None => Ok(self.0.key_header.clone()),
        }
    }

    async fn call<F: WireFormat>(
        &self,
        format: F,
        request: &LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        let Inner { options, data_owner, endpoint, route, key_header, .. } = &*self.0;
        settings::check(format, request.config, &self.0)?;
        let model = self.model(request.config)?;
        let capabilities = self.capabilities(model, request.config)?;
        let client = options.http.on_this_runtime(*route)?;
        let hosting = &options.hosting;
        let provider = &options.name;
        let call = Call { provider, data_owner, model, capabilities, hosting, request };
        format.check_call(&call)?;
        let sends = |media: &Media, in_result| format.sends(media, in_result);
        if let Some(known) = capabilities
            && let Err(error) = known.check_media(model, request.messages, sends)
        {
            return Ok(rejected_before_request(error.with_context("provider", &options.name)));
        }
        let body = format.assemble(&call);
        let subject = Subject { provider: &options.name, model };
        let mut policy = options.retry;
        policy.max_retries = request.max_retries;
        let reading = Reading {
            subject,
            data_owner,
            redactor: Redactor {
                secrets: self.0.secrets(Some(request.config)),
                conversation: body.conversation(),
            },
            structured: request.output_schema.is_some(),
            messages: request.messages.len(),
        };
        let attempt = Attempt {
            timeouts: options.timeouts,
            max_reply_bytes: options.max_reply_bytes,
            streams: body.streams,
            reading,
            cancel: request.cancel,
        };
        // For all attempts of the call.
        let may_renew = AtomicBool::new(true);
        let mut response = with_retries(policy, subject, request.cancel, sink, async || {
            let mut token = self.token(request.cancel).await.map_err(FailedAttempt::early)?;
            loop {
                let mut sends_token = false;
                let sent = {
                    let url = hosting.url(&self.0.base_url, model);
                    let url = url.unwrap_or_else(|| format.url(endpoint, model));
                    let mut http = Request::new(Method::POST, url);
                    *http.headers_mut() = settings::headers(format, &call, key_header.as_ref())
                        .map_err(FailedAttempt::early)?;
                    // A header of the caller takes precedence, and then the token is not sent.
                    if let Some(token) = &token
                        && let Entry::Vacant(entry) = http.headers_mut().entry(AUTHORIZATION)
                    {
                        entry.insert(token_value(token).map_err(FailedAttempt::early)?);
                        sends_token = true;
                    }
                    *http.body_mut() = Some(body.bytes.clone().into());
                    self.0.sign(&mut http).map_err(FailedAttempt::early)?;
                    client.execute(http)
                };
                let mut attempt = attempt;
                attempt.reading.redactor.secrets.token = token.as_ref();
                let failed = match attempt.run(format.reply(), sent, sink).await {
                    Ok(response) => return Ok(response),
                    Err(failed) => failed,
                };
                let is_refusal = sends_token && !failed.delivered && failed.failure.refuses_key;
                if !is_refusal || !may_renew.swap(false, Relaxed) {
                    return Err(failed);
                }
                let FailedAttempt { failure, delivered, usage } = failed;
                // Boxed, because this is rare and would enlarge the future of every call.
                match Box::pin(self.renewed(token.as_ref(), failure, request.cancel)).await {
                    Ok(new) => token = Some(new),
                    Err(failure) => return Err(FailedAttempt { failure, delivered, usage }),
                }
            }
        })
        .await?;
        response.provider = Some(provider_name(&options.format, &options.name).into());
        response.requested = Some(model.into());
        Ok(response)
    }
}

impl LlmAdapter for ModelServer {
    // Written by hand, because an `async fn` over all formats would box a future with the size of the
    // largest one.
    fn generate_step<'server, 'request, 'sink, 'call>(
        &'server self,
        request: LlmRequest<'request>,
        sink: &'sink dyn LlmSink,
    ) -> BoxFuture<'call, Result<LlmResponse>>
    where
        'server: 'call,
        'request: 'call,
        'sink: 'call,
    {
        with_format!(&self.0.options.format, format => {
            Box::pin(async move { self.call(format, &request, sink).await })
        })
    }

    fn check(&self, config: &LlmConfig) -> Result<()> {
        self.capabilities(self.model(config)?, config)?;
        with_format!(&self.0.options.format, format => settings::check(format, config, &self.0))
    }
}

const fn api_name<F: WireFormat>(_: F) -> &'static str {
    F::API
}

/// Returns the header for the key, or `None` for the usual one.
const fn key_header_name<F: WireFormat>(_: F) -> Option<HeaderName> {
    F::KEY_HEADER
}

fn key_value(is_bearer: bool, key: &ApiKey) -> Result<HeaderValue, InvalidHeaderValue> {
    if is_bearer {
        return HeaderValue::from_str(&format!("Bearer {}", key.expose()));
    }
    HeaderValue::from_str(key.expose())
}

fn token_value(token: &ApiKey) -> Result<HeaderValue> {
    let mut value = key_value(true, token).map_err(|_| {
        let message = "the access token contains invalid characters";
        Error::new(ErrorCode::ProviderUnauthorized, message)
    })?;
    value.set_sensitive(true);
    Ok(value)
}

impl Inner {
    /// Returns `true` if a secret header would be sent in clear text.
    fn is_exposed(&self) -> bool {
        self.route == Route::Plain && !self.options.allow_http
    }

    /// Returns the secrets of a request with these settings, except for the access token.
    fn secrets<'a>(&'a self, config: Option<&'a LlmConfig>) -> Secrets<'a> {
        let options = &self.options;
        let key = options.session_token().or(options.api_key.as_ref());
        Secrets { key, token: None, config, url: Some(&self.base_url) }
    }
}
