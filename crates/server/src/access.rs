//! Checks of `Host` and `Origin`, which protect browsers from sites that send requests in their user's name.

use std::collections::BTreeSet;

use helix_agents_core::error::ErrorCode;
use http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, Uri};

use crate::api_error::ApiError;

/// The names of this machine, which are always accepted as hosts.
const LOOPBACK: &[&str] = &["localhost", "127.0.0.1", "[::1]"];

/// The hosts under which the server is reached, and the origins of pages that may call it.
#[derive(Debug, Clone, Default)]
pub(crate) struct AccessRules {
    /// The names of the server besides those of this machine, in lower case and without a port.
    pub(crate) hosts: BTreeSet<String>,
    /// Whether the name does not matter, because a proxy in front of the server checks it.
    pub(crate) accepts_any_host: bool,
    /// The origins of pages on other hosts that may call the server, such as `https://app.example.com`.
    pub(crate) origins: BTreeSet<String>,
    /// Whether pages on these origins may send cookies.
    pub(crate) accepts_cookies: bool,
}

impl AccessRules {
    /// Checks the host and the origin of a request.
    ///
    /// A wrong host is a sign of DNS rebinding: a page of another site whose name now resolves to this server. The user
    /// may not have intended a request of a page on an unknown origin or on another site, and neither one that changes
    /// something and is authenticated by a cookie without stating where it comes from.
    pub(crate) fn check(&self, parts: &Parts) -> Result<(), ApiError> {
        let Some(host) = host(parts) else {
            return Err(refused("the request names no host"));
        };
        let name = without_port(&host);
        let is_known =
            self.accepts_any_host || LOOPBACK.contains(&name) || self.hosts.contains(name);
        if !is_known {
            return Err(refused("the server does not accept requests for this host"));
        }
        match header(&parts.headers, ORIGIN.as_str()) {
            Some(origin) if self.origins.contains(origin) || is_same(origin, &host) => Ok(()),
            Some(_) => Err(refused("the server does not accept requests of pages on this origin")),
            None => check_without_origin(parts),
        }
    }
}

/// Checks a request without an `Origin`: one of a program, one that reads, or one of an old browser.
///
/// A browser sends no `Origin` if a page of another site embeds the URL or links to it, but it states the relation of the
/// sites. It adds cookies, and needs no credentials at all on a server without authentication. A page cannot make it add
/// `Authorization`.
fn check_without_origin(parts: &Parts) -> Result<(), ApiError> {
    if parts.headers.contains_key(AUTHORIZATION) {
        return Ok(());
    }
    match header(&parts.headers, "sec-fetch-site") {
        Some("same-origin" | "none") => Ok(()),
        Some(_) => Err(refused("the server does not accept requests of pages on other sites")),
        None if parts.headers.contains_key(COOKIE) && !parts.method.is_safe() => {
            Err(refused("a request with a cookie has to state its origin"))
        }
        None => Ok(()),
    }
}

/// Returns the host of a request with its port, in lower case. HTTP/2 has it in the URI.
fn host(parts: &Parts) -> Option<String> {
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let host = authority.or_else(|| header(&parts.headers, HOST.as_str()))?;
    (parts.headers.get_all(HOST).iter().count() <= 1).then(|| host.to_ascii_lowercase())
}

/// Returns the host without its port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Returns `true` if the origin is that of the server's own pages: the scheme does not matter, because a proxy may have
/// removed TLS.
fn is_same(origin: &str, host: &str) -> bool {
    let origin = origin.parse::<Uri>().ok();
    let authority = origin.as_ref().and_then(Uri::authority);
    authority.is_some_and(|authority| authority.as_str().eq_ignore_ascii_case(host))
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn refused(message: &'static str) -> ApiError {
    ApiError::new(ErrorCode::OriginRefused, message)
}

#[cfg(test)]
mod tests;
