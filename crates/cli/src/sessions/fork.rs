//! `helix sessions fork`.

use anyhow::Result;
use clap::Args;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::{AgentExecutor as _, ForkOptions};
use helix_agents::prelude::SqliteStore;
use helix_agents::session::load;
use serde_json::json;

use crate::cast;
use crate::screen::Screen;
use crate::storage;

/// The options of the command.
#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// The session, as `helix sessions list` shows it.
    session: String,
    /// The checkpoint, as `helix sessions checkpoints` shows it. Default: the last one.
    #[arg(long, value_name = "VERSION", conflicts_with = "step")]
    at: Option<u64>,
    /// The checkpoint after this step.
    #[arg(long, value_name = "N")]
    step: Option<u32>,
    /// The id of the new session. Default: a fresh one.
    #[arg(long = "as", value_name = "ID")]
    name: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(args: &ForkArgs, store: &SqliteStore, screen: &Screen) -> Result<()> {
    let head = storage::head(store, &args.session).await?;
    let mut options = ForkOptions::default();
    options.checkpoint = match args.step {
        None => args.at,
        Some(step) => {
            let session = load(store, &head.session).await?;
            let closed = session.checkpoints().iter().find(|it| it.step == step);
            let message = "the session has no checkpoint after this step";
            let error = || {
                Error::new(ErrorCode::CheckpointNotFound, message)
                    .with_context("session", &head.session)
                    .with_context("step", step)
            };
            Some(closed.ok_or_else(error)?.version)
        }
    };
    options.session = args.name.as_deref().map(Into::into);
    let fork = cast::spectator(store.clone())?.fork(&head.session, options).await?;
    let origin = load(store, &fork).await?;
    let at = origin.forked().map(|origin| origin.version);
    if screen.is_json() {
        screen.json(&json!({ "session": fork, "from": head.session, "at": at }))?;
    } else {
        screen.line(fork.as_str())?;
    }
    Ok(())
}
