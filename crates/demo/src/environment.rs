//! The environment of the demo's tools: a trace file to which each execution appends a line, and an
//! artificial delay.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use helix_agents::error::{Error, ErrorCode, Result};
use helix_agents::tool::{Tool, ToolContext, ToolError, ToolFunction};
use serde_json::json;

/// The minimum delay of a tool in multiples of the script's pace, so that a user can watch and kill it.
/// Each further concurrent tool call takes four more.
const PACES: u32 = 8;

/// The environment that all tools of the demo share.
#[derive(Debug, Clone, Default)]
pub struct ToolEnvironment {
    pace: Duration,
    trace: Option<Arc<File>>,
}

impl ToolEnvironment {
    /// Creates an environment in which tools are delayed by multiples of `pace` and append a line to the
    /// file `trace` each time they run.
    ///
    /// # Errors
    /// Returns [`ErrorCode::InputInvalid`] if the file cannot be opened for writing.
    pub fn new(pace: Duration, trace: Option<&Path>) -> Result<Self> {
        let open = |path: &Path| {
            let file = OpenOptions::new().append(true).create(true).open(path);
            file.map_err(|source| {
                Error::new(ErrorCode::InputInvalid, "the trace file cannot be written")
                    .with_context("trace", path.display())
                    .with_source(source)
            })
        };
        Ok(Self { pace, trace: trace.map(open).transpose()?.map(Arc::new) })
    }

    /// Creates the tool of a `#[tool]` function in this environment.
    pub(crate) fn tool<T: ToolFunction>(&self, function: T) -> Tool {
        let (environment, function) = (self.clone(), Arc::new(function));
        Tool::function(T::NAME, T::DESCRIPTION, move |input: T::Input, cx: ToolContext| {
            let (environment, function) = (environment.clone(), Arc::clone(&function));
            async move {
                environment.write_trace::<T>(&cx)?;
                tokio::time::sleep(environment.delay(&cx)).await;
                function.call(input, &cx).await
            }
        })
    }

    fn delay(&self, cx: &ToolContext) -> Duration {
        let index = cx.call().as_str().rsplit('.').next().and_then(|index| index.parse().ok());
        self.pace * (PACES + 4 * index.unwrap_or(0))
    }

    /// Appends a line in a single write, so that lines of several processes do not interleave.
    fn write_trace<T: ToolFunction>(&self, cx: &ToolContext) -> Result<(), ToolError> {
        let Some(file) = &self.trace else { return Ok(()) };
        let line = json!({
            "session": cx.session(),
            "run": cx.run(),
            "step": cx.step(),
            "call": cx.call(),
            "attempt": cx.attempt(),
            "key": cx.idempotency_key(),
            "tool": T::NAME,
        });
        (&**file).write_all(format!("{line}\n").as_bytes())?;
        Ok(())
    }
}
