//! The classification of failed attempts: maps statuses, error bodies and transport errors to
//! codes, and decides whether a retry can help.

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::usage::Usage;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;

mod body;
mod cause;
mod redact;
mod retry_after;

pub(crate) use body::ProviderError;
pub(crate) use redact::{Redactor, Secrets};

#[cfg(test)]
mod tests;

/// The failure of an attempt.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// Whether a retry may succeed. The kind of the error must also be retryable.
    pub(crate) may_retry: bool,
    /// Whether the provider refused the key or access token itself, not its permissions.
    pub(crate) refuses_key: bool,
}

impl Failure {
    /// Returns `true` if the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        self.may_retry && self.error.is_retryable()
    }
}

impl From<Error> for Failure {
    #[cold]
    fn from(error: Error) -> Self {
        Self { error, may_retry: true, refuses_key: false }
    }
}

/// A failed attempt at a model call.
#[derive(Debug)]
pub(crate) struct FailedAttempt {
    pub(crate) failure: Failure,
    /// Whether the sink had already received data, which rules out a retry.
    pub(crate) delivered: bool,
    /// The tokens that the server reported before the failure.
    pub(crate) usage: Usage,
}

impl FailedAttempt {
    /// Creates the failure of an attempt that sent nothing.
    #[cold]
    pub(crate) fn early(error: Error) -> Self {
        Self { failure: error.into(), delivered: false, usage: Usage::default() }
    }
}

/// The provider and model that error messages name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) provider: &'a str,
    /// The model's name; empty for a request that is not about a model.
    pub(crate) model: &'a str,
}

