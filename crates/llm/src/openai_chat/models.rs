//! The server's list of models. Fetching it is the cheapest way to check a server.

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use reqwest::StatusCode;
use reqwest::header::AUTHORIZATION;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::OpenAiChat;
use crate::exchange::Exchange;
use crate::failure::{Failure, Redactor, Subject};
use crate::http::Timeouts;

/// The maximum size of a list of models.
const MAX_BYTES: usize = 4 * 1024 * 1024;

#[derive(Deserialize)]
struct List {
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
}

impl OpenAiChat {
    /// Returns the models of the server. The call shows whether the server responds and accepts the
    /// key. It waits for at most `timeout` and does not retry.
    ///
    /// # Errors
    /// Returns [`ErrorCode::Unsupported`] if the server responds but has no list of models, and
    /// otherwise the errors of a model call, such as [`ErrorCode::ProviderUnavailable`],
    /// [`ErrorCode::ProviderTimeout`] and [`ErrorCode::ProviderUnauthorized`].
    pub async fn models(&self, timeout: Duration) -> Result<Vec<String>> {
        let subject = Subject { provider: self.name(), model: "" };
        let list = tokio::time::timeout(timeout, self.list(subject, timeout)).await;
        let list = list.unwrap_or_else(|_| Err(subject.timeout("no list of its models", timeout)));
        list.map_err(|failure| failure.error.with_operation("llm::models"))
    }

    async fn list(&self, subject: Subject<'_>, timeout: Duration) -> Result<Vec<String>, Failure> {
        let server = &self.0;
        let mut url = server.endpoint.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop().pop().push("models");
        }
        let mut request = server.options.http.on_this_runtime(server.route)?.get(url);
        if let Some(key) = &server.authorization {
            request = request.header(AUTHORIZATION, key.clone());
        }
        let limits = Timeouts::default().with_first_byte(timeout).with_read(timeout);
        let cancel = CancellationToken::new();
        let mut exchange = Exchange::begin(request, subject, limits, MAX_BYTES, &cancel).await?;
        if is_no_list(exchange.status()) {
            let message = format!(
                "the provider `{}` responds, but has no list of models at the expected URL",
                self.name()
            );
            return Err(Error::new(ErrorCode::Unsupported, message).into());
        }
        if !exchange.status().is_success() {
            let body = exchange.error_body().await?;
            let redactor = Redactor { key: server.key(), conversation: &[] };
            return Err(subject.status(exchange.status(), exchange.headers(), &body, &redactor));
        }
        let body = exchange.body().await?;
        let list: List = serde_json::from_slice(&body)
            .map_err(|_| subject.protocol("did not send a valid list of models"))?;
        Ok(list.data.into_iter().map(|entry| entry.id).collect())
    }
}

/// Returns `true` for the status of a server that does not list its models, or whose API has
/// another base URL.
fn is_no_list(status: StatusCode) -> bool {
    [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED]
        .contains(&status)
}
