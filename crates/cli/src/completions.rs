//! `helix completions`: completion scripts for shells.

use anyhow::Result;
use clap_complete::Shell;
use helix_agents::terminal::Screen;
use serde_json::json;

use crate::exit::Exit;

/// The help text on how to load the script in each shell.
pub(crate) const HELP: &str = "\
Load the script in the current shell or in its start-up file:
  bash        source <(helix completions bash)
  zsh         source <(helix completions zsh)
  fish        helix completions fish | source
  elvish      eval (helix completions elvish | slurp)
  powershell  helix completions powershell | Out-String | Invoke-Expression";

/// The options of `helix completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Runs the command. `command` is the command line of the program.
pub(crate) fn run(
    args: &CompletionsArgs,
    mut command: clap::Command,
    screen: &Screen,
) -> Result<Exit> {
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    let script = String::from_utf8_lossy(&script);
    if screen.is_json() {
        screen.json(&json!({ "shell": args.shell.to_string(), "script": script }))?;
    } else {
        screen.text(&script)?;
    }
    Ok(Exit::Completed)
}
