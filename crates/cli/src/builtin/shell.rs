//! `shell`: commands of this machine, of which a person approves each one.
//!
//! No shell reads them: a command is a program and a list of arguments. What is not listed in the
//! agent file is refused without asking anybody, and what is listed never runs unasked. It is no
//! sandbox: a command that was approved may do whatever the person could.

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

/// Where its settings stand in an agent file.
const ROOT: &str = "/tools/shell/root";
const ALLOW: &str = "/tools/shell/allow";

/// How much longer than a command the tool may take, so that it can tell of it itself.
const MARGIN: Duration = Duration::from_secs(5);

/// Commands of this machine. Each of them waits until a person has approved it.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShellForm {
    /// The folder that commands run in: the agent file's own (`.`), or one below it. What they can
    /// reach is not limited to it.
    #[serde(default = "default_root")]
    #[schemars(length(min = 1))]
    root: String,
    /// The commands that may be asked for: programs (`ls`), or programs with their first arguments
    /// (`cargo test`). Any arguments may follow.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 300)))]
    allow: Vec<String>,
    /// How long a command may take, in seconds. Then it is killed, with all that it started.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 1, max = 3600))]
    timeout_seconds: u64,
    /// The most bytes of each of its two outputs that are kept; the rest is left out.
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

/// What to run.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct Wanted {
    /// The program.
    #[schemars(length(min = 1, max = 300))]
    program: String,
    /// Its arguments, one by one and as they are: nothing in them is expanded or unquoted.
    #[serde(default)]
    #[schemars(length(max = 200), inner(length(max = 10_000)))]
    arguments: Vec<String>,
}

impl ShellForm {
    /// The tool.
    ///
    /// # Errors
    /// If the folder is none, or an entry of the list makes no sense.
    pub(super) fn tool(&self, file: &AgentFile) -> Result<Tool> {
        let folder = self.folder(file)?;
        let allowed = Arc::new(Allowed::new(&self.allow).map_err(|problems| {
            let place =
                |(index, problem)| file.places.problem(&format!("{ALLOW}/{index}"), problem);
            file.places.error(problems.into_iter().map(place).collect())
        })?);
        let description = format!(
            "Run a command on this machine, without a shell: no pipes, redirections, variables or \
             wildcards. A person is asked for approval first. What may be run, with any further \
             arguments: {}.",
            self.allow.join("; ")
        );
        let timeout = Duration::from_secs(self.timeout_seconds);
        let bounds = Bounds { timeout, max_bytes: self.max_output_bytes };
        let may = Arc::clone(&allowed);
        let run = move |wanted: Wanted, cx: ToolContext| {
            let (allowed, folder) = (Arc::clone(&allowed), folder.clone());
            async move { drive(&wanted, &allowed, folder, bounds, &cx).await }
        };
        // What is not allowed is refused by `run` whoever approves it, so nobody is asked.
        let asks = move |wanted: Wanted, _: &ApprovalContext<'_>| Ok(may.has(&wanted));
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
            file.places.error(vec![file.places.problem(ROOT, message)])
        };
        // Opening it below the file's folder refuses whatever leads out.
        file.folder.open_dir(&self.root).map_err(|error| refuse(error.to_string()))?;
        let own = file.path().parent().map(|it| it.join(&self.root));
        let own = own.unwrap_or_else(|| PathBuf::from(&self.root));
        own.canonicalize().map_err(|error| refuse(error.to_string()))
    }
}

async fn drive(
    wanted: &Wanted,
    allowed: &Allowed,
    folder: PathBuf,
    bounds: Bounds,
    cx: &ToolContext,
) -> Result<Ended, ToolError> {
    let program = allowed.program(wanted)?;
    process::run(&program, &wanted.arguments, &folder, bounds, cx.cancellation()).await
}

#[cfg(test)]
mod tests;
