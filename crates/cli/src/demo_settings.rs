//! The settings of a demo session. They are recorded in its tags, so that any process can resume it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use helix_agents_demo::{ToolEnvironment, script};

use crate::model::{Model, is_script};

const PACE: &str = "pace_ms";
const TRACE: &str = "trace";

/// The settings of a demo session.
#[derive(Debug)]
pub(crate) struct DemoSettings {
    pace: Duration,
    trace: Option<PathBuf>,
    environment: ToolEnvironment,
}

impl DemoSettings {
    /// Creates the settings of a new session. Only the script has a pace.
    ///
    /// # Errors
    /// Returns an error if the trace file cannot be written.
    pub(crate) fn new(model: &Model, pace: Duration, trace: Option<&Path>) -> Result<Self> {
        let pace = if model.is_script() { pace } else { Duration::ZERO };
        let environment = ToolEnvironment::new(pace, trace)?;
        let trace = trace
            .map(std::path::absolute)
            .transpose()
            .context("the current folder cannot be determined")?;
        Ok(Self { pace, trace, environment })
    }

    /// Recreates the model and the settings of a recorded session. `trace` overrides the recorded file.
    ///
    /// # Errors
    /// Returns an error if the model is not available, or the trace file cannot be written.
    pub(crate) async fn of_tags(
        tags: &BTreeMap<String, String>,
        model: &str,
        trace: Option<&Path>,
    ) -> Result<(Model, Self)> {
        let pace = tags.get(PACE).and_then(|pace| pace.parse().ok()).unwrap_or_default();
        let pace = Duration::from_millis(pace);
        let model = if is_script(model) {
            Model::scripted(script(pace))
        } else {
            Model::recorded(model).await?
        };
        let settings = Self::new(&model, pace, trace.or_else(|| tags.get(TRACE).map(Path::new)))?;
        Ok((model, settings))
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

    /// The environment of the tools.
    pub(crate) fn environment(&self) -> &ToolEnvironment {
        &self.environment
    }
}
