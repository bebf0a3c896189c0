//! What a session of the research agent is carried out with, here and by whoever resumes it:
//! written into its tags.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::desk::Desk;
use crate::model::{Model, is_script};

const PACE: &str = "pace_ms";
const TRACE: &str = "trace";

/// What the agent's tools have around them.
#[derive(Debug)]
pub(crate) struct Setting {
    pace: Duration,
    trace: Option<PathBuf>,
    desk: Desk,
}

impl Setting {
    /// The setting of a new session. Only the script has a pace.
    ///
    /// # Errors
    /// If the trace file cannot be written.
    pub(crate) fn new(model: &Model, pace: Duration, trace: Option<&Path>) -> Result<Self> {
        let pace = if model.is_script() { pace } else { Duration::ZERO };
        let desk = Desk::new(pace, trace)?;
        let trace = trace.map(std::path::absolute).transpose().context("no current folder")?;
        Ok(Self { pace, trace, desk })
    }

    /// The model and the setting of a recorded session. A `trace` of now takes precedence.
    ///
    /// # Errors
    /// If its model is not to be had, or the trace file cannot be written.
    pub(crate) async fn of_tags(
        tags: &BTreeMap<String, String>,
        model: &str,
        trace: Option<&Path>,
    ) -> Result<(Model, Self)> {
        let pace = tags.get(PACE).and_then(|pace| pace.parse().ok()).unwrap_or_default();
        let pace = Duration::from_millis(pace);
        let model =
            if is_script(model) { Model::script(pace) } else { Model::again(model).await? };
        let setting = Self::new(&model, pace, trace.or_else(|| tags.get(TRACE).map(Path::new)))?;
        Ok((model, setting))
    }

    /// The tags that [`of_tags`](Self::of_tags) reads.
    pub(crate) fn tags(&self) -> BTreeMap<String, String> {
        let mut tags = BTreeMap::new();
        if !self.pace.is_zero() {
            tags.insert(PACE.to_owned(), self.pace.as_millis().to_string());
        }
        if let Some(trace) = &self.trace {
            tags.insert(TRACE.to_owned(), trace.to_string_lossy().into_owned());
        }
        tags
    }

    /// What the tools have around them.
    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }
}
