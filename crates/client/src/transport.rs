//! Requests: their addresses, their repetitions, and the limits of their responses.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::error::{ErrorCode, ErrorKind};
use helix_agents_core::text::excerpt;
use helix_agents_core::trace::TraceParent;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER,
};
use reqwest::{Method, Response, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use uuid::Uuid;

use crate::error::{ClientError, Reported, Result};
use crate::limits::{Limits, Timeouts};
use crate::wire::ErrorBody;

/// The maximum size of the body of an error.
const MAX_ERROR_BODY: usize = 64 * 1024;

/// The maximum length of a server's message, in bytes.
const MAX_MESSAGE: usize = 2_000;

/// The content type of event streams.
const EVENT_STREAM: &str = "text/event-stream";

/// The header with the trace that a request belongs to.
const TRACE_PARENT: &str = "traceparent";

/// The connections of a client, with its address and limits.
#[derive(Debug)]
pub(crate) struct Transport {
    pub(crate) http: reqwest::Client,
    /// The address of the server; its path ends with a slash.
    pub(crate) base: Url,
    /// The value of the header `Authorization`, marked as sensitive.
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: Limits,
}

/// The conditions under which a request is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// After every transient failure: the server recognises the repetition, or the request changes nothing.
    Always,
    /// Only if the server cannot have processed the request.
    IfUnprocessed,
}

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    method: Method,
    /// The segments of the path, not encoded.
    path: Vec<String>,
    query: Vec<(&'static str, String)>,
    body: Option<Vec<u8>>,
    trace: Option<TraceParent>,
    repeat: Repeat,
}

impl Request {
    /// Creates a request that reads.
    pub(crate) fn get(path: &[&str]) -> Self {
        Self::new(Method::GET, path, Repeat::Always)
    }

    /// Creates a request without a body.
    pub(crate) fn new(method: Method, path: &[&str], repeat: Repeat) -> Self {
        let path = path.iter().map(|segment| (*segment).to_owned()).collect();
        Self { method, path, query: Vec::new(), body: None, trace: None, repeat }
    }

    /// Creates a request with a JSON body.
    pub(crate) fn post(path: &[&str], body: &impl Serialize, repeat: Repeat) -> Result<Self> {
        let body = serde_json::to_vec(body).map_err(|error| {
            ClientError::new(ErrorCode::InputInvalid, "the request cannot be written as JSON")
                .with_source(error)
        })?;
        Ok(Self { body: Some(body), ..Self::new(Method::POST, path, repeat) })
    }

    /// Sets the trace that the request belongs to.
    pub(crate) fn trace(self, trace: Option<TraceParent>) -> Self {
        Self { trace, ..self }
    }

    /// Adds a parameter to the query, if it has a value.
    pub(crate) fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }
}

impl Transport {
    /// Sends a request and decodes the JSON of the response.
    pub(crate) async fn json<T: DeserializeOwned>(&self, request: &Request) -> Result<T> {
        decode(&self.send(request).await?)
    }

    /// Sends a request, again after failures that permit it, and returns the body of the response.
    pub(crate) async fn send(&self, request: &Request) -> Result<Vec<u8>> {
        self.send_noting_repetition(request).await.0
    }

    /// Does the same as [`send`](Self::send), and also returns `true` if an attempt before the last one may have been
    /// processed.
    pub(crate) async fn send_noting_repetition(
        &self,
        request: &Request,
    ) -> (Result<Vec<u8>>, bool) {
        let policy = self.limits.policy(self.limits.retries);
        let (mut retry, mut is_repetition) = (0, false);
        loop {
            let attempt = timeout(self.timeouts.request, self.attempt(request));
            let error = match attempt.await.unwrap_or_else(|_| Err(late())) {
                Ok(body) => return (Ok(body), is_repetition),
                Err(error) => error,
            };
            let may_repeat = match request.repeat {
                Repeat::Always => error.is_retryable(),
                Repeat::IfUnprocessed => error.is_retryable() && error.is_unprocessed(),
            };
            let wait = policy.backoff(retry, jitter()).filter(|_| may_repeat);
            let Some(wait) = wait.and_then(|wait| self.wait(wait, &error)) else {
                return (Err(error), is_repetition);
            };
            tracing::debug!(%error, retry, "repeating a request");
            is_repetition |= !error.is_unprocessed();
            retry += 1;
            tokio::time::sleep(wait).await;
        }
    }

    /// Returns the pause before the next attempt: at least `own`, and at least what the server asked for. Returns `None`
    /// if that is too long.
    pub(crate) fn wait(&self, own: Duration, error: &ClientError) -> Option<Duration> {
        match error.retry_after() {
            Some(asked) if asked > self.limits.max_wait => None,
            Some(asked) => Some(asked.max(own)),
            None => Some(own),
        }
    }

