//! `helix approvals`: calls that wait for people, and what people answer. Nothing but the store is
//! needed for it: neither the agent nor a model.

mod answer;
mod call;
mod list;
mod show;

use std::path::Path;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::resume;
use crate::screen::Screen;
use crate::storage;

pub(crate) use call::{Waiting, below, kind};

/// What to do with calls that wait for people.
#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List the calls that wait for people.
    List(list::ListArgs),
    /// Show a call: all of its arguments, and how to answer.
    Show(call::WhichCall),
    /// Let a call run.
    Approve(answer::ApproveArgs),
    /// Keep a call from running; the model reads the reason.
    Deny(answer::DenyArgs),
    /// Let a call run with other arguments: opens them in VISUAL or EDITOR.
    Edit(answer::EditArgs),
    /// Give the result of a client tool, which is carried out by whoever called the agent.
    Answer(answer::AnswerArgs),
}

/// Runs one of the commands. None of them makes a database.
pub(crate) async fn run(command: ApprovalsCommand, db: &Path, screen: &Screen) -> Result<Exit> {
    let store = match command {
        ApprovalsCommand::List(_) | ApprovalsCommand::Show(_) => storage::open_to_read(db).await?,
        _ => storage::open(db).await?,
    };
    let to = answer::Desk { store: &store, db, screen };
    let answered = match command {
        ApprovalsCommand::List(args) => list::run(&args, &store, screen).await.map(|()| None),
        ApprovalsCommand::Show(which) => show::run(&which, &store, db, screen).await.map(|()| None),
        ApprovalsCommand::Approve(args) => args.run(&to).await,
        ApprovalsCommand::Deny(args) => args.run(&to).await,
        ApprovalsCommand::Edit(args) => args.run(&to).await,
        ApprovalsCommand::Answer(args) => args.run(&to).await,
    };
    let exit = match answered {
        Ok(Some(root)) => resume::session(&root, &store, db, screen).await,
        Ok(None) => Ok(Exit::Completed),
        Err(error) => Err(error),
    };
    storage::close(&store).await;
    exit
}
