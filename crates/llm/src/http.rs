//! HTTP connections, and which addresses they may go to.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use tokio::runtime;

/// More runtimes than this at a time are none that a program keeps on purpose.
const MOST_CLIENTS: usize = 64;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a provider may be silent. The defaults leave a slow reasoning model time to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// Until the first byte of the reply's body. Default: 300 s.
    pub first_byte: Duration,
    /// Between two pieces of the reply. Default: 120 s.
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

/// A pool of connections. Cheap to clone; providers share one.
///
/// It keeps a pool for each tokio runtime that uses it, so that a connection is driven by the
/// threads of the runtime whose calls go over it. It starts no thread and no task of its own.
#[derive(Clone)]
pub struct HttpClient(Arc<Pools>);

struct Pools {
    connect_timeout: Duration,
    clients: Mutex<Vec<(runtime::Id, Route, Client)>>,
}

/// What a connection needs, by where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// To this machine: no proxy, no TLS roots to load.
    Loopback,
    /// In clear text over a network.
    Plain,
    /// Encrypted.
    Tls,
}

impl Default for HttpClient {
    fn default() -> Self {
        Self::new(CONNECT_TIMEOUT)
    }
}

impl HttpClient {
    /// A pool whose connections must stand within `connect_timeout`.
    #[must_use]
    pub fn new(connect_timeout: Duration) -> Self {
        Self(Arc::new(Pools { connect_timeout, clients: Mutex::default() }))
    }

    /// The connections of the runtime that this is called on.
    pub(crate) fn on_this_runtime(&self, route: Route) -> Result<Client> {
        let id = runtime::Handle::try_current()
            .map_err(|error| {
                Error::new(ErrorCode::ConfigInvalid, "a model call needs a tokio runtime")
                    .with_source(error)
            })?
            .id();
        let mut clients = self.0.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let known = clients.iter().find(|it| it.0 == id && it.1 == route);
        if let Some((.., client)) = known {
            return Ok(client.clone());
        }
        let client = self.build(route)?;
        if clients.len() >= MOST_CLIENTS {
            clients.remove(0);
        }
        clients.push((id, route, client.clone()));
        Ok(client)
    }

    fn build(&self, route: Route) -> Result<Client> {
        let builder = Client::builder()
            .user_agent(concat!("helix-agents/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.0.connect_timeout)
            // A redirect could carry the key and the conversation anywhere.
            .redirect(Policy::none())
            // Attempts are counted in one place only.
            .retry(reqwest::retry::never());
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

/// Checks the address of a provider. The error does not repeat it: it may hold credentials.
///
/// # Errors
/// [`ErrorCode::ConfigInvalid`].
pub(crate) fn parse_base_url(text: &str, provider: &str) -> Result<(Url, Route)> {
    let invalid = |problem: &str| {
        Error::new(
            ErrorCode::ConfigInvalid,
            format!("the base URL of the provider `{provider}` {problem}"),
        )
    };
    let url = Url::parse(text.trim()).map_err(|error| invalid(&format!("is no URL: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("must not hold credentials; use a key"));
    }
    let route = match (url.scheme(), url.host_str()) {
        (_, None | Some("")) => return Err(invalid("names no host")),
        ("https", Some(_)) => Route::Tls,
        ("http", Some(host)) if is_loopback(host) => Route::Loopback,
        ("http", Some(_)) => Route::Plain,
        _ => return Err(invalid("must begin with http:// or https://")),
    };
    Ok((url, route))
}

fn is_loopback(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost"
        || name.ends_with(".localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_loopback())
}
