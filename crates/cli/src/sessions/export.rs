//! `helix sessions export`.

use anyhow::Result;
use helix_agents::session::export_session;
use helix_agents::terminal::Screen;

use crate::place::Place;
use crate::which::Which;

/// Runs the command. With or without `--json` it prints one JSON document: all records of the session
/// and its child sessions, with the original times.
pub(crate) async fn run(which: &Which, place: &Place, screen: &Screen) -> Result<()> {
    let store = place.store()?;
    let head = which.head(place).await?;
    screen.json(&export_session(store, &head.session).await?)?;
    Ok(())
}
