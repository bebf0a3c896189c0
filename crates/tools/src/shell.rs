//! The tool `shell`: runs commands on this machine. A user approves each one.
//!
//! No shell interprets the commands: a command is a program and a list of arguments. Commands that
//! are not listed are rejected without asking for approval, and listed commands never run
//! without approval. This is not a sandbox: an approved command has all permissions of the user.

mod allow;
mod process;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::tool::{ApprovalContext, EffectClass, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use self::allow::Allowed;
use self::process::{Bounds, Ended};
use crate::{SettingProblem, SettingsError};

/// The name of the tool.
const NAME: &str = "shell";

/// The time that the tool call may take beyond the timeout of a command, so that the tool reports the
/// timeout itself.
const MARGIN: Duration = Duration::from_secs(5);

/// The default of [`ShellTool::timeout`].
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// The default of [`ShellTool::max_output_bytes`].
pub const DEFAULT_MAX_OUTPUT_BYTES: usize = 20_000;

/// The tool `shell`: the listed commands. Each call waits until a user has approved it.
///
/// # Examples
///
/// ```
/// use helix_agents_tools::shell::ShellTool;
///
/// let shell = ShellTool::new(".", ["ls", "cargo test"]);
/// assert!(shell.tool().is_ok());
/// // With a relative path, anyone who can write to the folder could choose the program.
/// assert!(ShellTool::new(".", ["./build.sh"]).tool().is_err());
/// ```
#[derive(Debug, Clone)]
pub struct ShellTool {
    folder: PathBuf,
    allow: Vec<String>,
    timeout: Duration,
    max_output_bytes: usize,
}

/// The input of the tool.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct CommandInput {
    /// The program.
    #[schemars(length(min = 1, max = 300))]
    program: String,
    /// The arguments, one item each. They are passed unchanged: nothing is expanded or unquoted.
    #[serde(default)]
    #[schemars(length(max = 200), inner(length(max = 10_000)))]
    arguments: Vec<String>,
}

impl ShellTool {
    /// Allows commands in a working directory: programs (`ls`), or programs with their first arguments
    /// (`cargo test`). Any further arguments are allowed. Commands can access files outside the directory.
    pub fn new(
        folder: impl Into<PathBuf>,
        allow: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            folder: folder.into(),
            allow: allow.into_iter().map(Into::into).collect(),
            timeout: DEFAULT_TIMEOUT,
            max_output_bytes: DEFAULT_MAX_OUTPUT_BYTES,
        }
    }

    /// Sets how long a command may run before it and all processes that it started are killed. Default: 60 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum size in bytes of the standard output and of the standard error; the rest is omitted.
    /// Default: 20,000.
    #[must_use]
    pub fn max_output_bytes(mut self, most: usize) -> Self {
        self.max_output_bytes = most;
        self
    }

    /// Creates the tool.
    ///
    /// # Errors
    /// Returns the working directory if it cannot be used, or the invalid items of `allow`.
    pub fn tool(&self) -> Result<Tool, SettingsError> {
        let folder = self.folder.canonicalize().map_err(|error| {
            let folder = self.folder.display();
            let message = format!("the folder `{folder}` cannot be used: {error}");
            SettingsError::new(NAME, vec![SettingProblem::new("root", message)])
        })?;
        let allowed = Arc::new(Allowed::new(&self.allow).map_err(|problems| {
            let place = |(index, problem)| SettingProblem::new(format!("allow/{index}"), problem);
            SettingsError::new(NAME, problems.into_iter().map(place).collect())
        })?);
        let description = format!(
            "Run a command on this machine, without a shell: no pipes, redirections, variables or \
             wildcards. A user has to approve it first. Allowed commands, with any further \
             arguments: {}.",
            self.allow.join("; ")
        );
        let timeout = self.timeout;
        let bounds = Bounds { timeout, max_bytes: self.max_output_bytes };
        let may = Arc::clone(&allowed);
        let run = move |command_input: CommandInput, cx: ToolContext| {
            let (allowed, folder) = (Arc::clone(&allowed), folder.clone());
            async move { drive(&command_input, &allowed, folder, bounds, &cx).await }
        };
        // `run` rejects commands that are not allowed anyway, so they need no approval.
        let asks =
            move |command_input: CommandInput, _: &ApprovalContext<'_>| Ok(may.has(&command_input));
        Ok(Tool::function(NAME, &description, run)
            .effect(EffectClass::AtMostOnce)
            .requires_approval_if(asks)
            .editable()
            .timeout(timeout + MARGIN))
    }
}

async fn drive(
    command_input: &CommandInput,
    allowed: &Allowed,
    folder: PathBuf,
    bounds: Bounds,
    cx: &ToolContext,
) -> Result<Ended, ToolError> {
    let program = allowed.program(command_input)?;
    process::run(&program, &command_input.arguments, &folder, bounds, cx.cancellation()).await
}

#[cfg(test)]
mod tests;
