//! `helix sessions fork`.

use anyhow::Result;
use clap::Args;
use helix_agents::executor::ForkOptions;
use helix_agents::terminal::Screen;
use serde_json::json;

use crate::checkpoint;
use crate::location::Location;
use crate::place::Place;
use crate::which::Which;

/// The options of the command.
#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    #[command(flatten)]
    which: Which,
    /// The checkpoint, as `helix sessions checkpoints` shows it. Default: the last one.
    #[arg(long, value_name = "VERSION", conflicts_with = "step")]
    checkpoint: Option<u64>,
    /// The checkpoint after this step.
    #[arg(long, value_name = "N")]
    step: Option<u32>,
    /// The id of the new session. Default: a generated one.
    #[arg(long = "as", value_name = "ID")]
    name: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(
    args: &ForkArgs,
    place: &Place,
    db: &Location,
    screen: &Screen,
) -> Result<()> {
    let head = args.which.head(place).await?;
    let mut options = ForkOptions::default();
    options.checkpoint = match args.step {
        // A checkpoint before a rewind is valid, too, although `checkpoints` does not list it.
        None => args.checkpoint,
        Some(step) => {
            let found = place.checkpoint_after(&head.session, step).await;
            Some(found.map_err(|error| checkpoint::with_hint(error, &head.session, db))?)
        }
    };
    options.session = args.name.as_deref().map(Into::into);
    let fork = place.fork(&head.session, options).await;
    let fork = fork.map_err(|error| checkpoint::with_hint(error, &head.session, db))?;
    // The last checkpoint of a new fork is the one at which it was forked.
    let at = place.checkpoints(&fork).await?.last().map(|checkpoint| checkpoint.version);
    if screen.is_json() {
        screen.json(&json!({ "session": fork, "from": head.session, "at": at }))?;
    } else {
        screen.line(fork.as_str())?;
    }
    Ok(())
}
