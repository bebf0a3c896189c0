//! The axum router, made from the table of routes.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::RawPathParams;
use axum::routing::{MethodFilter, on};
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, Request};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::access::AccessRules;
use crate::call::{RUN_HEADER, SESSION_HEADER};
use crate::pipeline::{REQUEST_ID, Target, handle};
use crate::routes::{ROUTES, Route};
use crate::service::Service;

/// The time for which a browser remembers what a page of another origin may send.
const PREFLIGHT_AGE: Duration = Duration::from_secs(600);

/// Returns a router with all routes.
pub(crate) fn router(service: &Arc<Service>) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        let Some(method) = method_filter(route) else { continue };
        let service = Arc::clone(service);
        let handler = move |parameters: RawPathParams, request: Request<Body>| {
            let path = parameters.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
            handle(Arc::clone(&service), Target::Route(route), path.collect(), request)
        };
        router = router.route(route.path, on(method, handler));
    }
    let unknown = |target| {
        let service = Arc::clone(service);
        move |request: Request<Body>| handle(Arc::clone(&service), target, Vec::new(), request)
    };
    let router = router
        .method_not_allowed_fallback(unknown(Target::NoMethod))
        .fallback(unknown(Target::NoPath));
    match cors(&service.access) {
        Some(cors) => router.layer(cors),
        None => router,
    }
}

fn method_filter(route: &Route) -> Option<MethodFilter> {
    route.method.clone().try_into().ok()
}

/// Returns the layer that lets pages of the listed origins read responses. Without origins there is none.
fn cors(access: &AccessRules) -> Option<CorsLayer> {
    let origins = access.origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok());
    let origins: Vec<_> = origins.collect();
    let last_event_id = HeaderName::from_static("last-event-id");
    (!origins.is_empty()).then(|| {
        CorsLayer::new()
            .allow_origin(AllowOrigin::list(origins))
            .allow_methods([Method::GET, Method::POST, Method::DELETE])
            .allow_headers([AUTHORIZATION, CONTENT_TYPE, REQUEST_ID, last_event_id])
            .expose_headers([SESSION_HEADER, RUN_HEADER, REQUEST_ID, RETRY_AFTER])
            .allow_credentials(access.accepts_cookies)
            .max_age(PREFLIGHT_AGE)
    })
}
