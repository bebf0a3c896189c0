//! The builder of a client.

use std::fmt;

use helix_agents_core::error::ErrorCode;
use reqwest::Url;
use reqwest::redirect::Policy;

use crate::client::Client;
use crate::error::{ClientError, Result};
use crate::limits::{Limits, Timeouts};
use crate::token::Token;
use crate::transport::Transport;

/// Builds a [`Client`]. Created by [`Client::builder`].
#[derive(Clone)]
#[must_use]
pub struct ClientBuilder {
    url: String,
    token: Option<Token>,
    timeouts: Timeouts,
    limits: Limits,
}

impl fmt::Debug for ClientBuilder {
    /// Omits the address, which may have credentials until it is checked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { token, timeouts, limits, .. } = self;
        let mut builder = f.debug_struct("ClientBuilder");
        builder.field("token", token).field("timeouts", timeouts).field("limits", limits);
        builder.finish_non_exhaustive()
    }
}

impl Client {
    /// Creates the builder of a client for the server at this URL. The path of the URL, if any, is the prefix of the
    /// server's routes.
    pub fn builder(url: &str) -> ClientBuilder {
        ClientBuilder {
            url: url.to_owned(),
            token: None,
            timeouts: Timeouts::default(),
            limits: Limits::default(),
        }
    }
}

impl ClientBuilder {
    /// Sends this token with every request. Default: none, for a server without authentication.
    pub fn token(mut self, token: impl Into<Token>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Sets the time limits.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Builds the client, without a request to the server.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if the URL is not the address of a server, or the token cannot be sent in a
    /// header. The error contains neither the URL nor the token.
    pub fn build(self) -> Result<Client> {
        let base = parse(&self.url)?;
        let is_local = is_loopback(&base);
        let is_encrypted = base.scheme() == "https";
        let authorization = match &self.token {
            None => None,
            Some(token) => Some(token.header().ok_or_else(|| {
                invalid("the token is empty or contains characters that a header cannot have")
            })?),
        };
        if authorization.is_some() && !is_encrypted && !is_local {
            tracing::warn!(
                "the token is sent unencrypted, because the address of the server is not https"
            );
        }
        let http = reqwest::Client::builder()
            .user_agent(concat!("helix-agents-client/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.timeouts.connect)
            // A redirect could lead the token and the conversation to another host.
            .redirect(Policy::none())
            // Requests are repeated in `transport` only, which knows which of them can be.
            .retry(reqwest::retry::never().max_retries_per_request(0));
        let http = if is_local { http.no_proxy() } else { http };
        let http = if is_encrypted { http } else { http.tls_certs_only([]) };
        let http =
            http.build().map_err(|error| invalid("HTTP cannot be set up").with_source(error))?;
        Ok(Client::new(Transport {
            http,
            base,
            authorization,
            timeouts: self.timeouts,
            limits: self.limits,
        }))
    }
}

/// Parses the address of a server. Its path, if any, is the prefix of the routes.
fn parse(text: &str) -> Result<Url> {
    let mut url = Url::parse(text.trim())
        .map_err(|error| invalid("the address of the server is not a URL").with_source(error))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(invalid("the address of the server does not start with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("the address of the server contains credentials; use a token"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(invalid("the address of the server has a query or a fragment"));
    }
    let path = format!("{}/", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn invalid(message: &'static str) -> ClientError {
    ClientError::new(ErrorCode::ConfigInvalid, message)
}

#[cfg(test)]
mod tests;