impl Subject<'_> {
    #[cold]
    fn error(&self, code: ErrorCode, sentence: String) -> Error {
        let error = Error::new(code, sentence)
            .with_operation("llm::generate_step")
            .with_context("provider", self.provider);
        if self.model.is_empty() { error } else { error.with_context("model", self.model) }
    }

    /// Returns the failure for a response with an error status.
    #[cold]
    pub(crate) fn status(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        redactor: &Redactor<'_>,
    ) -> Failure {
        let mut details = ProviderError::parse(body);
        // Amazon names the kind of an error in a header.
        let kind = headers.get("x-amzn-errortype").and_then(|value| value.to_str().ok());
        if let (None, Some(kind)) = (&details.code, kind) {
            details.code = kind.split(':').next().map(str::to_owned);
        }
        let number = match status.as_u16() {
            400 | 401 | 403 if details.is_about_the_key() => 401,
            number => number,
        };
        let mut failure = self.described(number, &status.as_u16().to_string(), &details, redactor);
        let asked = retry_after::of_headers(headers).or_else(|| retry_after::of_body(body));
        if let Some(wait) = asked {
            failure.error = failure.error.with_retry_after(wait);
        }
        match headers.get("x-should-retry").map(|value| value.as_bytes()) {
            Some(b"false") => failure.may_retry = false,
            Some(b"true") if failure.error.is_retryable() => failure.may_retry = true,
            Some(b"true") => {
                let sentence = failure.error.message().to_owned();
                let mut passing = self.error(ErrorCode::ProviderUnavailable, sentence);
                let named = failure.error.context().find(|(name, _)| *name == PROVIDER_CODE);
                if let Some((name, value)) = named {
                    passing = passing.with_context(name, value);
                }
                if let Some(detail) = failure.error.detail() {
                    passing = passing.with_detail(detail);
                }
                if let Some(wait) = asked {
                    passing = passing.with_retry_after(wait);
                }
                failure.error = passing;
                failure.may_retry = true;
            }
            _ => {}
        }
        failure
    }

    /// Returns the failure for a response that started successfully and then reports an error.
    #[cold]
    pub(crate) fn reported(&self, error: &str, redactor: &Redactor<'_>) -> Failure {
        let details = ProviderError::parse(error.as_bytes());
        let status = match details.status {
            None | Some(400 | 401 | 403) if details.is_about_the_key() => 401,
            Some(status) => status,
            None => details.likely_status(),
        };
        let mut failure = self.described(status, "while it answered", &details, redactor);
        if let Some(wait) = retry_after::of_body(error.as_bytes()) {
            failure.error = failure.error.with_retry_after(wait);
        }
        failure
    }

    fn described(
        &self,
        status: u16,
        note: &str,
        details: &ProviderError,
        redactor: &Redactor<'_>,
    ) -> Failure {
        let is_out_of_quota = status == 402 || details.is_out_of_quota();
        let code = match self.cause(details) {
            _ if details.is_malformed_reply() => ErrorCode::ProviderProtocol,
            Some(cause) => cause,
            None if is_out_of_quota => ErrorCode::ProviderRateLimited,
            None => code_of(status),
        };
        let sentence = self.sentence(code, note, is_out_of_quota);
        let mut error = self.error(code, sentence);
        // A provider's message about a rejected key may contain part of the key, and its message
        // about a request may quote the request.
        let may_quote_key = details.may_quote_the_key()
            || status == 401
            || code == ErrorCode::ProviderCredentialsExpired
            || (code == ErrorCode::ProviderUnauthorized && status != 403);
        if !may_quote_key && let Some(message) = &details.message {
            let message = redactor.short(message);
            if !message.is_empty() {
                error = error.with_detail(message);
            }
        }
        let named = details.code.as_deref();
        if let Some(named) = named.filter(|name| is_word(name) && !redactor.has_secret(name)) {
            error = error.with_context(PROVIDER_CODE, named);
        }
        let refuses_key = match code {
            ErrorCode::ProviderCredentialsExpired => true,
            ErrorCode::ProviderUnauthorized => status == 401,
            _ => false,
        };
        Failure { error, may_retry: !is_out_of_quota, refuses_key }
    }

    /// Returns the code of the cause that the provider names, if there is one.
    fn cause(&self, details: &ProviderError) -> Option<ErrorCode> {
        let applies_without_a_model = |code: &ErrorCode| {
            !matches!(code, ErrorCode::ProviderModelNotFound | ErrorCode::MediaUnsupported)
        };
        details.cause().filter(|code| !self.model.is_empty() || applies_without_a_model(code))
    }

    fn sentence(&self, code: ErrorCode, note: &str, is_out_of_quota: bool) -> String {
        let Self { provider, model } = self;
        match code {
            ErrorCode::ProviderUnauthorized => {
                format!(
                    "the provider `{provider}` rejected the API key or its permissions ({note})"
                )
            }
            ErrorCode::ProviderCredentialsExpired => {
                format!("the key or token of the provider `{provider}` has expired ({note})")
            }
            ErrorCode::ProviderModelNotFound => format!(
                "the provider `{provider}` does not serve the model `{model}` to this account ({note})"
            ),
            ErrorCode::ProviderRegionUnsupported if model.is_empty() => {
                format!("the provider `{provider}` does not serve this region ({note})")
            }
            ErrorCode::ProviderRegionUnsupported => format!(
                "the provider `{provider}` does not serve the model `{model}` in this region ({note})"
            ),
            ErrorCode::MediaUnsupported => format!(
                "the provider `{provider}` reports that the model `{model}` does not accept an attached image or \
                 file ({note})"
            ),
            ErrorCode::ProviderRateLimited if is_out_of_quota => {
                format!(
                    "the account at the provider `{provider}` has no quota or credit left ({note})"
                )
            }
            ErrorCode::ProviderRateLimited => {
                format!("the provider `{provider}` limits the request rate ({note})")
            }
            ErrorCode::ProviderProtocol => format!("the provider `{provider}` {MALFORMED}"),
            ErrorCode::ProviderRejected => {
                format!("the provider `{provider}` rejected the request ({note})")
            }
            _ => format!("the provider `{provider}` failed ({note})"),
        }
    }

    /// Returns the failure of a request that got no response.
    #[cold]
    pub(crate) fn transport(&self, error: reqwest::Error) -> Failure {
        let provider = self.provider;
        let (code, sentence) = if error.is_timeout() {
            (
                ErrorCode::ProviderTimeout,
                format!("the provider `{provider}` did not accept the connection in time"),
            )
        } else if error.is_connect() {
            (
                ErrorCode::ProviderUnavailable,
                format!("the provider `{provider}` cannot be reached{}", whereabouts(&error)),
            )
        } else {
            (
                ErrorCode::ProviderUnavailable,
                format!("the connection to the provider `{provider}` was lost before it responded"),
            )
        };
        // The rest of the URL may contain credentials.
        Failure::from(self.error(code, sentence).with_source(error.without_url()))
    }

    /// Returns the failure of a response that ended early.
    #[cold]
    pub(crate) fn cut(&self, source: Option<reqwest::Error>) -> Failure {
        let error = self.error(
            ErrorCode::ProviderStreamCut,
            format!("the provider `{}` ended its reply before it was complete", self.provider),
        );
        Failure::from(match source {
            Some(source) => error.with_source(source.without_url()),
            None => error,
        })
    }

    /// Returns the failure of a provider that did not respond in time.
    #[cold]
    pub(crate) fn timeout(&self, what: &str, limit: Duration) -> Failure {
        Failure::from(self.error(
            ErrorCode::ProviderTimeout,
            format!("the provider `{}` sent {what} for {} ms", self.provider, limit.as_millis()),
        ))
    }

    /// Returns the failure of a response that violates the protocol. `what` describes the problem
    /// without quoting the response.
    #[cold]
    pub(crate) fn protocol(&self, what: &str) -> Failure {
        Failure::from(
            self.error(
                ErrorCode::ProviderProtocol,
                format!("the provider `{}` {what}", self.provider),
            ),
        )
    }

    /// Returns the failure of a reply whose tool call or output the model wrote in a wrong form, so
    /// that the server could not read it. `reason` is the provider's word for it.
    pub(crate) fn malformed(&self, reason: &str, redactor: &Redactor<'_>) -> Failure {
        let failure = self.protocol(MALFORMED);
        match is_word(reason) && !redactor.has_secret(reason) {
            true => Failure::from(failure.error.with_context(PROVIDER_CODE, reason)),
            false => failure,
        }
    }

    /// Returns the failure of a response that exceeds a size limit.
    #[cold]
    pub(crate) fn too_large(&self, most_bytes: usize) -> Failure {
        Failure::from(self.error(
            ErrorCode::TooLarge,
            format!(
                "the provider `{}` sent a reply of more than {most_bytes} bytes",
                self.provider
            ),
        ))
    }
}

