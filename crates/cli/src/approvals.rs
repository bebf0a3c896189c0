//! `helix approvals`: lists and answers pending calls. It needs only the store, neither the agent nor
//! a model.

mod answer;
mod call;
mod list;
mod show;

use anyhow::Result;
use clap::Subcommand;
use helix_agents::terminal::Screen;

use crate::exit::Exit;
use crate::location::Location;
use crate::place::{Access, Place};
use crate::resume;

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
pub(crate) async fn run(command: ApprovalsCommand, db: &Location, screen: &Screen) -> Result<Exit> {
    let access = match command {
        ApprovalsCommand::List(_) | ApprovalsCommand::Show(_) => Access::Read,
        _ => Access::Write,
    };
    let place = Place::open(db, access).await?;
    let cx = answer::AnswerContext { place: &place, db, screen };
    let answered = match command {
        ApprovalsCommand::List(args) => list::run(&args, &place, screen).await.map(|()| None),
        ApprovalsCommand::Show(which) => show::run(&which, &place, db, screen).await.map(|()| None),
        ApprovalsCommand::Approve(args) => args.run(&cx).await,
        ApprovalsCommand::Deny(args) => args.run(&cx).await,
        ApprovalsCommand::Edit(args) => args.run(&cx).await,
        ApprovalsCommand::Answer(args) => args.run(&cx).await,
    };
    let exit = match answered {
        Ok(Some(root)) => resume::session(&root, &place, db, screen).await,
        Ok(None) => Ok(Exit::Completed),
        Err(error) => Err(error),
    };
    place.close().await;
    exit
}
