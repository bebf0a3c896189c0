//! The spans that the workers of a story have reported, compared with those of its logs.

use std::collections::BTreeSet;

use helix_agents::store::{Page, SessionFilter, StateStore as _};
use helix_agents::telemetry::{SpanOptions, session_spans};
use helix_agents_tests_e2e::span_file::line;

use crate::support::Story;

/// Returns the problem if a span was not reported, was reported in two versions, or is not in the log. A span that was
/// reported twice in the same version is none: receivers recognise it by its id.
pub(crate) async fn problem(story: &Story) -> Result<(), String> {
    let reported = std::fs::read_to_string(story.folder().join("spans")).unwrap_or_default();
    let reported: BTreeSet<_> = reported.lines().map(str::to_owned).collect();
    let recorded = recorded(story).await;
    let lines =
        |lines: &mut dyn Iterator<Item = &String>| lines.cloned().collect::<Vec<_>>().join("\n  ");
    let missing = lines(&mut recorded.difference(&reported));
    let unknown = lines(&mut reported.difference(&recorded));
    if missing.is_empty() && unknown.is_empty() {
        return Ok(());
    }
    Err(format!(
        "spans that no process reported:\n  {missing}\nspans that the log does not have:\n  {unknown}"
    ))
}

/// Returns the spans of all logs.
async fn recorded(story: &Story) -> BTreeSet<String> {
    let store = &*story.stores().await.state;
    let mut recorded = BTreeSet::new();
    for head in store.list(&SessionFilter::default(), &Page::default()).await.unwrap() {
        let spans = session_spans(store, &head.session, &SpanOptions::default()).await.unwrap();
        recorded.extend(spans.iter().map(|span| line(span).trim_end().to_owned()));
    }
    recorded
}
