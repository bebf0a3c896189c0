//! The tool `shell`: runs commands on this machine. A user approves each one.
//!
//! No shell interprets the commands: a command is a program and a list of arguments. Commands that the
//! agent file does not list are rejected without asking for approval, and listed commands never run
//! without approval. This is not a sandbox: an approved command has all permissions of the user.

mod allow;
mod process;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use helix_agents::error::Result;
use helix_agents::tool::{ApprovalContext, EffectClass, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::allow::Allowed;
use self::process::{Bounds, Ended};
use crate::agent_file::AgentFile;

/// The JSON pointer of the folder in an agent file.
const ROOT: &str = "/tools/shell/root";
/// The JSON pointer of the allowed commands in an agent file.
const ALLOW: &str = "/tools/shell/allow";

/// The time that the tool call may take beyond the timeout of a command, so that the tool reports the
/// timeout itself.
const MARGIN: Duration = Duration::from_secs(5);

/// Commands on this machine. Each call waits until a user has approved it.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShellConfig {
    /// The working directory of commands: the agent file's own folder (`.`) or one below it. Commands can
    /// access files outside it.
    #[serde(default = "default_root")]
    #[schemars(length(min = 1))]
    root: String,
    /// The allowed commands: programs (`ls`), or programs with their first arguments (`cargo test`). Any
    /// further arguments are allowed.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 300)))]
    allow: Vec<String>,
    /// The timeout of a command in seconds. Then it is killed, with all processes that it started.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 1, max = 3600))]
    timeout_seconds: u64,
    /// The maximum size in bytes of the standard output and of the standard error; the rest is omitted.
    #[serde(default = "default_max_output")]
    #[schemars(range(min = 1, max = 131_072))]
    max_output_bytes: usize,
}

fn default_root() -> String {
    ".".to_owned()
}

fn default_timeout() -> u64 {
    60
}

fn default_max_output() -> usize {
    20_000
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

impl ShellConfig {
    /// Creates the tool.
    ///
    /// # Errors
    /// If the folder cannot be used, or an entry of `allow` is invalid.
    pub(super) fn tool(&self, file: &AgentFile) -> Result<Tool> {
        let folder = self.folder(file)?;
        let allowed = Arc::new(Allowed::new(&self.allow).map_err(|problems| {
            let place =
                |(index, problem)| file.source_map.problem(&format!("{ALLOW}/{index}"), problem);
            file.source_map.error(problems.into_iter().map(place).collect())
        })?);
        let description = format!(
            "Run a command on this machine, without a shell: no pipes, redirections, variables or \
             wildcards. A user has to approve it first. Allowed commands, with any further \
             arguments: {}.",
            self.allow.join("; ")
        );
        let timeout = Duration::from_secs(self.timeout_seconds);
        let bounds = Bounds { timeout, max_bytes: self.max_output_bytes };
        let may = Arc::clone(&allowed);
        let run = move |command_input: CommandInput, cx: ToolContext| {
            let (allowed, folder) = (Arc::clone(&allowed), folder.clone());
            async move { drive(&command_input, &allowed, folder, bounds, &cx).await }
        };
        // `run` rejects commands that are not allowed anyway, so they need no approval.
        let asks =
            move |command_input: CommandInput, _: &ApprovalContext<'_>| Ok(may.has(&command_input));
        Ok(Tool::function("shell", &description, run)
            .effect(EffectClass::AtMostOnce)
            .requires_approval_if(asks)
            .editable()
            .timeout(timeout + MARGIN))
    }

    fn folder(&self, file: &AgentFile) -> Result<PathBuf> {
        let refuse = |problem: String| {
            let message = format!(
                "the folder `{}` cannot be used: {problem} (commands run in the agent file's own \
                 folder or one below it)",
                self.root
            );
            file.source_map.error(vec![file.source_map.problem(ROOT, message)])
        };
        // Opening the folder below the file's folder rejects paths that lead out of it.
        file.folder.open_dir(&self.root).map_err(|error| refuse(error.to_string()))?;
        let own = file.path().parent().map(|folder| folder.join(&self.root));
        let own = own.unwrap_or_else(|| PathBuf::from(&self.root));
        own.canonicalize().map_err(|error| refuse(error.to_string()))
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
