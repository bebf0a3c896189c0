//! Detection of model servers on this machine.

use std::time::Duration;

use futures_util::future::join_all;
use helix_agents_core::error::Result;
use serde::Deserialize;

use super::{ProviderRegistry, ProviderSource};
use crate::http::{HttpClient, Route};
use crate::openai_chat::ServerProfile;
use crate::server::ModelServerOptions;

/// The default ports of Ollama, llama.cpp, vLLM and LM Studio.
pub const LOCAL_PORTS: [u16; 4] = [11434, 8080, 8000, 1234];

/// The time limit for a server on this machine.
const DETECTION_TIMEOUT: Duration = Duration::from_millis(500);

/// The maximum size of a list of models.
const MAX_BYTES: usize = 1024 * 1024;

/// A model server that was found on this machine.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LocalServer {
    /// The options of the server, under the name `local`, with its first model as the default.
    pub options: ModelServerOptions,
    /// The first model of the server.
    pub model: String,
    /// The port of the server.
    pub port: u16,
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<ModelEntry>,
}

#[derive(Deserialize)]
struct ModelEntry {
    id: String,
    #[serde(default)]
    owned_by: Option<String>,
}

impl ProviderRegistry {
    /// Looks for a model server on the [usual ports](LOCAL_PORTS) of this machine.
    pub async fn detect_local() -> Option<LocalServer> {
        Self::detect_local_on(&LOCAL_PORTS).await
    }

    /// Looks for a model server on these ports of this machine. The first one in the list takes
    /// precedence.
    pub async fn detect_local_on(ports: &[u16]) -> Option<LocalServer> {
        let http = HttpClient::new(DETECTION_TIMEOUT);
        let found = join_all(ports.iter().map(|port| probe(&http, *port))).await;
        found.into_iter().flatten().next()
    }

    /// Adds a server that was found.
    ///
    /// # Errors
    /// Returns the errors of [`with_provider`](Self::with_provider).
    pub fn with_local(self, server: &LocalServer) -> Result<Self> {
        self.with_server(server.options.clone(), ProviderSource::Detected(server.port), None)
    }
}

async fn probe(http: &HttpClient, port: u16) -> Option<LocalServer> {
    let list = tokio::time::timeout(DETECTION_TIMEOUT, list_models(http, port));
    let list = list.await.ok()??;
    let first = list.data.into_iter().next()?;
    // Only llama.cpp's Python server names `me` as the owner of its models.
    let profile = match first.owned_by.as_deref() {
        Some("me") => ServerProfile::llama_cpp_python(),
        _ => ServerProfile::compatible(),
    };
    let options = ModelServerOptions::new("local", &format!("http://127.0.0.1:{port}/v1"))
        .with_default_model(&first.id)
        .with_profile(profile);
    Some(LocalServer { options, model: first.id, port })
}

async fn list_models(http: &HttpClient, port: u16) -> Option<ModelList> {
    let client = http.on_this_runtime(Route::Loopback).ok()?;
    let url = format!("http://127.0.0.1:{port}/v1/models");
    let mut response = client.get(url).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.ok()? {
        body.extend_from_slice(&piece);
        if body.len() > MAX_BYTES {
            return None;
        }
    }
    serde_json::from_slice(&body).ok()
}
