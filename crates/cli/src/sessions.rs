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

use std::path::Path;

use anyhow::Result;
use clap::Subcommand;
use helix_agents::terminal::Screen;

use crate::exit::Exit;
use crate::storage::{self, Which};

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
pub(crate) async fn run(command: SessionsCommand, db: &Path, screen: &Screen) -> Result<Exit> {
    let store = match command {
        SessionsCommand::Delete(_) | SessionsCommand::Purge(_) | SessionsCommand::Fork(_) => {
            storage::open(db).await?
        }
        SessionsCommand::Import(_) => storage::open_or_create(db).await?,
        _ => storage::open_to_read(db).await?,
    };
    let done = match command {
        SessionsCommand::List(args) => list::run(&args, &store, screen).await,
        SessionsCommand::Show(which) => show::run(&which, &store, db, screen).await,
        SessionsCommand::Log(args) => log::run(&args, &store, screen).await,
        SessionsCommand::Checkpoints(which) => checkpoints::run(&which, &store, screen).await,
        SessionsCommand::Fork(args) => fork::run(&args, &store, db, screen).await,
        SessionsCommand::Export(which) => export::run(&which, &store, screen).await,
        SessionsCommand::Import(args) => import::run(&args, &store, screen).await,
        SessionsCommand::Delete(args) => delete::run(&args, &store, screen).await,
        SessionsCommand::Purge(args) => purge::run(&args, &store, screen).await,
    };
    storage::close(&store).await;
    done.map(|()| Exit::Completed)
}
