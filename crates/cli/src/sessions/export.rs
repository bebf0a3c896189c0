//! `helix sessions export`.

use anyhow::Result;
use helix_agents::prelude::SqliteStore;
use helix_agents::session::load_events;
use serde_json::json;

use crate::screen::Screen;
use crate::storage::Which;

/// The number of the document's form.
const FORMAT: u32 = 1;

/// Runs the command. With or without `--json` it prints one JSON document: everything that was
/// recorded, with the original times.
pub(crate) async fn run(which: &Which, store: &SqliteStore, screen: &Screen) -> Result<()> {
    let head = which.head(store).await?;
    let events = load_events(store, &head.session, 0).await?;
    screen.json(&json!({
        "format": "helix-agents.session",
        "format_version": FORMAT,
        "session": head.session,
        "created": head.created,
        "created_at": head.created_at,
        "events": events,
    }))?;
    Ok(())
}
