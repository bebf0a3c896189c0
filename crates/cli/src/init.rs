//! `helix init`: creates a new agent as an agent file or a Rust project.

mod agent;
mod draft;
mod name;
mod project;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use helix_agents::terminal::Screen;
use serde_json::json;

use crate::env;
use crate::exit::Exit;
use crate::text::quoted;

/// The options of `helix init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The folder, or the path of an agent file that ends in `.toml`. Default: the current folder.
    #[arg(default_value = ".", hide_default_value = true)]
    path: PathBuf,
    /// Create an agent file for `helix run`, with every key explained. This is the default.
    #[arg(long, conflicts_with = "rust")]
    agent: bool,
    /// Create a Rust project with an agent, a tool and a typed answer.
    #[arg(long)]
    rust: bool,
    /// Replace existing files.
    #[arg(long)]
    force: bool,
    /// The name of the agent or of the package. Default: the name of the folder.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The checkout of Helix Agents that the project uses. Default: the one that this program was built
    /// from.
    #[arg(long, value_name = "PATH", requires = "rust")]
    helix_agents: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &InitArgs, screen: &Screen) -> Result<Exit> {
    let name = args.name.as_deref();
    let (kind, draft, next) = if args.rust {
        let draft = project::draft(&args.path, name, args.helix_agents.as_deref())?;
        let manifest = args.path.join("Cargo.toml");
        let next = if is_here(&args.path) {
            "cargo run".to_owned()
        } else {
            format!("cargo run --manifest-path {}", quoted(&manifest.to_string_lossy()))
        };
        ("rust", draft, next)
    } else {
        let file = agent::place(&args.path);
        let draft = agent::draft(&file, name)?;
        let helix = env::program();
        ("agent", draft, format!("{helix} run {} \"…\"", quoted(&file.to_string_lossy())))
    };
    let written = draft.write(args.force)?;
    if screen.is_json() {
        screen.json(&json!({ "kind": kind, "written": written, "next": next }))?;
        return Ok(Exit::Completed);
    }
    for file in &written {
        screen.line(format!("wrote    {}", file.display()))?;
    }
    if written.is_empty() {
        screen.line("all files exist already with the same content")?;
    }
    screen.line(format!("try it   {next}"))?;
    Ok(Exit::Completed)
}

fn is_here(folder: &Path) -> bool {
    folder == Path::new(".")
}
