//! `helix approvals show`.

use std::path::Path;

use anyhow::Result;
use helix_agents::AnyStore;
use helix_agents::event::PendingKind;
use serde_json::Value;

use super::call::WhichCall;
use crate::follow_up;
use crate::pending_call::{WaitingCall, kind};
use crate::screen::Screen;

/// Runs the command.
pub(crate) async fn run(
    which: &WhichCall,
    store: &AnyStore,
    db: &Path,
    screen: &Screen,
) -> Result<()> {
    let waiting = which.find(store).await?.waiting(store).await?;
    if screen.is_json() {
        screen.json(&waiting)?;
        return Ok(());
    }
    let WaitingCall { reference, root, expired, view } = &waiting;
    let pending = &view.pending;
    screen.field("call", reference)?;
    screen.field("agent", &view.agent)?;
    screen.field("tool", &pending.tool)?;
    screen.field("waits", format!("for {}", kind(view)))?;
    if let Some(since) = view.since {
        screen.field("since", since)?;
    }
    if let Some(deadline) = pending.deadline {
        let passed = if *expired { " (passed: the call can no longer be answered)" } else { "" };
        screen.field("deadline", format!("{deadline}{passed}"))?;
    }
    screen.field("digest", &pending.digest)?;
    pretty(screen, "arguments", &view.arguments.to_value())?;
    if let (PendingKind::Client, Some(schema)) = (pending.kind, &pending.schema) {
        pretty(screen, "result schema", &schema.to_value())?;
    }
    screen.line("")?;
    let answers: &[(&str, &str, &str)] = match pending.kind {
        PendingKind::Client => {
            &[("answer", "answer", " --result JSON"), ("failed", "answer", " --error TEXT")]
        }
        PendingKind::Approval { editable: true } => {
            &[("approve", "approve", ""), ("edit", "edit", ""), ("deny", "deny", "")]
        }
        _ => &[("approve", "approve", ""), ("deny", "deny", "")],
    };
    for (name, word, options) in answers.iter().filter(|_| !expired) {
        // The digest ensures that the approved arguments are the ones shown here.
        let digest = match *word {
            "approve" => format!(" --digest {}", pending.digest),
            _ => String::new(),
        };
        screen.field(name, format!("{}{digest}{options}", waiting.command(word, db)))?;
    }
    let resume = follow_up::resume_root(root, store, db).await?;
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
