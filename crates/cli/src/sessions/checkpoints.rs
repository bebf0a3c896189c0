//! `helix sessions checkpoints`.

use anyhow::Result;
use helix_agents::prelude::SqliteStore;
use helix_agents::session::load;

use crate::screen::Screen;
use crate::storage::Which;
use crate::text::table;

/// Runs the command.
pub(crate) async fn run(which: &Which, store: &SqliteStore, screen: &Screen) -> Result<()> {
    let head = which.head(store).await?;
    let session = load(store, &head.session).await?;
    if screen.is_json() {
        screen.json(&session.checkpoints())?;
        return Ok(());
    }
    let rows: Vec<_> = session
        .checkpoints()
        .iter()
        .map(|checkpoint| {
            [
                checkpoint.version.to_string(),
                checkpoint.turn.to_string(),
                checkpoint.step.to_string(),
                checkpoint.messages.to_string(),
                checkpoint.at.map(|at| at.to_string()).unwrap_or_default(),
            ]
        })
        .collect();
    for line in table(["VERSION", "TURN", "STEP", "MESSAGES", "AT"], &rows) {
        screen.line(line)?;
    }
    Ok(())
}
