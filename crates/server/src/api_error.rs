//! Errors of requests: the status, the code and the message that a caller receives.

use std::borrow::Cow;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, ErrorKind};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The retry delay that a response suggests if the failed operation names none.
const DEFAULT_RETRY: Duration = Duration::from_secs(1);

/// The message of an error whose cause is on the side of the server.
const INTERNAL: &str =
    "the server could not process the request; its log has the cause under the request id";

/// The message of such an error that passes.
const TEMPORARY: &str =
    "the server cannot process the request at the moment; retry it later, with the same ids";

/// The error of a request.
///
/// It keeps the framework's error for the log of the server. The caller receives its code, and its message only if the
/// caller can act on it.
#[derive(Debug)]
pub(crate) struct ApiError {
    error: Error,
    retry_after: Option<Duration>,
}

/// The body of every response with a status of 400 or more.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ErrorBody {
    /// The error.
    pub(crate) error: ErrorDetails,
}

/// The error of a request.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ErrorDetails {
    /// The stable code, which has a page in the guide.
    pub(crate) code: String,
    /// The message for humans.
    pub(crate) message: String,
    /// The kind of the code, which tells how to react.
    pub(crate) kind: String,
    /// Whether the unchanged request may succeed later.
    pub(crate) retryable: bool,
    /// The id under which the log of the server has the cause. Only in errors whose message does not state it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
}

impl ApiError {
    /// Creates an error of the server itself.
    pub(crate) fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self::from(Error::new(code, message))
    }

    /// Creates the error of a request whose content is wrong.
    pub(crate) fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::InputInvalid, message)
    }

    /// Creates the error of a session that does not exist or belongs to another caller. Both cases look the same.
    pub(crate) fn no_session() -> Self {
        Self::new(ErrorCode::SessionNotFound, "there is no session with this id")
    }

    /// Sets the delay after which a retry is useful.
    #[must_use]
    pub(crate) fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// Returns the error for the log of the server.
    pub(crate) fn cause(&self) -> &Error {
        &self.error
    }

    /// Returns the code.
    pub(crate) fn code(&self) -> ErrorCode {
        self.error.code()
    }

    /// Returns the status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        status_of(self.error.code())
    }

    /// Returns `true` if the response does not state the cause.
    pub(crate) fn is_internal(&self) -> bool {
        self.status().is_server_error() && self.code() != ErrorCode::ServerStopping
    }

    /// Returns the value of `Retry-After` in seconds, for statuses that have one.
    pub(crate) fn retry_after_seconds(&self) -> Option<u64> {
        // A quota, such as that of sessions, does not change with time.
        let is_limited =
            self.status() == StatusCode::TOO_MANY_REQUESTS && self.error.is_retryable();
        let has_header = is_limited || self.status() == StatusCode::SERVICE_UNAVAILABLE;
        has_header.then(|| {
            let delay = self.retry_after.or(self.error.retry_after()).unwrap_or(DEFAULT_RETRY);
            delay.as_millis().div_ceil(1000).max(1).try_into().unwrap_or(u64::MAX)
        })
    }

    /// Returns the body of the response. With `in_full`, an internal error states its cause.
    pub(crate) fn body(&self, request_id: &str, in_full: bool) -> ErrorBody {
        let is_hidden = self.is_internal() && !in_full;
        let message = match (is_hidden, self.error.is_retryable()) {
            (true, true) => TEMPORARY,
            (true, false) => INTERNAL,
            (false, _) => self.error.message(),
        };
        ErrorBody {
            error: ErrorDetails {
                code: self.code().as_str().to_owned(),
                message: message.to_owned(),
                kind: kind_name(self.error.kind()),
                retryable: self.error.is_retryable(),
                request_id: self.is_internal().then(|| request_id.to_owned()),
            },
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self { error, retry_after: None }
    }
}

fn kind_name(kind: ErrorKind) -> String {
    let name = serde_json::to_value(kind).unwrap_or_default();
    name.as_str().unwrap_or("internal").to_owned()
}

/// Returns the status for a code. A failure that only the operator can remedy (the provider rejects the key, an agent
/// names an unknown model) is one of the server, whatever its kind says about the operator's own call.
fn status_of(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorCode::Forbidden | ErrorCode::OriginRefused => StatusCode::FORBIDDEN,
        ErrorCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
        ErrorCode::ContentTypeUnsupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::TooLarge | ErrorCode::ToolResultTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::StoreFull => StatusCode::INSUFFICIENT_STORAGE,
        ErrorCode::Closed => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::AgentInvalid
        | ErrorCode::ToolInvalid
        | ErrorCode::ConfigInvalid
        | ErrorCode::ModelUnknown
        | ErrorCode::StoreForeign
        | ErrorCode::StoreReadOnly
        | ErrorCode::StoreNewer
        | ErrorCode::StoreOlder
        | ErrorCode::SchemaUnknown => StatusCode::INTERNAL_SERVER_ERROR,
        code if code.as_str().starts_with("provider_") => match code.kind() {
            ErrorKind::RateLimited | ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_GATEWAY,
        },
        code => status_of_kind(code.kind()),
    }
}

fn status_of_kind(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::InvalidInput => StatusCode::BAD_REQUEST,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict | ErrorKind::Superseded => StatusCode::CONFLICT,
        ErrorKind::Unsupported => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::RateLimited | ErrorKind::LimitExceeded => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests;
