//! The error of a client.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, ErrorKind, ErrorRecord};

#[cfg(test)]
mod tests;

/// `Result` with a [`ClientError`].
pub type Result<T, E = ClientError> = std::result::Result<T, E>;

/// The error of a request to an agent server.
///
/// It is either the error that the server reported, with its [status](Self::status), or one of the client: a connection
/// that could not be made or broke, a response that is not one of an agent server, or a request that cannot be sent.
/// The codes have pages in the guide. A code of a newer server is kept as text.
///
/// The error never contains the token.
pub struct ClientError {
    inner: Box<Inner>,
}

struct Inner {
    code: Cow<'static, str>,
    kind: ErrorKind,
    message: Cow<'static, str>,
    is_retryable: bool,
    status: Option<u16>,
    retry_after: Option<Duration>,
    request_id: Option<String>,
    /// Whether the server cannot have processed the request.
    is_unprocessed: bool,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The parts of an error that a server reports.
pub(crate) struct Reported {
    pub(crate) code: String,
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
    pub(crate) is_retryable: bool,
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) request_id: Option<String>,
}

impl ClientError {
    /// Creates an error of the client itself.
    #[cold]
    pub(crate) fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            inner: Box::new(Inner {
                code: Cow::Borrowed(code.as_str()),
                kind: code.kind(),
                message: message.into(),
                is_retryable: code.kind().is_retryable(),
                status: None,
                retry_after: None,
                request_id: None,
                is_unprocessed: false,
                source: None,
            }),
        }
    }

    /// Creates the error that a server reported.
    #[cold]
    pub(crate) fn reported(reported: Reported) -> Self {
        // These are refused before anything else happens.
        let is_unprocessed =
            reported.status == 429 || reported.code == ErrorCode::ServerStopping.as_str();
        Self {
            inner: Box::new(Inner {
                code: reported.code.into(),
                kind: reported.kind,
                message: reported.message.into(),
                is_retryable: reported.is_retryable,
                status: Some(reported.status),
                retry_after: reported.retry_after,
                request_id: reported.request_id,
                is_unprocessed,
                source: None,
            }),
        }
    }

    /// Creates the error of a connection. The source has no URL, whose query could contain an id.
    #[cold]
    pub(crate) fn transport(error: reqwest::Error) -> Self {
        let message = if error.is_timeout() {
            "the server did not answer in time"
        } else if error.is_connect() {
            "the server could not be reached"
        } else {
            "the connection to the server broke"
        };
        let is_unprocessed = error.is_connect();
        let mut created =
            Self::new(ErrorCode::ServerUnreachable, message).with_source(error.without_url());
        created.inner.is_unprocessed = is_unprocessed;
        created
    }

    #[cold]
    pub(crate) fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    #[cold]
    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.inner.status = Some(status);
        self
    }

    /// Returns the stable code: one of [`ErrorCode`], or a code of a newer server.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.inner.code
    }

    /// Returns `true` if the error has this code.
    #[must_use]
    pub fn is(&self, code: ErrorCode) -> bool {
        self.inner.code == code.as_str()
    }

    /// Returns the kind, which tells how to react.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Returns the message for humans.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// Returns `true` if the unchanged request may succeed later. The client has already repeated it within its limits,
    /// unless a repetition could take effect twice.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.inner.is_retryable
    }

    /// Returns the HTTP status, if the server responded.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.inner.status
    }

    /// Returns the delay that the server asked for.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.inner.retry_after
    }

    /// Returns the id under which the server's log has the cause of an internal error.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.inner.request_id.as_deref()
    }

    /// Returns `true` if the server cannot have processed the request, so that it can be repeated whatever it does.
    pub(crate) fn is_unprocessed(&self) -> bool {
        self.inner.is_unprocessed
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.inner.code, self.inner.message)?;
        if let Some(status) = self.inner.status {
            write!(f, "; status={status}")?;
        }
        if let Some(request_id) = &self.inner.request_id {
            write!(f, ", request={request_id}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { code, kind, message, is_retryable, status, retry_after, request_id, .. } =
            &*self.inner;
        f.debug_struct("ClientError")
            .field("code", code)
            .field("kind", kind)
            .field("message", message)
            .field("is_retryable", is_retryable)
            .field("status", status)
            .field("retry_after", retry_after)
            .field("request_id", request_id)
            .field("source", &self.inner.source)
            .finish()
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.source.as_deref().map(|source| source as _)
    }
}

/// Keeps code, message, delay and source. The framework's error cannot have a code that this build does not know; it is
/// then `server_unreachable` if the request may be repeated, and `server_protocol` if not.
impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        let Inner {
            code,
            kind,
            message,
            is_retryable,
            status,
            retry_after,
            request_id,
            source,
            ..
        } = *error.inner;
        let fallback =
            if is_retryable { ErrorCode::ServerUnreachable } else { ErrorCode::ServerProtocol };
        let mut record = ErrorRecord::new(fallback, message);
        (record.kind, record.code) = (kind, code);
        let mut converted = record.to_error(fallback);
        if let Some(status) = status {
            converted = converted.with_context("status", status);
        }
        if let Some(request_id) = request_id {
            converted = converted.with_context("request", request_id);
        }
        if let Some(retry_after) = retry_after {
            converted = converted.with_retry_after(retry_after);
        }
        match source {
            Some(source) => converted.with_source(source),
            None => converted,
        }
    }
}
