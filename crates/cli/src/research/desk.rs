//! What the tools have around them: a file where each execution leaves a trace, and the time that
//! they take.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use helix_agents::error::{Error, ErrorCode, Result};
use helix_agents::tool::{Tool, ToolContext, ToolError, ToolFunction};
use serde_json::json;

/// How many of the script's paces a tool takes at least, so that a person can watch it, and kill
/// it. Of tools side by side each takes four more than the one before.
const PACES: u32 = 8;

/// What all tools of an agent share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Desk {
    pace: Duration,
    trace: Option<Arc<File>>,
}

impl Desk {
    /// A desk whose tools take some times `pace`, and leave a line in the file `trace` each time
    /// they run.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn new(pace: Duration, trace: Option<&Path>) -> Result<Self> {
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

    /// The tool of a function under `#[tool]`, at this desk.
    pub(crate) fn tool<T: ToolFunction>(&self, function: T) -> Tool {
        let (desk, function) = (self.clone(), Arc::new(function));
        Tool::function(T::NAME, T::DESCRIPTION, move |input: T::Input, cx: ToolContext| {
            let (desk, function) = (desk.clone(), Arc::clone(&function));
            async move {
                desk.leave_trace::<T>(&cx)?;
                tokio::time::sleep(desk.delay(&cx)).await;
                function.call(input, &cx).await
            }
        })
    }

    fn delay(&self, cx: &ToolContext) -> Duration {
        let index = cx.call().as_str().rsplit('.').next().and_then(|index| index.parse().ok());
        self.pace * (PACES + 4 * index.unwrap_or(0))
    }

    /// One line in one write, so that lines of several processes do not mix.
    fn leave_trace<T: ToolFunction>(&self, cx: &ToolContext) -> Result<(), ToolError> {
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
