//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ContextValue;
use clap::{Parser, Subcommand};

use crate::approvals::ApprovalsCommand;
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
use crate::stop::{AbortArgs, InterruptArgs};
use crate::tail::TailArgs;
use crate::text::one_line;
use crate::usage::UsageArgs;

/// Agents that survive: run one, kill it, resume it, and look at what it recorded.
///
/// Exit codes: 0 completed, 1 failed, 2 usage, 3 suspended, 4 interrupted or aborted.
#[derive(Debug, Parser)]
#[command(name = "helix", version, max_term_width = 100, after_long_help = env::help())]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// The database: a SQLite file, or postgres://… or redis://… for a server's. Default: `HELIX_DB`, or helix.db in the current folder.
    #[arg(long, global = true, value_name = "DATABASE")]
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
    /// Go on with a session that was interrupted, failed, was answered, or whose process died.
    Resume(ResumeArgs),
    /// Answer calls that wait for people, from this or another process.
    Approvals {
        /// What to do with them.
        #[command(subcommand)]
        command: ApprovalsCommand,
    },
    /// Ask a run of another process to stop at the end of its step; it can be resumed.
    Interrupt(InterruptArgs),
    /// End a session's run at once, whether it lives, waits or was killed; it cannot be resumed.
    Abort(AbortArgs),
    /// Look at recorded sessions.
    Sessions {
        /// What to do with them.
        #[command(subcommand)]
        command: SessionsCommand,
    },
    /// Follow a session live, from this or another process.
    Tail(TailArgs),
    /// Show tokens, calls, failures, times and cost: of one session, or of all that are selected.
    Usage(UsageArgs),
    /// Make the tables of a server's database, or bring older ones up to date.
    Migrate,
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
            // What was given is told in it, so this takes the way of what others wrote.
            let told = in_one_line(error).to_string();
            if json {
                screen::notice(&failure::usage(&told).to_string());
            } else {
                screen::notice(told.trim_end());
            }
            Exit::Usage
        })
    }
}

/// The error with each argument that it quotes in one line.
fn in_one_line(mut error: clap::Error) -> clap::Error {
    let quoted = error.context().filter_map(|(kind, value)| match value {
        ContextValue::String(text) => Some((kind, one_line(text).into_owned())),
        _ => None,
    });
    for (kind, text) in quoted.collect::<Vec<_>>() {
        error.insert(kind, ContextValue::String(text));
    }
    error
}
