//! Which model answers: the one that was named, else the first that is configured, else a server
//! on this machine; for the demo also the built-in script.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::event::{Event, decode};
use helix_agents::llm::LlmAdapter;
use helix_agents::providers::{LocalServer, ProviderRegistry};
use helix_agents::store::{Head, StateStore as _};

use crate::research::script;
use crate::store::Store;
use crate::{cast, env};

/// The name of the built-in script where models are named.
const SCRIPT: &str = "script";

/// Before the model of a server that was found on this machine.
const LOCAL: &str = "local:";

/// How long a server of this machine may be busy before it counts as gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// In how many appends, from the first one on, the first reply of a session is looked for.
const BEGINNING: u32 = 16;

/// How long to wait between looks for it.
const PAUSE: Duration = Duration::from_millis(500);

/// A model, and what answers for it.
#[derive(Debug)]
pub(crate) struct Model {
    name: String,
    adapter: Arc<dyn LlmAdapter>,
    why: Why,
}

/// Why it is this model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// A person, or a recorded session, wants it.
    Named,
    /// The environment variable names it.
    Variable,
    /// It is the first that is configured.
    Configured,
    /// A server on this port of this machine has it.
    Found(u16),
}

impl Model {
    /// The built-in script.
    pub(crate) fn script(pace: Duration) -> Self {
        let adapter = Arc::new(script::model(pace));
        Self { name: SCRIPT.to_owned(), adapter, why: Why::Named }
    }

    /// The model that a person wants: the one that is named, by `name` or in the environment, else
    /// the first that there is. Nothing if there is none.
    ///
    /// # Errors
    /// If nothing serves the model that is named, or the configuration cannot be used.
    pub(crate) async fn wanted(name: Option<&str>) -> Result<Option<Self>> {
        let (name, why) = match name {
            Some(name) => (Some(name.to_owned()), Why::Named),
            None => (env::HELIX_MODEL.text(), Why::Variable),
        };
        match name {
            Some(name) => Ok(Some(Self { why, ..Self::find(&name, Duration::ZERO).await? })),
            None => Self::first().await,
        }
    }

    /// The model that a session was begun with. A server of this machine may be busy with what the
    /// session's process asked before it was killed.
    ///
    /// # Errors
    /// If nothing serves it.
    pub(crate) async fn again(name: &str) -> Result<Self> {
        Self::find(name, PATIENCE).await
    }

    async fn find(name: &str, patience: Duration) -> Result<Self> {
        if is_script(name) {
            let message = "the built-in script plays the agent of `helix demo` and no other one";
            return Err(Error::new(ErrorCode::ModelUnknown, message).into());
        }
        let registry = ProviderRegistry::from_env()?;
        let is_configured = registry.names().any(|provider| format!("{provider}:") == LOCAL);
        if !name.starts_with(LOCAL) || is_configured {
            return Self::of(registry, name);
        }
        match server(patience).await {
            Some(server) => Self::of(registry.with_local(&server)?, name),
            None => {
                let message = "no model server answers on the usual ports of this machine";
                let error = Error::new(ErrorCode::ProviderUnavailable, message);
                Err(error.with_context("model", name).into())
            }
        }
    }

    async fn first() -> Result<Option<Self>> {
        let registry = ProviderRegistry::from_env()?;
        if !registry.is_empty() {
            return Ok(Some(Self { why: Why::Configured, ..Self::of(registry, "")? }));
        }
        match ProviderRegistry::detect_local().await {
            Some(server) => {
                let model = Self::of(registry.with_local(&server)?, "")?;
                Ok(Some(Self { why: Why::Found(server.port), ..model }))
            }
            None => Ok(None),
        }
    }

    fn of(registry: ProviderRegistry, name: &str) -> Result<Self> {
        let name = registry.model(name)?.to_string();
        Ok(Self { name, adapter: Arc::new(registry), why: Why::Named })
    }

    /// `provider:model`, or `script`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Why it is this one.
    pub(crate) fn why(&self) -> Why {
        self.why
    }

    /// What answers.
    pub(crate) fn adapter(&self) -> Arc<dyn LlmAdapter> {
        Arc::clone(&self.adapter)
    }

    /// Whether it is the built-in script.
    pub(crate) fn is_script(&self) -> bool {
        is_script(&self.name)
    }
}

/// The server of this machine.
async fn server(patience: Duration) -> Option<LocalServer> {
    let began = Instant::now();
    let mut server = ProviderRegistry::detect_local().await;
    if server.is_none() && !patience.is_zero() {
        tracing::warn!(
            "no model server answers on this machine; it may be busy, so waiting for up to {} s",
            patience.as_secs()
        );
    }
    while server.is_none() && began.elapsed() < patience {
        tokio::time::sleep(PAUSE).await;
        server = ProviderRegistry::detect_local().await;
    }
    server
}

/// Whether a model's name is that of the built-in script.
pub(crate) fn is_script(name: &str) -> bool {
    name == SCRIPT
}

/// The model that a session was begun with. Sessions of other programs, and those below a session,
/// have no label with it; there it is the one that answered first, as its provider names it.
///
/// # Errors
/// The store's.
pub(crate) async fn of(head: &Head, store: &Store) -> Result<Option<String>> {
    if let Some(model) = head.created.tags.get(cast::MODEL) {
        return Ok(Some(model.clone()));
    }
    let beginning = match store.read_log(&head.session, 0, BEGINNING).await {
        Ok(beginning) => beginning,
        // It was deleted since it was listed.
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

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named => f.write_str("it was named"),
            Self::Variable => write!(f, "{} names it", env::HELIX_MODEL.name),
            Self::Configured => f.write_str("it is the first that is configured"),
            Self::Found(port) => write!(f, "a server on port {port} of this machine has it"),
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.is_script() {
            f.write_str(" (built in; no model is asked)")?;
        }
        Ok(())
    }
}
