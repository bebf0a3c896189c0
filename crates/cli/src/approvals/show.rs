//! `helix approvals show`.

use anyhow::Result;
use helix_agents::event::PendingKind;
use helix_agents::terminal::Screen;
use serde_json::Value;

use super::call::WhichCall;
use crate::follow_up;
use crate::location::Location;
use crate::pending_call::kind;
use crate::place::Place;

/// Runs the command.
pub(crate) async fn run(
    which: &WhichCall,
    place: &Place,
    db: &Location,
    screen: &Screen,
) -> Result<()> {
    let waiting = which.find(place).await?.pending(place).await?;
    if screen.is_json() {
        screen.json(&waiting)?;
        return Ok(());
    }
    let pending = &waiting.pending;
    screen.field("call", waiting.reference())?;
    screen.field("agent", &waiting.agent)?;
    screen.field("tool", &pending.tool)?;
    screen.field("waits", format!("for {}", kind(&waiting)))?;
    if let Some(since) = waiting.since {
        screen.field("since", since)?;
    }
    if let Some(deadline) = pending.deadline {
        let passed =
            if waiting.expired { " (passed: the call can no longer be answered)" } else { "" };
        screen.field("deadline", format!("{deadline}{passed}"))?;
    }
    screen.field("digest", &pending.digest)?;
    pretty(screen, "arguments", &waiting.arguments.to_value())?;
    if let (PendingKind::Client, Some(schema)) = (pending.kind, &pending.schema) {
        pretty(screen, "result schema", &schema.to_value())?;
    }
    screen.line("")?;
    let answers: &[(&str, &str, &str)] = match pending.kind {
        PendingKind::Client => {
            &[("answer", "answer", " --result JSON"), ("or error", "answer", " --error TEXT")]
        }
        PendingKind::Approval { editable: true } => {
            &[("approve", "approve", ""), ("edit", "edit", ""), ("deny", "deny", "")]
        }
        _ => &[("approve", "approve", ""), ("deny", "deny", "")],
    };
    for (name, word, options) in answers.iter().filter(|_| !waiting.expired) {
        // The digest ensures that the approved arguments are the ones shown here.
        let digest = match *word {
            "approve" => format!(" --digest {}", pending.digest),
            _ => String::new(),
        };
        let command = follow_up::answer(word, &waiting.reference(), db);
        screen.field(name, format!("{command}{digest}{options}"))?;
    }
    let resume = follow_up::resume_root(&waiting.root, place, db).await?;
    screen.field("resume", resume.as_deref().unwrap_or(follow_up::ELSEWHERE))?;
    Ok(())
}

/// Prints a value over several lines, each of them escaped.
fn pretty(screen: &Screen, name: &str, value: &Value) -> Result<()> {
    screen.line(format!("{name}:"))?;
    for line in format!("{value:#}").lines() {
        screen.line(format!("  {}", crate::text::one_line(line)))?;
    }
    Ok(())
}
