//! The server's list of models. Fetching it is the cheapest way to check a server.

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::LlmConfig;
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{Hosting, ModelServer};
use crate::exchange::Exchange;
use crate::failure::{Failure, Redactor, Subject};
use crate::http::Timeouts;
use crate::wire_format::WireFormat as _;

/// The maximum size of a list of models.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// A list of models. OpenAI and Anthropic call it `data`, Gemini `models`.
#[derive(Deserialize)]
struct List {
    #[serde(alias = "models")]
    data: Vec<Entry>,
}

/// A model. Gemini's names start with `models/`.
#[derive(Deserialize)]
struct Entry {
    #[serde(alias = "name")]
    id: String,
}

impl ModelServer {
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
        let mut url = server.base_url.clone();
        let mut headers = HeaderMap::new();
        with_format!(&server.options.format, format => {
            format.add_models_path(&mut url);
            format.add_headers(&LlmConfig::default(), &mut headers);
        });
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Hosting::AzureDeployments { api_version } = &server.options.hosting {
            url.query_pairs_mut().append_pair("api-version", api_version);
        }
        let client = server.options.http.on_this_runtime(server.route)?;
        let mut request = client.get(url).headers(headers);
        let cancel = CancellationToken::new();
        let credentials = tokio::time::timeout(timeout, self.credentials(&cancel)).await;
        if let Some((name, value)) = credentials.map_err(|_| no_token(self.name(), timeout))?? {
            request = request.header(name, value);
        }
        let limits = Timeouts::default().with_first_byte(timeout).with_read(timeout);
        let mut exchange =
            Exchange::begin(request.send(), subject, limits, MAX_BYTES, &cancel).await?;
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
        let name = |entry: Entry| match entry.id.strip_prefix("models/") {
            Some(name) => name.to_owned(),
            None => entry.id,
        };
        Ok(list.data.into_iter().map(name).collect())
    }
}

fn no_token(provider: &str, limit: Duration) -> Error {
    Error::new(
        ErrorCode::ProviderTimeout,
        format!(
            "the authenticator of the provider `{provider}` returned no token within {} ms",
            limit.as_millis()
        ),
    )
}

/// Returns `true` for the status of a server that does not list its models, or whose API has
/// another base URL.
fn is_no_list(status: StatusCode) -> bool {
    [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED]
        .contains(&status)
}
