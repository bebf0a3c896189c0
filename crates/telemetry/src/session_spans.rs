//! The spans of recorded sessions.

use std::collections::BTreeSet;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::event::{Event, decode};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::Session;
use helix_agents_core::store::{MAX_PAGE, Page, SessionFilter, StateStore};

use crate::options::SpanOptions;
use crate::span::Span;
use crate::spans::spans;

/// The number of appends that are read at once.
const PAGE: u32 = 256;

/// Returns the spans of a session from its log, without those of its sub-agents. With the same options, they equal those that were
/// exported while the session ran. Spans from before a fork are returned for the original session only.
///
/// # Errors
/// Returns [`SessionNotFound`](helix_agents_core::error::ErrorCode::SessionNotFound), the errors of the store, and those of a
/// log that cannot be read.
pub async fn session_spans(
    store: &dyn StateStore,
    session: &SessionId,
    options: &SpanOptions,
) -> Result<Vec<Span>> {
    let mut fold = Session::new(session.clone());
    let mut found = Vec::new();
    loop {
        let page = store.read_log(session, fold.position().version, PAGE).await?;
        if page.is_empty() {
            return Ok(found);
        }
        for append in page {
            fold.apply_append(&append)?;
            let events = decode(session, &append)?;
            if events.iter().any(|recorded| matches!(recorded.event, Event::Forked { .. })) {
                found.clear();
            }
            found.extend(spans(&fold, &events, options));
        }
    }
}

/// Returns the spans of a session and of its child sessions at all depths, from their logs. [`session_spans`] describes the spans.
///
/// # Errors
/// Returns the errors of [`session_spans`].
pub async fn tree_spans(
    store: &dyn StateStore,
    session: &SessionId,
    options: &SpanOptions,
) -> Result<Vec<Span>> {
    let mut found = Vec::new();
    for session in tree_of(store, session).await? {
        found.extend(session_spans(store, &session, options).await?);
    }
    Ok(found)
}

/// Returns a session and the sessions below it.
async fn tree_of(store: &dyn StateStore, session: &SessionId) -> Result<Vec<SessionId>> {
    let head = store.head(session).await?.ok_or_else(|| {
        let message = "the session does not exist";
        Error::new(ErrorCode::SessionNotFound, message).with_context("session", session)
    })?;
    let filter = SessionFilter::new().root(head.created.root);
    let mut others = Vec::new();
    let mut page = Page { after: None, limit: MAX_PAGE };
    loop {
        let listed = store.list(&filter, &page).await?;
        let Some(last) = listed.last() else { break };
        page.after = Some(last.session.clone());
        others.extend(
            listed
                .into_iter()
                .filter_map(|head| head.created.parent.map(|parent| (head.session, parent))),
        );
    }
    let mut tree = vec![session.clone()];
    let mut known = BTreeSet::from([session.clone()]);
    loop {
        let (found, rest): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|(_, parent)| known.contains(parent));
        if found.is_empty() {
            return Ok(tree);
        }
        known.extend(found.iter().map(|(child, _)| child.clone()));
        tree.extend(found.into_iter().map(|(child, _)| child));
        others = rest;
    }
}
