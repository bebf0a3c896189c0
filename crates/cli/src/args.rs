//! The command line.

use std::ffi::OsString;

use clap::error::ContextValue;
use clap::{Parser, Subcommand};
use helix_agents::terminal;

use crate::approvals::ApprovalsCommand;
use crate::chat::ChatArgs;
use crate::completions::{self, CompletionsArgs};
use crate::demo::DemoArgs;
use crate::env;
use crate::exit::Exit;
use crate::failure;
use crate::init::InitArgs;
use crate::location::LocationArgs;
use crate::logging::LogFormat;
use crate::man::ManArgs;
use crate::resume::ResumeArgs;
use crate::run::RunArgs;
use crate::serve::ServeArgs;
use crate::sessions::SessionsCommand;
use crate::stop::{AbortArgs, InterruptArgs};
use crate::tail::TailArgs;
use crate::telemetry::TelemetryCommand;
use crate::text::one_line;
use crate::tokens::{TokenCommand, TokensFile};
use crate::usage::UsageArgs;

/// Durable agents: run an agent, kill it, resume it, and inspect what it recorded.
///
/// Exit codes: 0 completed, 1 failed, 2 usage, 3 suspended, 4 interrupted or aborted.
#[derive(Debug, Parser)]
#[command(name = "helix", version, max_term_width = 100, after_long_help = env::help())]
pub(crate) struct Args {
    /// The command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// The location of the sessions.
    #[command(flatten)]
    pub(crate) location: LocationArgs,
    /// Print only JSON; errors are one JSON object on standard error.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Log to standard error in this format, including starts and ends of runs. `HELIX_LOG` sets another filter.
    #[arg(long, global = true, value_name = "FORMAT", value_enum)]
    pub(crate) log: Option<LogFormat>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an example agent that researches the Solar System with tools and submits a report.
    Demo(DemoArgs),
    /// Run one turn of the agent in an agent file.
    Run(RunArgs),
    /// Chat with an agent: each message is a turn of one session.
    Chat(ChatArgs),
    /// Resume a session that was interrupted or failed, whose pending calls were answered, or whose process crashed.
    Resume(ResumeArgs),
    /// List and answer calls that wait for an approval or a result.
    Approvals {
        /// The subcommand.
        #[command(subcommand)]
        command: ApprovalsCommand,
    },
    /// Stop a run of another process at the end of its current step. `helix resume` continues it.
    Interrupt(InterruptArgs),
    /// Abort a run permanently, whether it is running, suspended or crashed.
    Abort(AbortArgs),
    /// Inspect and manage recorded sessions.
    Sessions {
        /// The subcommand.
        #[command(subcommand)]
        command: SessionsCommand,
    },
    /// Follow the output of a running session, from any process.
    Tail(TailArgs),
    /// Show tokens, calls, failures, durations and cost of one session, or of all selected sessions.
    Usage(UsageArgs),
    /// Export traces of recorded sessions to OpenTelemetry receivers.
    Telemetry {
        /// The subcommand.
        #[command(subcommand)]
        command: TelemetryCommand,
    },
    /// Serve the agents of agent files over HTTP, for `helix --server` and other clients.
    Serve(ServeArgs),
    /// Manage the tokens of a server's clients.
    Token {
        /// The file of tokens.
        #[command(flatten)]
        file: TokensFile,
        /// The subcommand.
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Create or upgrade the tables of a PostgreSQL database.
    Migrate,
    /// Check the configuration: show what it guarantees and why, and report problems.
    ///
    /// Exits with 0 if an agent can run with this configuration, and with 1 if there is a problem.
    Doctor,
    /// Create a new agent: an agent file, or a Rust project.
    Init(InitArgs),
    /// Print the completion script for a shell.
    #[command(after_help = completions::HELP)]
    Completions(CompletionsArgs),
    /// Print the manual page, or write one page per command.
    Man(ManArgs),
    /// Print the JSON Schema of agent files, for editors.
    Schema,
}

impl Args {
    /// Parses the command line. Prints the error and returns the exit code if that fails.
    pub(crate) fn read() -> Result<Self, Exit> {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        let json = arguments.iter().any(|argument| argument == "--json");
        Self::try_parse_from(arguments).map_err(|error| {
            if !error.use_stderr() {
                // `--help` and `--version`. A closed standard output is not an error.
                let _unread = error.print();
                return Exit::Completed;
            }
            // The message quotes the arguments, so it is escaped like other untrusted text.
            let message = in_one_line(error).to_string();
            if json {
                terminal::notice(&failure::usage(&message).to_string());
            } else {
                terminal::notice(message.trim_end());
            }
            Exit::Usage
        })
    }
}

/// Escapes each argument that the error quotes to one line.
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
