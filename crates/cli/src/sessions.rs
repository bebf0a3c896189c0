//! `helix sessions`: looks at what was recorded.

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
use helix_agents::store::{Head, SessionStatus};

use crate::exit::Exit;
use crate::screen::Screen;
use crate::storage::{self, Which};

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, the newest first.
    List(list::ListArgs),
    /// Show how a session stands: its runs, tokens and output.
    Show(Which),
    /// Print the log, one event per line.
    Log(log::LogArgs),
    /// List the versions at which a step was closed: where `resume --from` and `fork` can begin.
    Checkpoints(Which),
    /// Begin another session with what this one had at a checkpoint.
    Fork(fork::ForkArgs),
    /// Print the whole session, with those below it, as one JSON document.
    Export(Which),
    /// Write an exported session into this database, under the ids that it had.
    Import(import::ImportArgs),
    /// Delete a session.
    Delete(delete::DeleteArgs),
    /// Delete sessions that ended long ago, with those below them.
    Purge(purge::PurgeArgs),
}

/// Runs one of the commands. None but an import makes a database.
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

/// How a session stands, in one word.
fn standing(head: &Head) -> &'static str {
    match &head.summary.run {
        Some(_) if head.is_leased() => "running",
        Some(_) => "stopped",
        // Without a run it is under way only because that was suspended.
        None if head.summary.status == SessionStatus::Active && head.summary.pending > 0 => {
            "waiting"
        }
        None if head.summary.status == SessionStatus::Active => "answered",
        None => head.summary.status.as_str(),
    }
}
