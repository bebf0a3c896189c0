//! `helix sessions list`.

use anyhow::Result;
use clap::Args;
use helix_agents::prelude::SqliteStore;
use helix_agents::store::{Head, Page, SessionFilter, StateStore as _};
use serde_json::json;

use super::standing;
use crate::cast::MODEL;
use crate::screen::Screen;
use crate::text::table;

/// The options of the command.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// At most this many.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Go on after this session, the last one of the list before.
    #[arg(long, value_name = "SESSION")]
    after: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(args: &ListArgs, store: &SqliteStore, screen: &Screen) -> Result<()> {
    let after = args.after.as_deref().map(Into::into);
    show(Page { after, limit: args.limit }, store, screen).await
}

/// Shows a page of sessions.
pub(crate) async fn show(page: Page, store: &SqliteStore, screen: &Screen) -> Result<()> {
    let heads = store.list(&SessionFilter::default(), &page).await?;
    if screen.is_json() {
        let rows: Vec<_> = heads.iter().map(row).collect();
        screen.json(&rows)?;
        return Ok(());
    }
    let rows: Vec<_> = heads
        .iter()
        .map(|head| {
            [
                head.session.to_string(),
                standing(head).to_owned(),
                head.created.agent.to_string(),
                head.position.version.to_string(),
                head.updated_at.to_string(),
                head.created.tags.get(MODEL).cloned().unwrap_or_default(),
            ]
        })
        .collect();
    for line in table(["SESSION", "STATUS", "AGENT", "EVENTS", "UPDATED", "MODEL"], &rows) {
        screen.line(line)?;
    }
    Ok(())
}

/// A head for programs: with how the session stands.
pub(super) fn row(head: &Head) -> serde_json::Value {
    json!({ "session": head.session, "standing": standing(head), "head": head })
}
