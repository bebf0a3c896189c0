//! Usage over many sessions, from what stores keep of each of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::SessionReader;
use crate::clock::Timestamp;
use crate::error::{ErrorCode, Result};
use crate::id::SessionId;
use crate::store::{Head, Page, SessionFilter, SessionUsage, StateStore};
use crate::usage::UsageRollup;

/// How many sessions are read at once. It bounds the memory of a query.
const PAGE: u32 = 250;

/// The most names of each kind in a report: models, tools, sub-agents, custom sources.
pub const MAX_REPORT_SOURCES: usize = 10_000;

/// A selection of sessions whose usage is added up. All given conditions must hold.
///
/// Times are those of a session's creation: usage belongs to its session as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageQuery {
    /// The sessions.
    pub filter: SessionFilter,
    /// Labels that a session must have. It may have others.
    pub tags: BTreeMap<String, String>,
}

impl UsageQuery {
    fn selects(&self, head: &Head) -> bool {
        self.tags.iter().all(|(key, value)| head.created.tags.get(key) == Some(value))
    }
}

/// The usage of several sessions, added up.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct UsageReport {
    /// How many sessions were counted.
    pub sessions: u64,
    /// Their usage by model, tool, sub-agent and custom source. The tokens of a sub-agent are those
    /// that its callers recorded when it ended, and count in no total: each child is a session of
    /// its own.
    pub usage: UsageRollup,
}

/// Adds up the usage of all sessions that a query selects, children as sessions of their own.
///
/// Each session is counted once, with what it used itself: a fork without what it shares with its
/// original, a session that went back to a checkpoint with all that it spent, a deleted session not
/// at all. Sessions that are created, used or deleted meanwhile are counted or not; what was
/// recorded before the call is.
///
/// It reads page by page what the store keeps beside each head, and holds one page and the sum. The
/// log is read only of a session whose usage no append has recorded, as in databases of older
/// versions. Beyond [`MAX_REPORT_SOURCES`] names of a kind, further ones are added up under
/// [`OTHERS`](crate::usage::OTHERS).
///
/// # Errors
/// The store's, and those of a log that has to be read and cannot be.
///
/// # Cancel safety
/// It changes nothing.
pub async fn usage_of_sessions(logs: SessionReader<'_>, query: &UsageQuery) -> Result<UsageReport> {
    let mut usages = Usages::of(logs.store, &query.filter);
    let mut report = UsageReport::default();
    while let Some(page) = usages.next_page().await? {
        for found in page.iter().filter(|found| query.selects(&found.head)) {
            if let Some(used) = used_by(logs, found).await? {
                report.sessions += 1;
                report.usage.add_up_to(&used, MAX_REPORT_SOURCES);
            }
        }
    }
    Ok(report)
}

/// The usage of a session that was listed; none if it was deleted since.
pub(super) async fn used_by(
    logs: SessionReader<'_>,
    found: &SessionUsage,
) -> Result<Option<Arc<UsageRollup>>> {
    if let Some(used) = &found.usage {
        return Ok(Some(Arc::clone(used)));
    }
    match logs.overview(&found.head.session).await {
        Ok(fold) => Ok(Some(Arc::clone(fold.own_usage()))),
        Err(error) if error.code() == ErrorCode::SessionNotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The usage of the sessions that a filter selects, page by page, each session once.
pub(super) struct Usages<'a> {
    store: &'a dyn StateStore,
    filter: SessionFilter,
    page: Page,
    /// The place of the last session that was returned. The list descends.
    last: Option<(Timestamp, SessionId)>,
}

impl<'a> Usages<'a> {
    pub(super) fn of(store: &'a dyn StateStore, filter: &SessionFilter) -> Self {
        let page = Page { after: None, limit: PAGE };
        Self { store, filter: filter.clone(), page, last: None }
    }

    /// The next sessions; none at the end.
    pub(super) async fn next_page(&mut self) -> Result<Option<Vec<SessionUsage>>> {
        let mut found = match self.store.list_usage(&self.filter, &self.page).await {
            Err(error) if error.code() == ErrorCode::SessionNotFound => self.restarted().await?,
            found => found?,
        };
        let Some(end) = found.last() else { return Ok(None) };
        let end = place(&end.head);
        self.page.after = Some(end.1.clone());
        if let Some(last) = &self.last {
            found.retain(|it| place(&it.head) < *last);
        }
        // After a restart a page may hold nothing new.
        if self.last.as_ref().is_none_or(|last| end < *last) {
            self.last = Some(end);
        }
        Ok(Some(found))
    }

    /// The list from the creation time of the last session on, which was deleted.
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
