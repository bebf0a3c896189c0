//! The spans that the workers of a story have reported, compared with those of its logs.

use std::collections::{BTreeMap, BTreeSet};

use helix_agents::event::{Event, decode};
use helix_agents::id::SessionId;
use helix_agents::session::Session;
use helix_agents::store::{Page, SessionFilter, StateStore};
use helix_agents::telemetry::{SpanOptions, spans};
use helix_agents_tests_e2e::span_file::line;

use crate::support::Story;

/// The number of appends that are read at once.
const PAGE: u32 = 256;

/// The append that a span belongs to: the session and the version.
type Append = (SessionId, u64);

/// The spans of the logs of a story.
#[derive(Debug, Default)]
struct RecordedSpans {
    /// The append of each span.
    appends: BTreeMap<String, Append>,
    /// The appends that end a run.
    ends: BTreeSet<Append>,
}

/// Returns the problem if a span was not reported, was reported in two versions, or is not in the log. A span that was
/// reported twice in the same version is none: receivers recognise it by its id.
///
/// A worker that is killed after an append that ends a run has nothing left to do, so no other process may continue the
/// session and report that append. In each session, this can happen once for each of the `kills`.
pub(crate) async fn problem(story: &Story, kills: usize) -> Result<(), String> {
    let reported = std::fs::read_to_string(story.folder().join("spans")).unwrap_or_default();
    let reported: BTreeSet<_> = reported.lines().map(str::to_owned).collect();
    let recorded = RecordedSpans::of(story).await;
    let unknown: Vec<_> =
        reported.iter().filter(|span| !recorded.appends.contains_key(*span)).collect();
    if !unknown.is_empty() {
        return Err(format!("spans that the log does not have: {unknown:#?}"));
    }
    let missing: Vec<_> =
        recorded.appends.iter().filter(|(span, _)| !reported.contains(*span)).collect();
    let unreported: BTreeSet<_> = missing.iter().map(|(_, append)| *append).collect();
    let ends = unreported.iter().all(|append| recorded.ends.contains(*append));
    let most = unreported
        .iter()
        .map(|(session, _)| unreported.iter().filter(|(other, _)| other == session).count());
    if ends && most.max().unwrap_or(0) <= kills {
        return Ok(());
    }
    Err(format!("spans that no process reported: {missing:#?}"))
}

impl RecordedSpans {
    async fn of(story: &Story) -> Self {
        let store = &*story.stores().await.state;
        let mut recorded = Self::default();
        for head in store.list(&SessionFilter::default(), &Page::default()).await.unwrap() {
            recorded.read(store, &head.session).await;
        }
        recorded
    }

    async fn read(&mut self, store: &dyn StateStore, session: &SessionId) {
        let mut fold = Session::new(session.clone());
        loop {
            let page = store.read_log(session, fold.position().version, PAGE).await.unwrap();
            if page.is_empty() {
                return;
            }
            for append in page {
                fold.apply_append(&append).unwrap();
                let events = decode(session, &append).unwrap();
                let key = (session.clone(), append.version());
                if events.iter().any(|recorded| matches!(recorded.event, Event::Forked { .. })) {
                    // The events before belong to the original.
                    self.appends.retain(|_, (of, _)| of != session);
                }
                if events.iter().any(|recorded| matches!(recorded.event, Event::RunEnded { .. })) {
                    self.ends.insert(key.clone());
                }
                for span in spans(&fold, &events, &SpanOptions::default()) {
                    self.appends.insert(line(&span).trim_end().to_owned(), key.clone());
                }
            }
        }
    }
}
