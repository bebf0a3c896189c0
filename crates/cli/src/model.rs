//! Model selection: the named model, else the first configured one, else a model server on this
//! machine; for the demo also the built-in script.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use helix_agents::AnyStore;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::event::{Event, decode};
use helix_agents::llm::LlmAdapter;
use helix_agents::providers::{LocalServer, ProviderRegistry};
use helix_agents::store::{Head, StateStore as _};

use crate::research::script;
use crate::{env, session_agent};

/// The model name of the built-in script.
const SCRIPT: &str = "script";

/// The provider prefix of models on a detected local server.
const LOCAL: &str = "local:";

/// How long a resume waits for a local server that may be busy.
const SERVER_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of appends at the start of a log that are searched for the first model reply.
const BEGINNING: u32 = 16;

/// The interval between attempts to detect a local server.
const PAUSE: Duration = Duration::from_millis(500);

/// A model and its adapter.
#[derive(Debug)]
pub(crate) struct Model {
    name: String,
    adapter: Arc<dyn LlmAdapter>,
    source: ModelSource,
}

/// The reason why a model was selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelSource {
    /// The command line or a recorded session names the model.
    Named,
    /// The environment variable names the model.
    Variable,
    /// The model is the first configured one.
    Configured,
    /// A local server on this port serves the model.
    Found(u16),
}

impl Model {
    /// Creates the built-in script.
    pub(crate) fn script(pace: Duration) -> Self {
        let adapter = Arc::new(script::model(pace));
        Self { name: SCRIPT.to_owned(), adapter, source: ModelSource::Named }
    }

    /// Selects the model: the one named by `name` or the environment, else the first available one.
    /// Returns `None` if there is none.
    ///
    /// # Errors
    /// If no provider serves the named model, or the configuration is invalid.
    pub(crate) async fn select(name: Option<&str>) -> Result<Option<Self>> {
        let (name, source) = match name {
            Some(name) => (Some(name.to_owned()), ModelSource::Named),
            None => (env::HELIX_MODEL.text(), ModelSource::Variable),
        };
        match name {
            Some(name) => Ok(Some(Self { source, ..Self::find(&name, Duration::ZERO).await? })),
            None => Self::first().await,
        }
    }

    /// Finds the model that a session records. Waits for a local server, which may still be busy with a
    /// request of the session's crashed process.
    ///
    /// # Errors
    /// If no provider serves the model.
    pub(crate) async fn recorded(name: &str) -> Result<Self> {
        Self::find(name, SERVER_TIMEOUT).await
    }

    async fn find(name: &str, timeout: Duration) -> Result<Self> {
        if is_script(name) {
            let message = "the built-in script can be used only with `helix demo`";
            return Err(Error::new(ErrorCode::ModelUnknown, message).into());
        }
        let registry = ProviderRegistry::from_env()?;
        let is_configured = registry.names().any(|provider| format!("{provider}:") == LOCAL);
        if !name.starts_with(LOCAL) || is_configured {
            return Self::of(registry, name);
        }
        match server(timeout).await {
            Some(server) => Self::of(registry.with_local(&server)?, name),
            None => {
                let message = "no model server responds on the well-known ports of this machine";
                let error = Error::new(ErrorCode::ProviderUnavailable, message);
                Err(error.with_context("model", name).into())
            }
        }
    }

    async fn first() -> Result<Option<Self>> {
        let registry = ProviderRegistry::from_env()?;
        if !registry.is_empty() {
            return Ok(Some(Self { source: ModelSource::Configured, ..Self::of(registry, "")? }));
        }
        match ProviderRegistry::detect_local().await {
            Some(server) => {
                let model = Self::of(registry.with_local(&server)?, "")?;
                Ok(Some(Self { source: ModelSource::Found(server.port), ..model }))
            }
            None => Ok(None),
        }
    }

    fn of(registry: ProviderRegistry, name: &str) -> Result<Self> {
        let name = registry.model(name)?.to_string();
        Ok(Self { name, adapter: Arc::new(registry), source: ModelSource::Named })
    }

    /// The model's name: `provider:model`, or `script`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The reason why the model was selected.
    pub(crate) fn source(&self) -> ModelSource {
        self.source
    }

    /// The adapter that sends the model's requests.
    pub(crate) fn adapter(&self) -> Arc<dyn LlmAdapter> {
        Arc::clone(&self.adapter)
    }

    /// Returns `true` if this is the built-in script.
    pub(crate) fn is_script(&self) -> bool {
        is_script(&self.name)
    }
}

/// Detects a model server on this machine, waiting up to `timeout`.
async fn server(timeout: Duration) -> Option<LocalServer> {
    let started = Instant::now();
    let mut server = ProviderRegistry::detect_local().await;
    if server.is_none() && !timeout.is_zero() {
        tracing::warn!(
            "no model server responds on this machine; it may be busy, waiting for up to {} s",
            timeout.as_secs()
        );
    }
    while server.is_none() && started.elapsed() < timeout {
        tokio::time::sleep(PAUSE).await;
        server = ProviderRegistry::detect_local().await;
    }
    server
}

/// Returns `true` if the name is that of the built-in script.
pub(crate) fn is_script(name: &str) -> bool {
    name == SCRIPT
}

/// The model that a session was created with. Child sessions and sessions of other programs have no tag
/// for it. For these it is the model of the first reply, as named by its provider.
///
/// # Errors
/// The errors of the store.
pub(crate) async fn of(head: &Head, store: &AnyStore) -> Result<Option<String>> {
    if let Some(model) = head.created.tags.get(session_agent::MODEL) {
        return Ok(Some(model.clone()));
    }
    let beginning = match store.read_log(&head.session, 0, BEGINNING).await {
        Ok(beginning) => beginning,
        // The session was deleted concurrently.
        Err(error) if error.code() == ErrorCode::SessionNotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    for append in &beginning {
        for recorded in decode(&head.session, append)? {
            if let Event::ModelReplied(reply) = &recorded.event
                && let Some(model) = &reply.model
            {
                return Ok(Some(model.to_string()));
            }
        }
    }
    Ok(None)
}

impl fmt::Display for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named => f.write_str("named explicitly"),
            Self::Variable => write!(f, "set by {}", env::HELIX_MODEL.name),
            Self::Configured => f.write_str("the first configured model"),
            Self::Found(port) => write!(f, "served on port {port} of this machine"),
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.is_script() {
            f.write_str(" (built-in script, no model)")?;
        }
        Ok(())
    }
}
