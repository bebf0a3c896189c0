//! `helix sessions export`.

use anyhow::Result;
use helix_agents::AnyStore;
use helix_agents::session::export_session;
use helix_agents::terminal::Screen;

use crate::storage::Which;

/// Runs the command. With or without `--json` it prints one JSON document: all records of the session
/// and its child sessions, with the original times.
pub(crate) async fn run(which: &Which, store: &AnyStore, screen: &Screen) -> Result<()> {
    let head = which.head(store).await?;
    screen.json(&export_session(store, &head.session).await?)?;
    Ok(())
}
