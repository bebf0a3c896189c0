//! `helix sessions`: inspects and manages recorded sessions.

mod checkpoints;
mod delete;
mod export;
mod fork;
mod import;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod purge;
mod show;

use anyhow::Result;
use clap::Subcommand;
use helix_agents::terminal::Screen;

use crate::exit::Exit;
use crate::location::Location;
use crate::place::{Access, Place};
use crate::which::Which;

/// The subcommands of `helix sessions`.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, newest first.
    List(list::ListArgs),
    /// Show the status of a session: its runs, tokens and output.
    Show(Which),
    /// Print the log, one event per line.
    Log(log::LogArgs),
    /// List the checkpoints, one per step: the versions for `--checkpoint` of `resume` and
    /// `sessions fork`.
    Checkpoints(Which),
    /// Create a new session from a checkpoint of another session.
    Fork(fork::ForkArgs),
    /// Print the session and its child sessions as one JSON document.
    Export(Which),
    /// Import an exported session into this database, with the same ids.
    Import(import::ImportArgs),
    /// Delete a session, with its child sessions and its stream.
    Delete(delete::DeleteArgs),
    /// Delete old sessions with their child sessions. By default, only completed, failed and
    /// aborted ones.
    Purge(purge::PurgeArgs),
}

/// Runs a subcommand. Only an import creates a database.
pub(crate) async fn run(command: SessionsCommand, db: &Location, screen: &Screen) -> Result<Exit> {
    let access = match command {
        SessionsCommand::Delete(_) | SessionsCommand::Purge(_) | SessionsCommand::Fork(_) => {
            Access::Write
        }
        SessionsCommand::Import(_) => Access::Create,
        _ => Access::Read,
    };
    let place = Place::open(db, access).await?;
    let done = execute(command, &place, db, screen).await;
    place.close().await;
    done.map(|()| Exit::Completed)
}

async fn execute(
    command: SessionsCommand,
    place: &Place,
    db: &Location,
    screen: &Screen,
) -> Result<()> {
    match command {
        SessionsCommand::List(args) => list::run(&args, place, screen).await,
        SessionsCommand::Show(which) => show::run(&which, place, db, screen).await,
        SessionsCommand::Log(args) => log::run(&args, place, screen).await,
        SessionsCommand::Checkpoints(which) => checkpoints::run(&which, place, screen).await,
        SessionsCommand::Fork(args) => fork::run(&args, place, db, screen).await,
        SessionsCommand::Export(which) => export::run(&which, place, screen).await,
        SessionsCommand::Import(args) => import::run(&args, place.store()?, screen).await,
        SessionsCommand::Delete(args) => delete::run(&args, place, screen).await,
        SessionsCommand::Purge(args) => purge::run(&args, place.store()?, screen).await,
    }
}
