//! `helix sessions checkpoints`.

use std::iter;

use anyhow::Result;
use helix_agents::terminal::Screen;

use crate::place::Place;
use crate::text::{shortened, table};
use crate::which::Which;

/// The maximum length of a reply in the table.
const MAX_CHARS: usize = 80;

/// Runs the command.
pub(crate) async fn run(which: &Which, place: &Place, screen: &Screen) -> Result<()> {
    let head = which.head(place).await?;
    let checkpoints = place.checkpoints(&head.session).await?;
    if screen.is_json() {
        screen.json(&checkpoints)?;
        return Ok(());
    }
    let replies = place.replies(&head.session).await?;
    let rows: Vec<_> = checkpoints
        .iter()
        .zip(replies.into_iter().chain(iter::repeat(String::new())))
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
