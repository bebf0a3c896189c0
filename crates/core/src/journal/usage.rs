//! Usage across many sessions, computed from the usage that stores keep for each session.

use std::sync::Arc;

use serde::Serialize;

use super::SessionReader;
use crate::clock::Timestamp;
use crate::error::{ErrorCode, Result};
use crate::id::SessionId;
use crate::store::{Head, Page, SessionFilter, SessionUsage, StateStore};
use crate::usage::UsageRollup;

/// The number of sessions that are read at once. It bounds the memory of a query.
const PAGE: u32 = 250;

/// The maximum number of names of each kind in a report: models, tools, sub-agents, custom sources.
pub const MAX_REPORT_SOURCES: usize = 10_000;

/// A selection of sessions whose usage is added up. All given conditions must hold.
///
/// Time conditions apply to the creation of a session, because usage is stored per session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageQuery {
    /// The filter that selects sessions.
    pub filter: SessionFilter,
}

impl UsageQuery {
    /// Creates a query over all sessions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the filter that selects sessions.
    #[must_use]
    pub fn filter(mut self, filter: SessionFilter) -> Self {
        self.filter = filter;
        self
    }
}

/// The usage of several sessions, added up.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct UsageReport {
    /// The number of sessions that were counted.
    pub sessions: u64,
    /// The usage by model, tool, sub-agent and custom source. A sub-agent's tokens are those that
    /// its callers recorded when it ended. They are not part of any total, because each child is
    /// counted as a session of its own.
    pub usage: UsageRollup,
}

/// Adds up the usage of all sessions that a query selects. Children count as separate sessions.
///
/// Each session is counted once, with its own usage: a fork without the prefix that it shares with
/// its original, a rewound session with everything that it used, a deleted session not at all.
/// Sessions that are created, used or deleted during the call may or may not be counted. Usage that
/// was recorded before the call is counted.
///
/// The function reads the usage that the store keeps with each head, page by page, and holds one
/// page and the sum. For a session with a current run, or without stored usage, it reads the last
/// snapshot and the appends after it, or the whole log if there is no snapshot. Beyond
/// [`MAX_REPORT_SOURCES`] names of a kind, further ones are added up under
/// [`OTHER_NAMES`](crate::usage::OTHER_NAMES).
///
/// # Errors
/// Returns the errors of the store, and of a log that has to be read and cannot be.
///
/// # Cancel safety
/// The function is read-only and can be cancelled at any time.
pub async fn usage_of_sessions(logs: SessionReader<'_>, query: &UsageQuery) -> Result<UsageReport> {
    let mut usages = Usages::of(logs.store, &query.filter);
    let mut report = UsageReport::default();
    while let Some(page) = usages.next_page().await? {
        for found in &page {
            if let Some(used) = used_by(logs, found).await? {
                report.sessions += 1;
                report.usage.add_up_to(&used, MAX_REPORT_SOURCES);
            }
        }
    }
    Ok(report)
}

/// Returns the usage of a listed session, or `None` if it was deleted since. A run reports its usage
/// to the store when it ends, so the usage of a session with a current run is read from its log.
pub(super) async fn used_by(
    logs: SessionReader<'_>,
    found: &SessionUsage,
) -> Result<Option<Arc<UsageRollup>>> {
    let has_current_run = found.head.summary.run.is_some();
    if let Some(used) = found.usage.as_ref().filter(|_| !has_current_run) {
        return Ok(Some(Arc::clone(used)));
    }
    match logs.overview(&found.head.session).await {
        Ok(fold) => Ok(Some(Arc::new(fold.usage().clone()))),
        Err(error) if error.code() == ErrorCode::SessionNotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Iterates over the usage of the sessions that a filter selects, page by page, each session once.
pub(super) struct Usages<'a> {
    store: &'a dyn StateStore,
    filter: SessionFilter,
    page: Page,
    /// The position of the last returned session. The list is in descending order.
    last: Option<(Timestamp, SessionId)>,
}

impl<'a> Usages<'a> {
    pub(super) fn of(store: &'a dyn StateStore, filter: &SessionFilter) -> Self {
        let page = Page { after: None, limit: PAGE };
        Self { store, filter: filter.clone(), page, last: None }
    }

    /// Returns the next sessions, or `None` at the end.
    pub(super) async fn next_page(&mut self) -> Result<Option<Vec<SessionUsage>>> {
        let mut found = match self.store.list_usage(&self.filter, &self.page).await {
            Err(error) if error.code() == ErrorCode::SessionNotFound => self.restarted().await?,
            found => found?,
        };
        let Some(end) = found.last() else { return Ok(None) };
        let end = place(&end.head);
        self.page.after = Some(end.1.clone());
        if let Some(last) = &self.last {
            found.retain(|entry| place(&entry.head) < *last);
        }
        // After a restart a page may hold nothing new.
        if self.last.as_ref().is_none_or(|last| end < *last) {
            self.last = Some(end);
        }
        Ok(Some(found))
    }

    /// Lists again from the creation time of the last returned session, which was deleted.
    async fn restarted(&mut self) -> Result<Vec<SessionUsage>> {
        self.page.after = None;
        if let Some((at, _)) = &self.last {
            self.filter.created_before = Some(Timestamp(at.0.saturating_add(1)));
        }
        self.store.list_usage(&self.filter, &self.page).await
    }
}

fn place(head: &Head) -> (Timestamp, SessionId) {
    (head.created_at, head.session.clone())
}
