//! `helix`: runs agents, resumes their sessions and shows what they recorded.
//!
//! Exit codes: 0 completed, 1 failed, 2 usage, 3 suspended, 4 interrupted or aborted.

mod approvals;
mod approver;
mod args;
mod chat;
mod checkpoint;
mod completions;
mod config_file;
mod demo;
mod demo_settings;
mod doctor;
mod drive;
mod edit;
mod env;
mod executor;
mod exit;
mod failure;
mod follow_up;
mod init;
mod input;
mod lease_wait;
mod live_export;
mod location;
mod logging;
mod man;
mod migrate;
mod model;
mod overview;
mod pending_call;
mod place;
mod resume;
mod run;
mod run_view;
mod schema;
mod serve;
mod session_agent;
mod session_tags;
mod sessions;
mod signals;
mod stop;
mod storage;
mod summary;
mod tail;
mod telemetry;
mod telemetry_settings;
mod text;
mod tokens;
mod usage;
mod which;

use std::process::ExitCode;

use clap::CommandFactory as _;
use helix_agents::terminal::Screen;

use crate::args::{Args, Command};
use crate::exit::Exit;
use crate::location::Location;

fn main() -> ExitCode {
    let args = match Args::read() {
        Ok(args) => args,
        Err(exit) => return exit.into(),
    };
    logging::start(args.json, args.log);
    let screen = Screen::new(args.json);
    let exit = match run(args, &screen) {
        Ok(exit) => exit,
        Err(error) => failure::report(&error, screen.is_json()),
    };
    exit.into()
}

/// Runs the command on a single-threaded tokio runtime, which is enough because only one agent runs at a
/// time, except in a server.
fn run(args: Args, screen: &Screen) -> anyhow::Result<Exit> {
    let mut builder = match args.command {
        Command::Serve(_) => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = builder.enable_all().build()?;
    let db = Location::of(args.location)?;
    let exit = runtime.block_on(async {
        match args.command {
            Command::Demo(args) => demo::run(args, &db, screen).await,
            Command::Run(args) => run::run(args, &db, screen).await,
            Command::Chat(args) => chat::run(args, &db, screen).await,
            Command::Resume(args) => resume::run(args, &db, screen).await,
            Command::Approvals { command } => approvals::run(command, &db, screen).await,
            Command::Interrupt(args) => stop::interrupt(args, &db, screen).await,
            Command::Abort(args) => stop::abort(args, &db, screen).await,
            Command::Sessions { command } => sessions::run(command, &db, screen).await,
            Command::Tail(args) => tail::run(args, &db, screen).await,
            Command::Telemetry { command } => telemetry::run(command, &db, screen).await,
            Command::Usage(args) => usage::run(args, &db, screen).await,
            Command::Serve(args) => serve::run(args, &db, screen).await,
            Command::Token { file, command } => tokens::run(command, &file, screen),
            Command::Migrate => migrate::run(db.database()?, screen).await,
            Command::Doctor => doctor::run(db.database()?, screen).await,
            Command::Init(args) => init::run(&args, screen),
            Command::Completions(args) => completions::run(&args, Args::command(), screen),
            Command::Man(args) => man::run(&args, Args::command(), screen),
            Command::Schema => schema::run(screen),
        }
    });
    // Does not wait for blocking threads: their results are no longer needed.
    runtime.shutdown_background();
    exit
}
