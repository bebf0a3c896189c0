//! Embeddings: `/v1/embeddings` of OpenAI and compatible servers, and `batchEmbedContents` of Gemini.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helix_agents_core::embed::{Embedder, EmbeddingModel, EmbeddingPurpose, Embeddings};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::usage::Usage;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Request, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{ApiFormat, Hosting, ModelServer};
use crate::exchange::Exchange;
use crate::failure::{Failure, Redactor, Secrets, Subject};
use crate::retry::{Retries, pause};
use crate::secret::ApiKey;

/// The maximum number of texts in one request.
const MAX_TEXTS: usize = 100;

/// An embedding model of a [`ModelServer`]. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ServerEmbedder {
    server: ModelServer,
    /// The name with the provider.
    name: String,
    dimensions: Option<u32>,
}

impl ModelServer {
    /// Returns an embedding model of the server. No connection is made yet.
    ///
    /// # Errors
    /// Returns [`ErrorCode::Unsupported`] if the API of the server has no embeddings.
    pub fn embedder(&self, model: &str) -> Result<ServerEmbedder> {
        let format = &self.0.options.format;
        // Vertex AI has another API for embeddings.
        let is_vertex = matches!(format, ApiFormat::GeminiGenerate)
            && self.0.base_url.path().contains("/publishers/");
        if is_vertex || matches!(format, ApiFormat::AnthropicMessages | ApiFormat::BedrockConverse)
        {
            let message = format!("the provider `{}` has no embeddings", self.name());
            return Err(Error::new(ErrorCode::Unsupported, message));
        }
        let name = format!("{}:{model}", self.name());
        Ok(ServerEmbedder { server: self.clone(), name, dimensions: None })
    }
}

impl ServerEmbedder {
    /// Sets the number of dimensions of the vectors. Default: the model's.
    #[must_use]
    pub fn dimensions(mut self, dimensions: u32) -> Self {
        self.dimensions = Some(dimensions);
        self
    }

    /// Returns the name of the model as the server knows it.
    fn model_name(&self) -> &str {
        self.name.get(self.server.name().len() + 1..).unwrap_or_default()
    }

    fn is_gemini(&self) -> bool {
        matches!(self.server.0.options.format, ApiFormat::GeminiGenerate)
    }

    fn url(&self) -> Url {
        let mut url = self.server.0.base_url.clone();
        let azure_version = match &self.server.0.options.hosting {
            Hosting::AzureDeployments { api_version } => Some(api_version),
            _ => None,
        };
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty();
            if self.is_gemini() {
                path.push("models").push(&format!("{}:batchEmbedContents", self.model_name()));
            } else if azure_version.is_some() {
                path.extend(["deployments", self.model_name(), "embeddings"]);
            } else {
                path.push("embeddings");
            }
        }
        if let Some(version) = azure_version {
            url.query_pairs_mut().append_pair("api-version", version);
        }
        url
    }

    fn body(&self, texts: &[&str], purpose: EmbeddingPurpose) -> Value {
        let (model, dimensions) = (self.model_name(), self.dimensions);
        if !self.is_gemini() {
            let mut body = json!({"model": model, "input": texts, "encoding_format": "float"});
            if let (Some(dimensions), Some(members)) = (dimensions, body.as_object_mut()) {
                members.insert("dimensions".to_owned(), dimensions.into());
            }
            return body;
        }
        let task = match purpose {
            EmbeddingPurpose::Query => "RETRIEVAL_QUERY",
            _ => "RETRIEVAL_DOCUMENT",
        };
        let request = |text: &&str| {
            let mut request = json!({
                "model": format!("models/{model}"),
                "content": {"parts": [{"text": text}]},
                "taskType": task,
            });
            if let (Some(dimensions), Some(members)) = (dimensions, request.as_object_mut()) {
                members.insert("outputDimensionality".to_owned(), dimensions.into());
            }
            request
        };
        json!({ "requests": texts.iter().map(request).collect::<Vec<_>>() })
    }

    /// Makes one request, with retries.
    async fn request(
        &self,
        texts: &[&str],
        purpose: EmbeddingPurpose,
        may_renew: &mut bool,
        cancel: &CancellationToken,
    ) -> Result<Embeddings> {
        let (url, body) = (self.url(), self.body(texts, purpose).to_string());
        let mut retries = Retries::new(self.server.0.options.retry);
        loop {
            let sent = self.attempt(url.clone(), body.clone(), texts.len(), may_renew, cancel);
            let failure = match sent.await {
                Ok(embeddings) => return Ok(embeddings),
                Err(failure) => failure,
            };
            let Some(wait) = retries.next(&failure) else { return Err(failure.error) };
            pause(wait, cancel).await?;
        }
    }

    /// Makes an attempt. If the provider refuses the access token and `may_renew` is `true`, it is set to `false`, and
    /// the request is repeated with a new token.
    async fn attempt(
        &self,
        url: Url,
        body: String,
        count: usize,
        may_renew: &mut bool,
        cancel: &CancellationToken,
    ) -> Result<Embeddings, Failure> {
        let token = self.server.token(cancel).await?;
        let sent = self.send(url.clone(), body.clone(), count, token.as_ref(), cancel).await;
        let refusal = match sent {
            Err(failure) if *may_renew && failure.refuses_key => failure,
            done => return done,
        };
        *may_renew = false;
        let token = self.server.renewed(token.as_ref(), refusal, cancel).await?;
        self.send(url, body, count, Some(&token), cancel).await
    }

    async fn send(
        &self,
        url: Url,
        body: String,
        count: usize,
        token: Option<&ApiKey>,
        cancel: &CancellationToken,
    ) -> Result<Embeddings, Failure> {
        let server = &self.server.0;
        let subject = Subject { provider: self.server.name(), model: self.model_name() };
        let secrets = Secrets { token, ..server.secrets(None) };
        let redactor = Redactor { secrets, conversation: body.as_bytes() };
        let client = server.options.http.on_this_runtime(server.route)?;
        let mut request = Request::new(Method::POST, url);
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some((name, value)) = self.server.credentials(token)? {
            headers.insert(name, value);
        }
        *request.body_mut() = Some(body.clone().into());
        server.sign(&mut request)?;
        let options = &server.options;
        let mut exchange = Exchange::begin(
            client.execute(request),
            subject,
            options.timeouts,
            options.max_reply_bytes,
            cancel,
        )
        .await?;
        if !exchange.status().is_success() {
            let body = exchange.error_body().await?;
            return Err(subject.status(exchange.status(), exchange.headers(), &body, &redactor));
        }
        let reply = exchange.body().await?;
        parse(&reply, count).ok_or_else(|| subject.protocol("did not send one vector per text"))
    }
}

