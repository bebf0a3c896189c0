//! What a session is carried out with, here and by whoever resumes it: written into its tags.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use helix_agents::error::{Error, ErrorCode};
use helix_agents::prelude::{LocalRuntime, SqliteStore};

use super::desk::Desk;
use crate::model::Model;

/// How long a session has to wait after its process died. Short, so that nobody gets bored between
/// `kill -9` and `resume`.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// The tag with the model's name.
pub(crate) const MODEL: &str = "model";
const PACE: &str = "pace_ms";
const TRACE: &str = "trace";

/// A session's model, and what its tools have around them.
#[derive(Debug)]
pub(crate) struct Setting {
    model: Model,
    pace: Duration,
    trace: Option<PathBuf>,
    desk: Desk,
}

impl Setting {
    /// The setting of a new session.
    ///
    /// # Errors
    /// If the trace file cannot be written.
    pub(crate) fn new(model: Model, pace: Duration, trace: Option<&Path>) -> Result<Self> {
        let pace = if model.is_script() { pace } else { Duration::ZERO };
        let desk = Desk::new(pace, trace)?;
        let trace = trace.map(std::path::absolute).transpose().context("no current folder")?;
        Ok(Self { model, pace, trace, desk })
    }

    /// The setting of a recorded session. A `trace` of now takes precedence.
    ///
    /// # Errors
    /// If its model is not to be had, or the trace file cannot be written.
    pub(crate) async fn of_tags(
        tags: &BTreeMap<String, String>,
        trace: Option<&Path>,
    ) -> Result<Self> {
        let pace = tags.get(PACE).and_then(|pace| pace.parse().ok()).unwrap_or_default();
        let pace = Duration::from_millis(pace);
        let model = tags.get(MODEL).ok_or_else(|| {
            let message = "the session does not say which model it was begun with: this program \
                           did not begin it";
            Error::new(ErrorCode::InputInvalid, message)
        })?;
        let model = Model::again(model, pace).await?;
        Self::new(model, pace, trace.or_else(|| tags.get(TRACE).map(Path::new)))
    }

    /// The tags that [`of_tags`](Self::of_tags) reads.
    pub(crate) fn tags(&self) -> BTreeMap<String, String> {
        let mut tags = BTreeMap::from([(MODEL.to_owned(), self.model.name().to_owned())]);
        if self.model.is_script() {
            tags.insert(PACE.to_owned(), self.pace.as_millis().to_string());
        }
        if let Some(trace) = &self.trace {
            tags.insert(TRACE.to_owned(), trace.to_string_lossy().into_owned());
        }
        tags
    }

    /// The model.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// What the tools have around them.
    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// What carries out the runs.
    ///
    /// # Errors
    /// If it contradicts itself, which is a bug.
    pub(crate) fn runtime(&self, store: SqliteStore) -> Result<LocalRuntime> {
        let builder = LocalRuntime::builder().store(store).llm_adapter(self.model.adapter());
        Ok(builder.lease(LEASE).build()?)
    }
}
