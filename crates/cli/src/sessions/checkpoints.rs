//! `helix sessions checkpoints`.

use anyhow::Result;
use helix_agents::AnyStore;
use helix_agents::session::load;
use helix_agents::terminal::Screen;

use crate::checkpoint;
use crate::storage::Which;
use crate::text::{shortened, table};

/// The maximum length of a reply in the table.
const MAX_CHARS: usize = 80;

/// Runs the command.
pub(crate) async fn run(which: &Which, store: &AnyStore, screen: &Screen) -> Result<()> {
    let head = which.head(store).await?;
    let session = load(store, &head.session).await?;
    if screen.is_json() {
        screen.json(&session.checkpoints())?;
        return Ok(());
    }
    let rows: Vec<_> = session
        .checkpoints()
        .iter()
        .zip(checkpoint::replies(&session))
        .map(|(checkpoint, reply)| {
            [
                checkpoint.version.to_string(),
                checkpoint.turn.to_string(),
                checkpoint.step.to_string(),
                checkpoint.messages.to_string(),
                checkpoint.at.map(|at| at.to_string()).unwrap_or_default(),
                shortened(&reply, MAX_CHARS),
            ]
        })
        .collect();
    for line in table(["VERSION", "TURN", "STEP", "MESSAGES", "AT", "REPLY"], &rows) {
        screen.line(line)?;
    }
    Ok(())
}
