//! A decoded request and the reply of its handler, independent of the HTTP framework.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::text::excerpt;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::api_error::ApiError;
use crate::auth::Principal;
use crate::event_stream::EventStream;
use crate::service::Service;

/// The header with the session that a request concerns.
pub(crate) const SESSION_HEADER: HeaderName = HeaderName::from_static("x-session-id");

/// The header with the run that a request has started.
pub(crate) const RUN_HEADER: HeaderName = HeaderName::from_static("x-run-id");

/// The maximum length of a parser's message in an error, in bytes.
const MAX_REASON: usize = 300;

/// The handler of a route.
pub(crate) type Handler = fn(Arc<Service>, Call) -> BoxFuture<'static, Result<Reply, ApiError>>;

/// An authorized request.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) principal: Principal,
    /// The parameters of the path, decoded.
    pub(crate) path: Vec<(String, String)>,
    /// The query, not decoded.
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Call {
    /// Returns a parameter of the path.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(given, _)| given == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// Decodes the body.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| unreadable("the body of the request cannot be read", &error))
    }

    /// Decodes a body whose session is the one of the path.
    pub(crate) fn json_of_path<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        let mut body: Map<String, Value> = self.json()?;
        body.insert("sessionId".to_owned(), self.parameter("id").into());
        serde_json::from_value(body.into())
            .map_err(|error| unreadable("the body of the request cannot be read", &error))
    }

    /// Decodes the query.
    pub(crate) fn query<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        serde_urlencoded::from_str(&self.query)
            .map_err(|error| unreadable("the query of the request cannot be read", &error))
    }
}

/// The parser's message may repeat a value of the request. The caller receives it, and the log does not.
fn unreadable(what: &'static str, error: &impl ToString) -> ApiError {
    let message = format!("{what}: {}", excerpt(&error.to_string(), MAX_REASON));
    ApiError::invalid(message)
}

/// Writes a part of a response as JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    Ok(serde_json::to_vec(value).map_err(|error| {
        Error::new(ErrorCode::Internal, "a response could not be written as JSON")
            .with_source(error)
    })?)
}

/// The reply of a handler.
pub(crate) enum Reply {
    /// A JSON document.
    Json { status: StatusCode, headers: HeaderMap, body: Bytes },
    /// No content.
    Empty,
    /// An event stream.
    Events { headers: HeaderMap, stream: EventStream },
}

impl Reply {
    /// Creates a JSON reply.
    pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Result<Self, ApiError> {
        let body = to_json(body)?;
        Ok(Self::Json { status, headers: HeaderMap::new(), body: body.into() })
    }

    /// Creates a reply with an event stream.
    pub(crate) fn events(stream: EventStream) -> Self {
        Self::Events { headers: HeaderMap::new(), stream }
    }

    /// Adds a header to a reply with a body, if the value can be one.
    pub(crate) fn header(mut self, name: HeaderName, value: &str) -> Self {
        let headers = match &mut self {
            Self::Json { headers, .. } | Self::Events { headers, .. } => headers,
            Self::Empty => return self,
        };
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
        self
    }
}
