//! `helix sessions show`.

use anyhow::Result;
use helix_agents::clock::short_duration;
use helix_agents::session::{PendingCallView, Session};
use helix_agents::terminal::Screen;
use serde_json::json;

use crate::follow_up;
use crate::location::Location;
use crate::pending_call::kind;
use crate::place::Place;
use crate::text::{shortened, table};
use crate::which::Which;

/// The maximum length of the custom state. `--json` prints it in full.
const MAX_STATE: usize = 500;

/// Runs the command.
pub(crate) async fn run(
    which: &Which,
    place: &Place,
    db: &Location,
    screen: &Screen,
) -> Result<()> {
    let head = which.head(place).await?;
    let session = place.load(&head.session).await?;
    let waiting = place.pending_calls(&head.created.root).await?;
    let is_related =
        |call: &PendingCallView| call.session == head.session || head.session == call.root;
    let waiting: Vec<_> = waiting.into_iter().filter(is_related).collect();
    let output = session.last_run().and_then(|run| run.output.as_ref());
    if screen.is_json() {
        let runs: Vec<_> = session.runs().collect();
        screen.json(&json!({
            "session": head.session,
            "status": head.state_name(),
            "head": head,
            "runs": runs,
            "turns": session.turn(),
            "steps": session.checkpoints().len(),
            "checkpoints": session.checkpoints(),
            "tool_calls": session.usage().tool_calls,
            "usage": session.usage().tokens,
            "state": **session.state(),
            "output": output,
            "waiting": waiting,
        }))?;
        return Ok(());
    }
    let usage = session.usage();
    screen.field("session", &head.session)?;
    screen.field("agent", &head.created.agent)?;
    screen.field("status", head.state_name())?;
    screen.field("created", head.created_at)?;
    screen.field("updated", head.updated_at)?;
    screen.field("events", head.position.version)?;
    let listed = match session.checkpoints().len() {
        0 => "0".to_owned(),
        steps => {
            format!("{steps} ({})", follow_up::command("sessions checkpoints", session.id(), db))
        }
    };
    screen.field("steps", listed)?;
    screen.field("calls", usage.tool_calls)?;
    let tokens = format!("{} in, {} out", usage.tokens.input_tokens, usage.tokens.output_tokens);
    screen.field("tokens", tokens)?;
    for (tag, value) in &head.created.tags {
        screen.field("tag", format!("{tag} = {}", shortened(value, 200)))?;
    }
    if !session.state().is_null() {
        let state = session.state().to_string();
        screen.field("state", shortened(&state, MAX_STATE))?;
    }
    screen.line("")?;
    for line in table(["RUN", "TRIGGER", "STATUS", "STEPS", "TOOK"], &runs(&session)) {
        screen.line(line)?;
    }
    for call in &waiting {
        let (tool, expired) = (&call.pending.tool, call.expired);
        let passed = if expired { " (its deadline has passed)" } else { "" };
        screen.line("")?;
        screen
            .field("waits", format!("{} for {}: {tool}{passed}", call.reference(), kind(call)))?;
    }
    if let Some(error) = session.last_run().and_then(|run| run.error.as_ref()) {
        screen.line("")?;
        screen.field("error", format!("{}: {}", error.code, error.in_full()))?;
    }
    if let Some(output) = output {
        screen.line("")?;
        screen.field("output", output.text())?;
    }
    Ok(())
}

fn runs(session: &Session) -> Vec<[String; 5]> {
    let rows = session.runs().map(|run| {
        let took = run.started.zip(run.ended).map(|(from, to)| short_duration(to.since(from)));
        let trigger = serde_json::to_value(run.trigger).unwrap_or_default();
        [
            run.id.to_string(),
            trigger.as_str().unwrap_or_default().to_owned(),
            run.status.as_str().to_owned(),
            run.steps.to_string(),
            took.unwrap_or_default(),
        ]
    });
    rows.collect()
}
