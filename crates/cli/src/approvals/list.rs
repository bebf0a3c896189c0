//! `helix approvals list`.

use anyhow::Result;
use clap::Args;
use helix_agents::session::PendingCallView;
use helix_agents::terminal::{Screen, notice};

use crate::pending_call::{arguments, kind};
use crate::place::Place;
use crate::text::{shortened, table};

/// The maximum length of the arguments in the table. `show` and `--json` print them in full.
const MAX_CHARS: usize = 80;

/// The options of the command.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only calls of this session and its child sessions.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// The maximum number of calls.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

/// Runs the command.
pub(crate) async fn run(args: &ListArgs, place: &Place, screen: &Screen) -> Result<()> {
    let most = usize::from(args.limit);
    let mut waiting = match &args.session {
        Some(session) => {
            let head = place.head(session).await?;
            let mut waiting = place.pending_calls(&head.created.root).await?;
            waiting.retain(|call| head.session == call.root || head.session == call.session);
            waiting
        }
        None => place.all_pending_calls(most + 1).await?,
    };
    let is_cut = waiting.len() > most;
    waiting.truncate(most);
    if screen.is_json() {
        screen.json(&waiting)?;
        return Ok(());
    }
    let head = ["CALL", "AGENT", "TOOL", "WAITS FOR", "SINCE", "DEADLINE", "ARGUMENTS"];
    for line in table(head, &waiting.iter().map(row).collect::<Vec<_>>()) {
        screen.line(line)?;
    }
    if is_cut {
        notice(&format!("only the first {most} are shown; use --limit to show more"));
    }
    Ok(())
}

fn row(call: &PendingCallView) -> [String; 7] {
    let deadline = call.pending.deadline.map(|deadline| deadline.to_string()).unwrap_or_default();
    [
        call.reference().to_string(),
        call.agent.to_string(),
        call.pending.tool.to_string(),
        kind(call).to_owned(),
        call.since.map(|since| since.to_string()).unwrap_or_default(),
        if call.expired { format!("{deadline} (passed)") } else { deadline },
        shortened(&arguments(call), MAX_CHARS),
    ]
}
