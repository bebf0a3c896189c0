//! `helix sessions log`.

use anyhow::Result;
use clap::Args;
use helix_agents::event::RecordedEvent;
use helix_agents::id::SessionId;
use helix_agents::terminal::{Screen, Style};

use crate::place::Place;
use crate::text::shortened;
use crate::which::Which;

/// The maximum length of a text. `--json` prints it in full.
const MAX_CHARS: usize = 120;

/// The options of the command.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    #[command(flatten)]
    which: Which,
    /// Only events after this one.
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: u64,
}

/// Runs the command.
pub(crate) async fn run(args: &LogArgs, place: &Place, screen: &Screen) -> Result<()> {
    let head = args.which.head(place).await?;
    show(&head.session, args.after, place, screen).await
}

/// Shows the events of a session after one of them.
pub(crate) async fn show(
    session: &SessionId,
    after: u64,
    place: &Place,
    screen: &Screen,
) -> Result<()> {
    // The store can read only from the start of an append, so the events are filtered here.
    let events = place.events(session).await?;
    for event in events.iter().filter(|event| event.seq > after) {
        if screen.is_json() {
            screen.json(event)?;
        } else {
            screen.line(describe(event, screen))?;
        }
        if screen.is_closed() {
            break;
        }
    }
    Ok(())
}

fn describe(event: &RecordedEvent, screen: &Screen) -> String {
    let at = screen.styled(Style::Dim, event.at);
    let name = screen.styled(Style::Bold, event.event.name());
    let details = shortened(&event.event.details(), MAX_CHARS);
    format!("{:>4}  {at}  {name} {details}", event.seq).trim_end().to_owned()
}
