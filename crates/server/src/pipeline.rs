//! The steps that every request passes: request id, host and origin, authorization, rate, body, handler, access log.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt as _;
use helix_agents_core::clock::IdSourceExt as _;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::trace::TraceParent;
use helix_agents_runtime::SystemIds;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tracing::Instrument as _;

use crate::api_error::ApiError;
use crate::auth::{Action, Principal, Refusal};
use crate::call::{Call, Handler, Reply};
use crate::routes::{Input, Route};
use crate::service::Service;

/// The header with the id of a request.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The maximum length of a request id that a client or a proxy has chosen, in bytes.
const MAX_REQUEST_ID: usize = 64;

/// The target of a request.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    Route(&'static Route),
    /// A path that no route has.
    NoPath,
    /// A path of the table with another method.
    NoMethod,
}

impl Target {
    fn action(self) -> Option<Action> {
        match self {
            Self::Route(route) => route.action,
            Self::NoPath | Self::NoMethod => Some(Action::UnknownRoute),
        }
    }

    /// Returns the path for the log. It has no parameters, and an unknown path could contain anything.
    fn name(self) -> &'static str {
        match self {
            Self::Route(route) => route.path,
            Self::NoPath => "(unknown path)",
            Self::NoMethod => "(unknown method)",
        }
    }
}

/// Handles a request from its head to the head of its response.
///
/// A request that changes something is handled by a task of its own, which a shutdown waits for: if the client
/// disconnects, its handler is not cut off between two of its steps.
pub(crate) async fn handle(
    service: Arc<Service>,
    target: Target,
    path: Vec<(String, String)>,
    request: Request<Body>,
) -> Response {
    let (parts, body) = request.into_parts();
    let request_id = request_id(&parts.headers);
    let mut exchange = Exchange {
        started: service.clock.monotonic(),
        request_id: request_id.clone(),
        method: parts.method.clone(),
        principal: None,
        service: Arc::clone(&service),
        target,
    };
    let admitted = caught(exchange.admit(path, parts, body)).await;
    if admitted.is_err() || !target.action().is_some_and(Action::is_write) {
        return exchange.complete(admitted).await;
    }
    let Ok(slot) = Arc::clone(&service.write_slots).try_acquire_owned() else {
        let message = "too many requests that change something are in progress";
        return exchange.complete(Err(ApiError::new(ErrorCode::RateLimited, message))).await;
    };
    let write = async move {
        let response = exchange.complete(admitted).await;
        drop(slot);
        response
    };
    service.writes.spawn(write.in_current_span()).await.unwrap_or_else(|_| {
        let error = ApiError::new(ErrorCode::ServerStopping, "the process is exiting");
        error_response(&error, &request_id, false)
    })
}

/// Returns the trace that a request belongs to. A header that cannot be parsed is ignored, as the standard requires.
fn trace_of(headers: &HeaderMap) -> Option<TraceParent> {
    headers.get("traceparent")?.to_str().ok()?.parse().ok()
}

/// A request that is handled.
struct Exchange {
    service: Arc<Service>,
    target: Target,
    request_id: String,
    method: Method,
    /// The sender, once it is known.
    principal: Option<Principal>,
    /// The time of the start, by the monotonic clock.
    started: Duration,
}

impl Exchange {
    /// Checks the request and reads its body.
    async fn admit(
        &mut self,
        path: Vec<(String, String)>,
        parts: Parts,
        body: Body,
    ) -> Result<(Handler, Call), ApiError> {
        let service = &self.service;
        let principal = match self.target.action() {
            Some(action) => {
                service.access.check(&parts)?;
                let authorized = service.authorizer.authorize(&parts, action).await;
                let sender = authorized.map_err(refusal)?.with_trace(trace_of(&parts.headers));
                self.principal = Some(sender.clone());
                check_rate(service, &sender)?;
                sender
            }
            None => anonymous()?,
        };
        let route = match self.target {
            Target::Route(route) => route,
            Target::NoPath => {
                return Err(ApiError::new(
                    ErrorCode::RouteNotFound,
                    "the server has no such route",
                ));
            }
            Target::NoMethod => {
                let message = "the route does not support this method";
                return Err(ApiError::new(ErrorCode::MethodNotAllowed, message));
            }
        };
        let body = match route.input {
            Input::Body(_) => read_body(service, &parts, body, service.limits.body_bytes).await?,
            Input::ChatBody(_) => {
                read_body(service, &parts, body, service.limits.chat_body_bytes).await?
            }
            Input::None | Input::Query(_) => Bytes::new(),
        };
        let query = parts.uri.query().unwrap_or_default().to_owned();
        Ok((route.handler, Call { principal, path, query, headers: parts.headers, body }))
    }

