//! What a failed attempt means: one place that turns statuses, error bodies and transport errors
//! into codes, and says whether trying again is of use.

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode};
use reqwest::StatusCode;
use reqwest::header::HeaderMap;

mod body;
mod redact;
mod retry_after;

pub(crate) use body::ProviderError;
pub(crate) use redact::Redactor;

#[cfg(test)]
mod tests;

/// Why an attempt failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// Whether the provider might answer differently; still subject to the error's own kind.
    pub(crate) again: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, again: true }
    }
}

/// Names things in the sentences of failures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) provider: &'a str,
    /// Empty for a request that is not about one.
    pub(crate) model: &'a str,
}

impl Subject<'_> {
    fn error(&self, code: ErrorCode, sentence: String) -> Error {
        let error = Error::new(code, sentence)
            .with_operation("llm::generate_step")
            .with_context("provider", self.provider);
        if self.model.is_empty() { error } else { error.with_context("model", self.model) }
    }

    /// The failure of an answer with an error status.
    pub(crate) fn status(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        redactor: &Redactor<'_>,
    ) -> Failure {
        let details = ProviderError::parse(body);
        let status = status.as_u16();
        let mut failure = self.described(status, &status.to_string(), &details, redactor);
        let asked = retry_after::of_headers(headers).or_else(|| retry_after::of_body(body));
        if let Some(wait) = asked {
            failure.error = failure.error.with_retry_after(wait);
        }
        match headers.get("x-should-retry").map(|it| it.as_bytes()) {
            Some(b"false") => failure.again = false,
            Some(b"true") if !failure.error.is_retryable() => {
                let sentence = failure.error.message().to_owned();
                let mut passing = self.error(ErrorCode::ProviderUnavailable, sentence);
                if let Some(detail) = failure.error.detail() {
                    passing = passing.with_detail(detail);
                }
                failure = Failure::from(passing);
                if let Some(wait) = asked {
                    failure.error = failure.error.with_retry_after(wait);
                }
            }
            _ => {}
        }
        failure
    }

    /// The failure of an answer that began well and reports an error in the middle.
    pub(crate) fn reported(&self, error: &str, redactor: &Redactor<'_>) -> Failure {
        let details = ProviderError::parse(error.as_bytes());
        let status = details.status.unwrap_or_else(|| details.likely_status());
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
        let Self { provider, model } = self;
        let code = code_of(status);
        let sentence = match code {
            ErrorCode::ProviderUnauthorized => {
                format!("the provider `{provider}` refused the key or its rights ({note})")
            }
            ErrorCode::ProviderRateLimited if details.is_out_of_quota() => {
                format!("the account at the provider `{provider}` is out of quota ({note})")
            }
            ErrorCode::ProviderRateLimited => {
                format!("the provider `{provider}` asks to come back later ({note})")
            }
            ErrorCode::ProviderRejected if details.is_about_the_model(status) => {
                format!("the provider `{provider}` does not serve the model `{model}` ({note})")
            }
            ErrorCode::ProviderRejected => {
                format!("the provider `{provider}` refused the request ({note})")
            }
            _ => format!("the provider `{provider}` failed ({note})"),
        };
        let mut error = self.error(code, sentence);
        // What providers say of a refused key tends to hold a part of it; what they say of a request may quote it.
        if code != ErrorCode::ProviderUnauthorized
            && let Some(message) = &details.message
        {
            let message = redactor.short(message);
            if !message.is_empty() {
                error = error.with_detail(message);
            }
        }
        if let Some(code) = details.code.as_deref().filter(|it| is_word(it)) {
            error = error.with_context("provider_code", code);
        }
        Failure { error, again: !details.is_out_of_quota() }
    }

    /// The failure to get an answer at all.
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
                format!("the connection to the provider `{provider}` broke before it answered"),
            )
        };
        // The rest of the address may hold credentials.
        Failure::from(self.error(code, sentence).with_source(error.without_url()))
    }

    /// The failure of an answer that broke off.
    pub(crate) fn cut(&self, source: Option<reqwest::Error>) -> Failure {
        let error = self.error(
            ErrorCode::ProviderStreamCut,
            format!("the provider `{}` broke off in the middle of its reply", self.provider),
        );
        Failure::from(match source {
            Some(source) => error.with_source(source.without_url()),
            None => error,
        })
    }

    /// The failure to answer in time.
    pub(crate) fn timeout(&self, what: &str, limit: Duration) -> Failure {
        Failure::from(self.error(
            ErrorCode::ProviderTimeout,
            format!("the provider `{}` sent {what} for {} ms", self.provider, limit.as_millis()),
        ))
    }

    /// The failure of an answer that is not the provider's protocol. `what` says what was wrong,
    /// without quoting it.
    pub(crate) fn protocol(&self, what: &str) -> Failure {
        Failure::from(
            self.error(
                ErrorCode::ProviderProtocol,
                format!("the provider `{}` {what}", self.provider),
            ),
        )
    }

    /// The failure of an answer over a size limit.
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

/// The table of statuses.
fn code_of(status: u16) -> ErrorCode {
    match status {
        401 | 403 => ErrorCode::ProviderUnauthorized,
        429 => ErrorCode::ProviderRateLimited,
        408 | 409 | 500.. => ErrorCode::ProviderUnavailable,
        _ => ErrorCode::ProviderRejected,
    }
}

/// Whether a provider's code is a code, not a text that could hold anything.
fn is_word(code: &str) -> bool {
    let fits = |it: char| it.is_ascii_alphanumeric() || "_-.".contains(it);
    code.len() <= 64 && code.chars().all(fits)
}

/// How long a cause may be told, in letters.
const MOST: usize = 200;

/// Where nobody was reached, and why: the host and the port, and the innermost cause.
fn whereabouts(error: &reqwest::Error) -> String {
    let mut told = String::new();
    if let Some(url) = error.url()
        && let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default())
    {
        told.push_str(&format!(" at {host}:{port}"));
    }
    let causes = std::iter::successors(std::error::Error::source(error), |it| it.source());
    if let Some(cause) = causes.last() {
        told.push_str(": ");
        told.extend(cause.to_string().chars().take(MOST));
    }
    told
}
