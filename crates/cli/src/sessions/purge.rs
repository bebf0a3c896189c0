//! `helix sessions purge`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use helix_agents::AnyStore;
use helix_agents::store::{Purge, SessionStatus, StateStore as _};
use helix_agents::terminal::Screen;
use jiff::{Span, SpanRelativeTo};
use serde_json::json;

/// The options of the command.
#[derive(Debug, Args)]
pub(crate) struct PurgeArgs {
    /// The minimum time since the last event, such as `30d`, `12h` or `1d 6h`.
    #[arg(long, value_name = "TIME", value_parser = age)]
    older_than: Duration,
    /// Only sessions with this status: `active`, `completed`, `failed`, `interrupted` or `aborted`.
    /// Can be repeated. Suspended sessions are `active`.
    #[arg(
        long,
        value_name = "STATUS",
        value_parser = status,
        default_values = ["completed", "failed", "aborted"],
    )]
    status: Vec<SessionStatus>,
}

/// Runs the command.
pub(crate) async fn run(args: &PurgeArgs, store: &AnyStore, screen: &Screen) -> Result<()> {
    let purge = Purge { older_than: args.older_than, statuses: args.status.clone() };
    let purged = store.purge(&purge).await?;
    if screen.is_json() {
        screen.json(&json!({ "purged": purged }))?;
    } else {
        screen.line(format!("deleted {purged} sessions, including child sessions"))?;
    }
    Ok(())
}

/// Parses an age on the command line.
pub(crate) fn age(text: &str) -> Result<Duration, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}; write it like `30d`"))?;
    let age = span.to_duration(SpanRelativeTo::days_are_24_hours());
    let age = age.map_err(|error| format!("{error}; use days and smaller units"))?;
    age.try_into().map_err(|_| "an age must not be negative".to_owned())
}

/// Parses a status on the command line.
pub(crate) fn status(name: &str) -> Result<SessionStatus, String> {
    SessionStatus::parse(name).ok_or_else(|| {
        format!("the statuses are: {}", SessionStatus::ALL.map(SessionStatus::as_str).join(", "))
    })
}