    /// Calls the handler of an admitted request, and logs the request.
    async fn complete(self, admitted: Result<(Handler, Call), ApiError>) -> Response {
        let Self { service, target, request_id, method, principal, started } = self;
        let handled = match admitted {
            Ok((handler, call)) => caught(handler(Arc::clone(&service), call)).await,
            Err(error) => Err(error),
        };
        let mut response = match handled.map_err(|error| service.handler_error(error)) {
            Ok(reply) => response_of(reply),
            Err(error) => {
                if error.is_internal() {
                    let cause = error.cause();
                    tracing::error!(request = %request_id, error = ?cause, "a request failed");
                }
                error_response(&error, &request_id, service.shows_internal_errors)
            }
        };
        if let Ok(value) = HeaderValue::from_str(&request_id) {
            response.headers_mut().insert(REQUEST_ID, value);
        }
        let took = service.clock.monotonic().saturating_sub(started);
        tracing::info!(
            request = %request_id,
            %method,
            path = target.name(),
            status = response.status().as_u16(),
            principal = principal.as_ref().map(Principal::id),
            millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "request"
        );
        response
    }
}

/// Returns an error if the authorizer or the handler panics. The log of the process has the message.
async fn caught<T>(step: impl Future<Output = Result<T, ApiError>>) -> Result<T, ApiError> {
    AssertUnwindSafe(step).catch_unwind().await.unwrap_or_else(|_| {
        let message = "a step of the request panicked; the process's panic hook has its message";
        Err(ApiError::new(ErrorCode::CodePanicked, message))
    })
}

/// Checks the rate of requests of a principal.
fn check_rate(service: &Service, principal: &Principal) -> Result<(), ApiError> {
    let Some(requests) = &service.requests else { return Ok(()) };
    requests.check(principal.id(), service.clock.monotonic()).map_err(|delay| {
        let message = "too many requests in a short time";
        ApiError::new(ErrorCode::RateLimited, message).retry_after(delay)
    })
}

/// Returns the principal of a route that needs no credentials.
fn anonymous() -> Result<Principal, ApiError> {
    let error = || ApiError::new(ErrorCode::Internal, "the name of open routes is invalid");
    Principal::new("-").ok_or_else(error)
}

fn refusal(refusal: Refusal) -> ApiError {
    let code = match refusal {
        Refusal::Unauthenticated => ErrorCode::Unauthenticated,
        Refusal::Forbidden => ErrorCode::Forbidden,
        Refusal::Unavailable => ErrorCode::StoreUnavailable,
    };
    ApiError::new(code, refusal.to_string())
}

/// Reads a JSON body within the limits. A page of another site can send other types without asking the server first.
async fn read_body(
    service: &Service,
    parts: &Parts,
    body: Body,
    limit: usize,
) -> Result<Bytes, ApiError> {
    let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = content_type.and_then(|value| value.split(';').next()).unwrap_or_default();
    if !media_type.trim().eq_ignore_ascii_case("application/json") {
        let message = "the body of the request is not `application/json`";
        return Err(ApiError::new(ErrorCode::ContentTypeUnsupported, message));
    }
    let length = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if length
        .and_then(|length| length.parse::<u64>().ok())
        .is_some_and(|length| length > limit as u64)
    {
        return Err(too_large(limit));
    }
    let read =
        tokio::time::timeout(service.limits.body_timeout, Limited::new(body, limit).collect());
    match read.await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(limit)),
        Ok(Err(_)) => Err(ApiError::invalid("the body of the request was cut off")),
        Err(_) => {
            let message = "the body of the request did not arrive in time";
            Err(ApiError::new(ErrorCode::RequestTimeout, message))
        }
    }
}

fn too_large(limit: usize) -> ApiError {
    let message = format!("the body of the request is larger than {limit} bytes");
    ApiError::new(ErrorCode::TooLarge, message)
}

/// Returns the id that a client or a proxy has given the request, or a new one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let is_valid = |id: &&str| {
        let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !id.is_empty() && id.len() <= MAX_REQUEST_ID && id.bytes().all(is_safe)
    };
    given.filter(is_valid).map_or_else(|| SystemIds.append().to_string(), str::to_owned)
}

fn response_of(reply: Reply) -> Response {
    match reply {
        Reply::Json { status, headers, body } => {
            let mut response = json_response(status, Body::from(body));
            response.headers_mut().extend(headers);
            response
        }
        Reply::Empty => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        Reply::Events { headers: own, stream } => {
            let mut response = Response::new(Body::new(stream));
            let headers = response.headers_mut();
            headers.extend(own);
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
            // Proxies such as nginx would otherwise collect the events.
            let buffering = HeaderName::from_static("x-accel-buffering");
            headers.insert(buffering, HeaderValue::from_static("no"));
            response
        }
    }
}

fn json_response(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let sniffing = HeaderName::from_static("x-content-type-options");
    headers.insert(sniffing, HeaderValue::from_static("nosniff"));
    response
}

fn error_response(error: &ApiError, request_id: &str, in_full: bool) -> Response {
    let body = serde_json::to_vec(&error.body(request_id, in_full)).unwrap_or_default();
    let mut response = json_response(error.status(), Body::from(body));
    let headers = response.headers_mut();
    if let Some(seconds) = error.retry_after_seconds() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    // The router adds the methods of the route to a 405.
    if error.status() == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
