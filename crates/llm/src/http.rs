//! HTTP connections and provider addresses.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use tokio::runtime;

/// The maximum number of clients. There is one per tokio runtime and route; when the limit is
/// exceeded, the oldest one is dropped.
const MAX_CLIENTS: usize = 64;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limits for a silent provider. The defaults allow for slow reasoning models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// The time until the first byte of the reply's body. Default: 300 s.
    pub first_byte: Duration,
    /// The time between two pieces of the reply. Default: 120 s.
    pub read: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { first_byte: Duration::from_secs(300), read: Duration::from_secs(120) }
    }
}

impl Timeouts {
    /// Sets the time until the first byte.
    #[must_use]
    pub fn with_first_byte(mut self, limit: Duration) -> Self {
        self.first_byte = limit;
        self
    }

    /// Sets the time between two pieces.
    #[must_use]
    pub fn with_read(mut self, limit: Duration) -> Self {
        self.read = limit;
        self
    }
}

/// A connection pool. Cheap to clone; providers share one.
///
/// The pool is separate for each tokio runtime that uses it, so that a connection is driven by the
/// threads of the runtime that makes the calls. It does not start threads or tasks.
#[derive(Clone)]
pub struct HttpClient(Arc<Pools>);

struct Pools {
    connect_timeout: Duration,
    clients: Mutex<Vec<(runtime::Id, Route, Client)>>,
}

/// The requirements of a connection, by its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// A connection to this machine, which needs neither a proxy nor TLS root certificates.
    Loopback,
    /// An unencrypted connection over a network.
    Plain,
    /// An encrypted connection.
    Tls,
}

impl Default for HttpClient {
    fn default() -> Self {
        Self::new(CONNECT_TIMEOUT)
    }
}

impl HttpClient {
    /// Creates a pool whose connections must be established within `connect_timeout`.
    #[must_use]
    pub fn new(connect_timeout: Duration) -> Self {
        Self(Arc::new(Pools { connect_timeout, clients: Mutex::default() }))
    }

    /// Returns the client of the current tokio runtime.
    pub(crate) fn on_this_runtime(&self, route: Route) -> Result<Client> {
        let id = runtime::Handle::try_current()
            .map_err(|error| {
                Error::new(ErrorCode::ConfigInvalid, "a model call needs a tokio runtime")
                    .with_source(error)
            })?
            .id();
        let mut clients = self.0.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let known = clients.iter().find(|entry| entry.0 == id && entry.1 == route);
        if let Some((.., client)) = known {
            return Ok(client.clone());
        }
        let client = self.build(route)?;
        if clients.len() >= MAX_CLIENTS {
            clients.remove(0);
        }
        clients.push((id, route, client.clone()));
        Ok(client)
    }

    fn build(&self, route: Route) -> Result<Client> {
        let builder = Client::builder()
            .user_agent(concat!("helix-agents/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.0.connect_timeout)
            // A redirect could send the key and the conversation to any host.
            .redirect(Policy::none())
            // Retries are counted in one place only. With a maximum of 0, the client does not copy
            // each request for a retry that never happens.
            .retry(reqwest::retry::never().max_retries_per_request(0));
        let builder = match route {
            Route::Loopback => builder.no_proxy().tls_certs_only([]),
            Route::Plain => builder.tls_certs_only([]),
            Route::Tls => builder,
        };
        builder.build().map_err(|error| {
            Error::new(ErrorCode::ConfigInvalid, "could not set up HTTP").with_source(error)
        })
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient")
            .field("connect_timeout", &self.0.connect_timeout)
            .finish_non_exhaustive()
    }
}

/// Parses the base URL of a provider. The error does not repeat the URL, which may contain
/// credentials.
///
/// # Errors
/// Returns [`ErrorCode::ConfigInvalid`] if the URL is not usable.
pub(crate) fn parse_base_url(text: &str, provider: &str) -> Result<(Url, Route)> {
    let invalid = |problem: &str| {
        Error::new(
            ErrorCode::ConfigInvalid,
            format!("the base URL of the provider `{provider}` {problem}"),
        )
    };
    let url =
        Url::parse(text.trim()).map_err(|error| invalid(&format!("is not a URL: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("must not contain credentials; use an API key"));
    }
    let route = match (url.scheme(), url.host_str()) {
        (_, None | Some("")) => return Err(invalid("has no host")),
        ("https", Some(_)) => Route::Tls,
        ("http", Some(host)) if is_loopback(host) => Route::Loopback,
        ("http", Some(_)) => Route::Plain,
        _ => return Err(invalid("must start with http:// or https://")),
    };
    Ok((url, route))
}

/// Returns a URL without its user info, query and fragment, which may contain credentials.
pub(crate) fn public_url(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // A URL without a host has no user.
    let _had_user = url.set_username("").and(url.set_password(None)).is_ok();
    url.into()
}

fn is_loopback(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost"
        || name.ends_with(".localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