#[async_trait]
impl Embedder for ServerEmbedder {
    fn model(&self) -> EmbeddingModel<'_> {
        EmbeddingModel { name: &self.name, dimensions: self.dimensions }
    }

    async fn embed(
        &self,
        texts: &[&str],
        purpose: EmbeddingPurpose,
        cancel: &CancellationToken,
    ) -> Result<Embeddings> {
        let mut all = Embeddings::default();
        let mut may_renew = true;
        for texts in texts.chunks(MAX_TEXTS) {
            let part = self.request(texts, purpose, &mut may_renew, cancel).await;
            let part = part.map_err(|error| error.with_operation("llm::embed"))?;
            all.vectors.extend(part.vectors);
            all.usage += part.usage;
        }
        Ok(all)
    }
}

/// A reply of either API.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reply {
    #[serde(default)]
    data: Vec<Item>,
    #[serde(default)]
    embeddings: Vec<Values>,
    usage: Option<OpenAiUsage>,
    usage_metadata: Option<GeminiUsage>,
}

#[derive(Deserialize)]
struct Item {
    /// The index of the text. If absent, items are in the order of the texts.
    index: Option<usize>,
    embedding: Encoded,
}

/// A vector as numbers, or as base64 of little-endian numbers, which some servers send in any case.
#[derive(Deserialize)]
#[serde(untagged)]
enum Encoded {
    Numbers(Vec<f32>),
    Base64(String),
}

#[derive(Deserialize)]
struct Values {
    values: Vec<f32>,
}

#[derive(Deserialize)]
struct OpenAiUsage {
    #[serde(default)]
    prompt_tokens: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiUsage {
    #[serde(default)]
    prompt_token_count: u64,
}

/// Returns the vectors of a reply, or `None` if it does not have `count` usable ones of the same length.
fn parse(reply: &[u8], count: usize) -> Option<Embeddings> {
    let Reply { data, embeddings, usage, usage_metadata } = serde_json::from_slice(reply).ok()?;
    let mut vectors: Vec<Vec<f32>> = embeddings.into_iter().map(|values| values.values).collect();
    if vectors.is_empty() {
        vectors = vec![Vec::new(); count];
        if data.len() != count {
            return None;
        }
        for (place, item) in data.into_iter().enumerate() {
            let vector = vectors.get_mut(item.index.unwrap_or(place))?;
            *vector = match item.embedding {
                Encoded::Numbers(numbers) => numbers,
                Encoded::Base64(text) => decode(&text)?,
            };
        }
    }
    let dimensions = vectors.first().map_or(0, Vec::len);
    let is_usable = |vector: &Vec<f32>| {
        !vector.is_empty() && vector.len() == dimensions && vector.iter().all(|n| n.is_finite())
    };
    if vectors.len() != count || !vectors.iter().all(is_usable) {
        return None;
    }
    let tokens = usage.map(|usage| usage.prompt_tokens);
    let tokens = tokens.or_else(|| usage_metadata.map(|usage| usage.prompt_token_count));
    Some(Embeddings { vectors, usage: Usage::new(tokens.unwrap_or_default(), 0) })
}

fn decode(text: &str) -> Option<Vec<f32>> {
    let bytes = STANDARD.decode(text).ok()?;
    let (numbers, rest) = bytes.as_chunks::<4>();
    rest.is_empty().then(|| numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
}
