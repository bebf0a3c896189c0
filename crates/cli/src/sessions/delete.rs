//! `helix sessions delete`.

use anyhow::Result;
use clap::Args;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::terminal::Screen;
use serde_json::json;

use crate::place::Place;

/// The options of the command.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The session, as `helix sessions list` shows it.
    session: String,
    /// Delete the session even if it is running; the run then fails.
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub(crate) async fn run(args: &DeleteArgs, place: &Place, screen: &Screen) -> Result<()> {
    let head = place.head(&args.session).await?;
    if head.is_leased() && !args.force {
        let message = "the session is running; interrupt it first, or use --force";
        let error = Error::new(ErrorCode::AlreadyRunning, message);
        return Err(error.with_context("session", &head.session).into());
    }
    place.delete(&head.session).await?;
    if screen.is_json() {
        screen.json(&json!({ "deleted": head.session }))?;
    } else {
        screen.line(format!("deleted {}", head.session))?;
    }
    Ok(())
}
