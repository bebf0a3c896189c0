//! The list of models that a server keeps: the cheapest thing to ask it.

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

/// A list of models is no longer than this.
const MOST_BYTES: usize = 4 * 1024 * 1024;

#[derive(Deserialize)]
struct List {
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
}

impl OpenAiChat {
    /// The models that the server says it has: whether it answers, and takes the key. Waits for
    /// `patience` and asks once.
    ///
    /// # Errors
    /// [`ErrorCode::Unsupported`] if something answers that keeps no list; else as a model call's:
    /// [`ErrorCode::ProviderUnavailable`], [`ErrorCode::ProviderTimeout`],
    /// [`ErrorCode::ProviderUnauthorized`] and the like.
    pub async fn models(&self, patience: Duration) -> Result<Vec<String>> {
        let subject = Subject { provider: self.name(), model: "" };
        let list = tokio::time::timeout(patience, self.list(subject, patience)).await;
        let list = list.unwrap_or_else(|_| Err(subject.timeout("no list of its models", patience)));
        list.map_err(|failure| failure.error.with_operation("llm::models"))
    }

    async fn list(&self, subject: Subject<'_>, patience: Duration) -> Result<Vec<String>, Failure> {
        let server = &self.0;
        let mut url = server.endpoint.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop().pop().push("models");
        }
        let mut request = server.options.http.on_this_runtime(server.route)?.get(url);
        if let Some(key) = &server.authorization {
            request = request.header(AUTHORIZATION, key.clone());
        }
        let limits = Timeouts::default().with_first_byte(patience).with_read(patience);
        let cancel = CancellationToken::new();
        let mut exchange = Exchange::begin(request, subject, limits, MOST_BYTES, &cancel).await?;
        if is_no_list(exchange.status()) {
            let message = format!(
                "the provider `{}` answers, but keeps no list of its models where one is expected",
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
            .map_err(|_| subject.protocol("sent no list of models when asked for one"))?;
        Ok(list.data.into_iter().map(|entry| entry.id).collect())
    }
}

/// Whether that is the answer of a server that serves models without naming them, or of one whose
/// interface begins somewhere else.
fn is_no_list(status: StatusCode) -> bool {
    [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED]
        .contains(&status)
}