    async fn attempt(&self, request: &Request) -> Result<Vec<u8>> {
        let response = self.open(request).await?;
        read(response, self.limits.response_bytes).await
    }

    /// Opens an event stream, with one attempt.
    pub(crate) async fn events(&self, request: &Request) -> Result<Response> {
        let opened = timeout(self.timeouts.request, self.open(request));
        let response = opened.await.unwrap_or_else(|_| Err(late()))?;
        let content_type =
            response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if content_type.is_none_or(|value| !value.starts_with(EVENT_STREAM)) {
            return Err(foreign(response.status()));
        }
        Ok(response)
    }

    /// Sends a request once and returns the response if its status is one of success.
    async fn open(&self, request: &Request) -> Result<Response> {
        let mut builder = self.http.request(request.method.clone(), self.url(request)?);
        if let Some(authorization) = &self.authorization {
            builder = builder.header(AUTHORIZATION, authorization.clone());
        }
        builder = builder.header(ACCEPT, "application/json, text/event-stream");
        if let Some(body) = &request.body {
            builder = builder.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        if let Some(trace) = &request.trace {
            builder = builder.header(TRACE_PARENT, trace.to_string());
        }
        let response = builder.send().await.map_err(ClientError::transport)?;
        if response.status().is_success() { Ok(response) } else { Err(refusal(response).await) }
    }

    fn url(&self, request: &Request) -> Result<Url> {
        let mut url = self.base.clone();
        // The parser of URLs drops these, so the request would name another session, or all of them.
        if request.path.iter().any(|segment| matches!(segment.as_str(), "" | "." | "..")) {
            return Err(ClientError::new(ErrorCode::IdInvalid, "the id is empty, `.` or `..`"));
        }
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(&request.path);
        }
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        Ok(url)
    }
}

/// Returns a random number.
pub(crate) fn jitter() -> u64 {
    Uuid::new_v4().as_u64_pair().1
}

/// Decodes JSON. The error does not quote the document, which may have content of a conversation.
pub(crate) fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let message = format!(
            "the response is not one of an agent server: its JSON has another form at line {line}, column {column}"
        );
        ClientError::new(ErrorCode::ServerProtocol, message)
    })
}

/// Reads a body up to a limit.
async fn read(mut response: Response, limit: usize) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(ClientError::transport)? {
        if body.len() + piece.len() > limit {
            let message = format!("the response has more than {limit} bytes, the client's limit");
            return Err(ClientError::new(ErrorCode::ServerProtocol, message));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// Returns the error that a response reports.
async fn refusal(response: Response) -> ClientError {
    let (status, headers) = (response.status(), response.headers().clone());
    if status.is_redirection() && headers.contains_key(LOCATION) {
        let message = "the server redirects to another address, which the client does not follow with its token";
        return ClientError::new(ErrorCode::ServerProtocol, message).with_status(status.as_u16());
    }
    // The status counts, even if the body is cut off.
    let body = read(response, MAX_ERROR_BODY).await.unwrap_or_default();
    match serde_json::from_slice::<ErrorBody>(&body) {
        Ok(ErrorBody { error }) => ClientError::reported(Reported {
            kind: error.kind(),
            code: excerpt(&error.code, MAX_MESSAGE).into_owned(),
            message: excerpt(&error.message, MAX_MESSAGE).into_owned(),
            is_retryable: error.retryable,
            status: status.as_u16(),
            retry_after: retry_after(&headers),
            request_id: error.request_id.map(|id| excerpt(&id, MAX_MESSAGE).into_owned()),
        }),
        Err(_) => of_status(status, &headers),
    }
}

/// Returns the error of a response without the body of an agent server, such as one of a proxy.
fn of_status(status: StatusCode, headers: &HeaderMap) -> ClientError {
    let is_transient = matches!(status.as_u16(), 408 | 429 | 502 | 503 | 504);
    if !is_transient {
        return foreign(status);
    }
    ClientError::reported(Reported {
        code: ErrorCode::ServerUnreachable.as_str().to_owned(),
        kind: ErrorKind::Unavailable,
        message: "a proxy answered instead of the server, which is overloaded or does not run"
            .to_owned(),
        is_retryable: true,
        status: status.as_u16(),
        retry_after: retry_after(headers),
        request_id: None,
    })
}

fn foreign(status: StatusCode) -> ClientError {
    let message = "the response is not one of an agent server";
    ClientError::new(ErrorCode::ServerProtocol, message).with_status(status.as_u16())
}

fn late() -> ClientError {
    ClientError::new(ErrorCode::ServerUnreachable, "the server did not answer in time")
}

/// Returns the delay that a response asks for, in seconds. A date is ignored.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// A transport that clones of a client share.
pub(crate) type SharedTransport = Arc<Transport>;
