//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::chat::ChatArgs;
use crate::completions::{self, CompletionsArgs};
use crate::demo::DemoArgs;
use crate::env;
use crate::exit::Exit;
use crate::failure;
use crate::init::InitArgs;
use crate::man::ManArgs;
use crate::resume::ResumeArgs;
use crate::run::RunArgs;
use crate::screen;
use crate::sessions::SessionsCommand;
use crate::tail::TailArgs;

/// Agents that survive: run one, kill it, resume it, and look at what it recorded.
///
/// Exit codes: 0 completed, 1 failed, 2 usage, 3 suspended, 4 interrupted or aborted.
#[derive(Debug, Parser)]
#[command(name = "helix", version, max_term_width = 100, after_long_help = env::help())]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// The database file. Default: `HELIX_DB`, or helix.db in the current folder.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) db: Option<PathBuf>,
    /// Print JSON and nothing else; errors as one JSON object on standard error.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an agent that researches the Solar System with tools and hands in a report.
    Demo(DemoArgs),
    /// Run one turn of the agent that an agent file describes.
    Run(RunArgs),
    /// Talk with an agent: each message is a turn of one session.
    Chat(ChatArgs),
    /// Go on with a session that was interrupted, failed, or whose process died.
    Resume(ResumeArgs),
    /// Look at recorded sessions.
    Sessions {
        /// What to do with them.
        #[command(subcommand)]
        command: SessionsCommand,
    },
    /// Follow a session live, from this or another process.
    Tail(TailArgs),
    /// Show what is configured here, what it guarantees and why, and what is wrong with it.
    ///
    /// Ends with 0 if everything that an agent needs is here, and with 1 if there is a problem.
    Doctor,
    /// Begin an agent of your own: an agent file, or a Rust project.
    Init(InitArgs),
    /// Print what a shell needs to complete this command line.
    #[command(after_help = completions::HELP)]
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for every command.
    Man(ManArgs),
    /// Print the JSON Schema of agent files, for editors.
    Schema,
}

impl Args {
    /// Reads the command line, or says what is wrong with it.
    pub(crate) fn read() -> Result<Self, Exit> {
        let given: Vec<OsString> = std::env::args_os().collect();
        let json = given.iter().any(|argument| argument == "--json");
        Self::try_parse_from(given).map_err(|error| {
            if !error.use_stderr() {
                // `--help` and `--version`; that nobody reads them is no failure.
                let _unread = error.print();
                return Exit::Completed;
            }
            if json {
                screen::notice(&failure::usage(&error.to_string()).to_string());
            } else {
                let _unread = error.print();
            }
            Exit::Usage
        })
    }
}
