//! Sends requests: follows redirects itself and checks the addresses at each connection.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{self, HeaderMap};
use reqwest::redirect::Policy as Redirects;
use reqwest::{Client, Response, StatusCode, Url};
use serde::Serialize;

use super::policy::Policy;
use super::{MAX_CHARS, MAX_URL_BYTES, body};
use crate::text::shortened;

/// The maximum number of redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// A function that resolves a host name to addresses.
pub(super) type Lookup =
    Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// An HTTP client that enforces a [`Policy`].
pub(super) struct Fetcher {
    policy: Policy,
    max_bytes: usize,
    timeout: Duration,
    lookup: Lookup,
    /// The client for `http` URLs, without root certificates.
    plain: OnceLock<Client>,
    /// The client for `https` URLs. Root certificates are loaded only when it is needed, because they may
    /// be missing.
    encrypted: OnceLock<Client>,
}

/// The output of the tool.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Page {
    /// The URL after all redirects.
    pub(super) url: String,
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) text: String,
    /// Whether the text was truncated.
    pub(super) truncated: bool,
}

impl Fetcher {
    /// Creates a client that reads at most `max_bytes` of a response within `timeout`.
    pub(super) fn new(policy: Policy, max_bytes: usize, timeout: Duration) -> Self {
        Self {
            policy,
            max_bytes,
            timeout,
            lookup: Arc::new(|name| Box::pin(look_up(name))),
            plain: OnceLock::new(),
            encrypted: OnceLock::new(),
        }
    }

    #[cfg(test)]
    pub(super) fn with_lookup(mut self, lookup: Lookup) -> Self {
        self.lookup = lookup;
        self
    }

    /// Fetches a URL. The error is a message for the model.
    pub(super) async fn get(&self, url: &str) -> Result<Page, String> {
        let url = Url::parse(url.trim()).map_err(|error| {
            format!("`{}` is not a URL: {error}; start it with https://", url.trim())
        })?;
        match tokio::time::timeout(self.timeout, self.follow(url)).await {
            Ok(page) => page,
            Err(_) => Err(format!(
                "no response within {} s; the server is slow or does not respond",
                self.timeout.as_secs_f32()
            )),
        }
    }

    async fn follow(&self, mut url: Url) -> Result<Page, String> {
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send(&url).await?;
            match next(&url, response.status(), response.headers())? {
                Some(next) => url = next,
                None => return self.page(url, response).await,
            }
        }
        Err(format!("more than {MAX_REDIRECTS} redirects, the last one to {url}"))
    }

    async fn send(&self, url: &Url) -> Result<Response, String> {
        self.policy.check(url)?;
        let client = self.client(url.scheme() == "https")?;
        let request =
            client.get(url.clone()).header(header::ACCEPT, "text/*, application/json, */*;q=0.5");
        request.send().await.map_err(|error| explain(url, &error))
    }

    async fn page(&self, url: Url, response: Response) -> Result<Page, String> {
        let status = response.status().as_u16();
        let content_type = body::content_type(response.headers())?;
        let (text, truncated) = body::text(response, &content_type, self.max_bytes).await?;
        Ok(Page { url: url.into(), status, content_type, text, truncated })
    }

    fn client(&self, encrypted: bool) -> Result<Client, String> {
        let place = if encrypted { &self.encrypted } else { &self.plain };
        if let Some(client) = place.get() {
            return Ok(client.clone());
        }
        let guard = Guard { policy: self.policy.clone(), lookup: Arc::clone(&self.lookup) };
        let builder = Client::builder()
            .user_agent(concat!("helix-agents/", env!("CARGO_PKG_VERSION")))
            .redirect(Redirects::none())
            .retry(reqwest::retry::never())
            // A proxy would resolve names itself, without the address check.
            .no_proxy()
            .dns_resolver(Arc::new(guard));
        let builder = if encrypted { builder } else { builder.tls_certs_only([]) };
        let client = builder
            .build()
            .map_err(|error| format!("the HTTP client cannot be created: {error}"))?;
        Ok(place.get_or_init(|| client).clone())
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// The target of a redirect, or `None` if the response is not a redirect.
pub(super) fn next(
    url: &Url,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Option<Url>, String> {
    let is_redirect = matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let Some(location) = headers.get(header::LOCATION).filter(|_| is_redirect) else {
        return Ok(None);
    };
    let location = location.to_str().map_err(|_| "the redirect target is not a URL".to_owned())?;
    let target = shortened(location, MAX_CHARS);
    let mut next = url.join(location).map_err(|error| {
        format!("the redirect leads to `{target}`, which is not a URL: {error}")
    })?;
    if next.as_str().len() > MAX_URL_BYTES {
        return Err(format!(
            "the redirect leads to `{target}`, a URL of more than {MAX_URL_BYTES} bytes"
        ));
    }
    if url.scheme() == "https" && next.scheme() == "http" {
        return Err(format!("the redirect from {url} to `{target}` is not encrypted"));
    }
    next.set_fragment(None);
    Ok(Some(next))
}

fn explain(url: &Url, error: &reqwest::Error) -> String {
    let causes = std::iter::successors(StdError::source(error), |cause| (*cause).source());
    let causes: Vec<_> = causes.collect();
    if let Some(refusal) = causes.iter().find_map(|cause| cause.downcast_ref::<Refusal>()) {
        return refusal.0.clone();
    }
    let host = url.host_str().unwrap_or_default();
    match causes.last() {
        Some(cause) => format!("`{host}` cannot be reached: {cause}"),
        None => format!("`{host}` cannot be reached: {error}"),
    }
}

/// A resolver that returns only addresses that the policy permits. The connection uses exactly these
/// addresses.
struct Guard {
    policy: Policy,
    lookup: Lookup,
}

/// The reason why a name was not resolved.
#[derive(Debug)]
struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for Refusal {}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (policy, found) = (self.policy.clone(), (self.lookup)(name.as_str().to_owned()));
        Box::pin(async move {
            let name = name.as_str();
            let found = found.await.map_err(|error| {
                Refusal(format!("the name `{name}` cannot be resolved: {error}"))
            })?;
            let permitted: Vec<_> =
                found.into_iter().filter(|address| policy.permits(name, address.ip())).collect();
            if permitted.is_empty() {
                let message = format!(
                    "`{name}` resolves to a private address, which this tool does not allow"
                );
                return Err(Refusal(message).into());
            }
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}

async fn look_up(name: String) -> io::Result<Vec<SocketAddr>> {
    // The port of the URL replaces this one.
    Ok(tokio::net::lookup_host((name, 0)).await?.collect())
}
