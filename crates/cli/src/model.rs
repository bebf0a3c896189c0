//! The model of a command: the selected one, or for the demo also the built-in script.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use helix_agents::AnyStore;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::llm::LlmAdapter;
use helix_agents::providers::SelectedModel;
use helix_agents::session::first_model;
use helix_agents::store::Head;

use crate::{env, session_tags};

/// The model name of the built-in script.
const SCRIPT: &str = "script";

/// How long a resume waits for a local server that may be busy.
const SERVER_TIMEOUT: Duration = Duration::from_secs(30);

/// A model and its adapter.
#[derive(Debug)]
pub(crate) struct Model {
    name: String,
    adapter: Arc<dyn LlmAdapter>,
}

impl Model {
    /// Creates the model that replies from the built-in script.
    pub(crate) fn scripted(script: impl LlmAdapter) -> Self {
        Self { name: SCRIPT.to_owned(), adapter: Arc::new(script) }
    }

    /// Selects the model: the one named by `name` or the environment, else the first available one.
    /// Returns `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if no provider serves the named model, or the configuration is invalid.
    pub(crate) async fn select(name: Option<&str>) -> Result<Option<Self>> {
        let of_environment = || env::HELIX_MODEL.text();
        if let Some(name) = name.map(str::to_owned).or_else(of_environment) {
            refuse_script(&name)?;
        }
        Ok(SelectedModel::select(name).await?.map(Self::of))
    }

    /// Finds the model that a session records. Waits for a local server, which may still be busy with a
    /// request of the session's crashed process.
    ///
    /// # Errors
    /// Returns an error if no provider serves the model.
    pub(crate) async fn recorded(name: &str) -> Result<Self> {
        refuse_script(name)?;
        Ok(Self::of(SelectedModel::find(name, SERVER_TIMEOUT).await?))
    }

    fn of(selected: SelectedModel) -> Self {
        Self { name: selected.name, adapter: Arc::new(selected.registry) }
    }

    /// The model's name: `provider:model`, or `script`.
    pub(crate) fn name(&self) -> &str {
        &self.name
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

fn refuse_script(name: &str) -> Result<()> {
    if is_script(name) {
        let message = "the built-in script can be used only with `helix demo`";
        return Err(Error::new(ErrorCode::ModelUnknown, message).into());
    }
    Ok(())
}

/// Returns `true` if the name is that of the built-in script.
pub(crate) fn is_script(name: &str) -> bool {
    name == SCRIPT
}

/// The model that a session was created with. Child sessions and sessions of other programs have no tag
/// for it. For these it is the model of the first reply, as named by its provider.
///
/// # Errors
/// Returns the errors of the store.
pub(crate) async fn of(head: &Head, store: &AnyStore) -> Result<Option<String>> {
    if let Some(model) = head.created.tags.get(session_tags::MODEL) {
        return Ok(Some(model.clone()));
    }
    match first_model(store, &head.session).await {
        Ok(model) => Ok(model.map(|model| model.to_string())),
        // The session was deleted concurrently.
        Err(error) if error.code() == ErrorCode::SessionNotFound => Ok(None),
        Err(error) => Err(error.into()),
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
