//! The server's list of models. Fetching it is the cheapest way to check a server.

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::LlmConfig;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{Method, Request, StatusCode, Url};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{Hosting, ModelServer};
use crate::exchange::{BodyKind, Exchange};
use crate::failure::{Failure, Redactor, Secrets, Subject};
use crate::http::Timeouts;
use crate::secret::ApiKey;
use crate::wire_format::{PageEnd, WireFormat as _};

/// The maximum size of a page of the list.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The maximum number of pages that are requested.
const MAX_PAGES: usize = 20;

/// The maximum number of models that are returned.
const MAX_MODELS: usize = 1000;

/// The maximum time for the list.
const MAX_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// A page of the list. OpenAI and Anthropic call the models `data`, Gemini `models`.
#[derive(Deserialize)]
struct Page {
    #[serde(alias = "models")]
    data: Vec<Entry>,
    #[serde(flatten)]
    end: PageEnd,
}

/// A model. Gemini's names start with `models/`.
#[derive(Deserialize)]
struct Entry {
    #[serde(alias = "name")]
    id: String,
}

/// The request for a page, without credentials.
struct PageRequest<'a> {
    url: Url,
    headers: &'a HeaderMap,
    subject: Subject<'a>,
    limit: TimeLimit,
    cancel: &'a CancellationToken,
}

/// The time limit of the whole list.
#[derive(Clone, Copy)]
struct TimeLimit {
    time: Duration,
    deadline: Instant,
}

impl ModelServer {
    /// Returns the models of the server, at most 1,000. The call shows whether the server responds and
    /// accepts the key. It waits for at most `timeout` and does not retry, except once with a new access token if
    /// the provider refuses the token.
    ///
    /// # Errors
    /// Returns [`ErrorCode::Unsupported`] if the server responds but has no list of models, and
    /// otherwise the errors of a model call, such as [`ErrorCode::ProviderUnavailable`],
    /// [`ErrorCode::ProviderTimeout`] and [`ErrorCode::ProviderUnauthorized`].
    pub async fn models(&self, timeout: Duration) -> Result<Vec<String>> {
        let subject = Subject { provider: self.name(), model: "" };
        // A later point in time could not be represented.
        let time = timeout.min(MAX_TIME);
        let limit = TimeLimit { time, deadline: Instant::now() + time };
        let list = self.list(subject, limit).await;
        list.map_err(|failure| failure.error.with_operation("llm::models"))
    }

    async fn list(&self, subject: Subject<'_>, limit: TimeLimit) -> Result<Vec<String>, Failure> {
        let mut url = self.0.base_url.clone();
        let mut headers = HeaderMap::new();
        with_format!(&self.0.options.format, format => {
            format.add_models_path(&mut url);
            format.add_headers(&LlmConfig::default(), None, &mut headers);
        });
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Hosting::AzureDeployments { api_version } = &self.0.options.hosting {
            url.query_pairs_mut().append_pair("api-version", api_version);
        }
        let cancel = CancellationToken::new();
        let token = timeout_at(limit.deadline, self.token(&cancel)).await;
        let mut token = token.map_err(|_| self.slow_authenticator(limit.time))??;
        let mut may_renew = true;
        let mut models = Vec::new();
        let mut next: Option<(&str, String)> = None;
        for _ in 0..MAX_PAGES {
            let mut url = url.clone();
            if let Some((parameter, value)) = &next {
                url.query_pairs_mut().append_pair(parameter, value);
            }
            let request = PageRequest { url, headers: &headers, subject, limit, cancel: &cancel };
            let page = match self.page(&request, token.as_ref()).await {
                Err(failure) if may_renew && failure.refuses_key => {
                    may_renew = false;
                    let renewed = self.renewed(token.as_ref(), failure, &cancel);
                    let renewed = timeout_at(limit.deadline, renewed).await;
                    token = Some(renewed.map_err(|_| self.slow_authenticator(limit.time))??);
                    self.page(&request, token.as_ref()).await?
                }
                page => page?,
            };
            models.extend(page.data.into_iter().map(Entry::into_name));
            next =
                with_format!(&self.0.options.format, format => format.next_models_page(page.end));
            if next.is_none() || models.len() >= MAX_MODELS {
                break;
            }
        }
        models.truncate(MAX_MODELS);
        Ok(models)
    }

    async fn page(
        &self,
        request: &PageRequest<'_>,
        token: Option<&ApiKey>,
    ) -> Result<Page, Failure> {
        let TimeLimit { time, deadline } = request.limit;
        let page = timeout_at(deadline, self.page_without_limit(request, token)).await;
        page.unwrap_or_else(|_| Err(request.subject.timeout("no list of its models", time)))
    }

    async fn page_without_limit(
        &self,
        request: &PageRequest<'_>,
        token: Option<&ApiKey>,
    ) -> Result<Page, Failure> {
        let &PageRequest { ref url, headers, subject, limit, cancel } = request;
        let server = &self.0;
        let client = server.options.http.on_this_runtime(server.route)?;
        let mut request = Request::new(Method::GET, url.clone());
        request.headers_mut().clone_from(headers);
        if let Some((name, value)) = self.credentials(token)? {
            request.headers_mut().insert(name, value);
        }
        server.sign(&mut request)?;
        // The deadline is the limit, so these must not end earlier.
        let later = limit.time + Duration::from_secs(1);
        let limits = Timeouts::default().with_first_byte(later).with_read(later);
        let sent = client.execute(request);
        let mut exchange = Exchange::begin(sent, subject, limits, MAX_BYTES, cancel).await?;
        if is_no_list(exchange.status()) {
            let message = format!(
                "the provider `{}` responds, but has no list of models at the expected URL",
                self.name()
            );
            return Err(Error::new(ErrorCode::Unsupported, message).into());
        }
        if !exchange.status().is_success() {
            let body = exchange.error_body().await?;
            let secrets = Secrets { token, ..server.secrets(None) };
            let redactor = Redactor { secrets, conversation: &[] };
            return Err(subject.status(exchange.status(), exchange.headers(), &body, &redactor));
        }
        if exchange.body_kind(BodyKind::Json) == BodyKind::Page {
            return Err(subject.protocol("sent a web page instead of a list of models"));
        }
        let body = exchange.body().await?;
        serde_json::from_slice(&body)
            .map_err(|_| subject.protocol("did not send a valid list of models"))
    }
}

impl Entry {
    fn into_name(self) -> String {
        match self.id.strip_prefix("models/") {
            Some(name) => name.to_owned(),
            None => self.id,
        }
    }
}

/// Returns `true` for the status of a server that does not list its models, or whose API has
/// another base URL.
fn is_no_list(status: StatusCode) -> bool {
    [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED]
        .contains(&status)
}