/// The context of errors with the provider's own code.
const PROVIDER_CODE: &str = "provider_code";

/// The sentence about a reply that the provider could not read.
const MALFORMED: &str = "reports that the model wrote a malformed reply";

/// Returns the error code for an HTTP status.
fn code_of(status: u16) -> ErrorCode {
    match status {
        401 | 403 => ErrorCode::ProviderUnauthorized,
        429 => ErrorCode::ProviderRateLimited,
        501 => ErrorCode::ProviderRejected,
        // Not standard: 424 is a failure of the model (Bedrock), 498 a lack of capacity (Groq), and 499 a request that the
        // server cancelled (Gemini).
        408 | 409 | 424 | 425 | 498 | 499 | 500.. => ErrorCode::ProviderUnavailable,
        _ => ErrorCode::ProviderRejected,
    }
}

/// Returns `true` if a provider's code is a single word and not arbitrary text.
fn is_word(code: &str) -> bool {
    let fits = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
    (1..=64).contains(&code.len()) && code.chars().all(fits)
}

/// The maximum length of a cause in characters.
const MAX_CAUSE_CHARS: usize = 200;

/// Describes a failed connection: the host, the port, and the innermost cause.
fn whereabouts(error: &reqwest::Error) -> String {
    let mut description = String::new();
    if let Some(url) = error.url()
        && let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default())
    {
        description.push_str(&format!(" at {host}:{port}"));
    }
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    if let Some(cause) = causes.last() {
        description.push_str(": ");
        description.extend(cause.to_string().chars().take(MAX_CAUSE_CHARS));
    }
    description
}
