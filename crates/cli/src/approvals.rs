//! `helix approvals`: lists and answers pending calls. It needs only the store, neither the agent nor
//! a model.

mod answer;
mod call;
mod list;
mod show;

use std::path::Path;

use anyhow::Result;
use clap::Subcommand;
use helix_agents::terminal::Screen;

use crate::exit::Exit;
use crate::resume;
use crate::storage;

/// The subcommands of `helix approvals`.
#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List pending calls.
    List(list::ListArgs),
    /// Show a pending call: its full arguments, and how to answer it.
    Show(call::WhichCall),
    /// Approve a call.
    Approve(answer::ApproveArgs),
    /// Deny a call; the model sees the reason.
    Deny(answer::DenyArgs),
    /// Approve a call with changed arguments; opens them in VISUAL or EDITOR.
    Edit(answer::EditArgs),
    /// Submit the result of a client tool, which the caller of the agent executes.
    Answer(answer::AnswerArgs),
}

/// Runs a subcommand. None of them creates a database.
pub(crate) async fn run(command: ApprovalsCommand, db: &Path, screen: &Screen) -> Result<Exit> {
    let store = match command {
        ApprovalsCommand::List(_) | ApprovalsCommand::Show(_) => storage::open_to_read(db).await?,
        _ => storage::open(db).await?,
    };
    let cx = answer::AnswerContext { store: &store, db, screen };
    let answered = match command {
        ApprovalsCommand::List(args) => list::run(&args, &store, screen).await.map(|()| None),
        ApprovalsCommand::Show(which) => show::run(&which, &store, db, screen).await.map(|()| None),
        ApprovalsCommand::Approve(args) => args.run(&cx).await,
        ApprovalsCommand::Deny(args) => args.run(&cx).await,
        ApprovalsCommand::Edit(args) => args.run(&cx).await,
        ApprovalsCommand::Answer(args) => args.run(&cx).await,
    };
    let exit = match answered {
        Ok(Some(root)) => resume::session(&root, &store, db, screen).await,
        Ok(None) => Ok(Exit::Completed),
        Err(error) => Err(error),
    };
    storage::close(&store).await;
    exit
}
