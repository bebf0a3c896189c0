//! `helix sessions list`.

use anyhow::Result;
use clap::Args;
use helix_agents::store::{Head, Page, SessionFilter};
use helix_agents::terminal::Screen;
use serde_json::json;

use crate::place::Place;
use crate::session_tags;
use crate::text::table;

/// The options of the command.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The maximum number of sessions.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Start after this session, the last one of the previous page.
    #[arg(long, value_name = "SESSION")]
    after: Option<String>,
    /// Only sessions with this tag; can be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = session_tags::parse)]
    tag: Vec<(String, String)>,
}

/// Runs the command.
pub(crate) async fn run(args: &ListArgs, place: &Place, screen: &Screen) -> Result<()> {
    let after = args.after.as_deref().map(Into::into);
    let tags = args.tag.iter().cloned();
    let filter = tags.fold(SessionFilter::new(), |filter, (key, value)| filter.tag(key, value));
    show(&filter, &Page { after, limit: args.limit }, place, screen).await
}

/// Shows a page of the sessions that a filter selects.
pub(crate) async fn show(
    filter: &SessionFilter,
    page: &Page,
    place: &Place,
    screen: &Screen,
) -> Result<()> {
    let heads = place.list(filter, page).await?;
    let mut listed = Vec::new();
    for head in heads {
        let model = place.model(&head).await?;
        listed.push((head, model));
    }
    if screen.is_json() {
        let rows: Vec<_> = listed.iter().map(|(head, model)| row(head, model.as_deref())).collect();
        screen.json(&rows)?;
        return Ok(());
    }
    let rows: Vec<_> = listed
        .into_iter()
        .map(|(head, model)| {
            [
                head.session.to_string(),
                head.state_name().to_owned(),
                head.created.agent.to_string(),
                head.position.version.to_string(),
                head.updated_at.to_string(),
                model.unwrap_or_default(),
            ]
        })
        .collect();
    for line in table(["SESSION", "STATUS", "AGENT", "EVENTS", "UPDATED", "MODEL"], &rows) {
        screen.line(line)?;
    }
    Ok(())
}

/// The JSON form of a session, with its status.
fn row(head: &Head, model: Option<&str>) -> serde_json::Value {
    json!({ "session": head.session, "status": head.state_name(), "model": model, "head": head })
}
