//! Lists of the sessions that a principal can access.

use std::fmt;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::id::SessionId;
use helix_agents_core::store::{Head, MAX_PAGE, Page, SessionFilter, StateStore};

use super::OWNER_TAG;

/// The number of heads that one request reads at most to find root sessions among their children.
const MAX_SCANNED: usize = 20_000;

/// The owners whose sessions a list contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owners<'a> {
    /// All owners, and sessions without one.
    All,
    /// This owner.
    One(&'a str),
}

/// The position at which a list continues. It does not depend on sessions that are deleted meanwhile.
///
/// Its text is the time in milliseconds, followed by a dot and the bytes of the id in hexadecimal if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The creation time of the next sessions, or a later time.
    created_at: Timestamp,
    /// The last session of this time that was listed. It is one of the caller: a cursor reveals no id of another owner.
    after: Option<SessionId>,
}

impl Cursor {
    /// Returns the position behind a session.
    fn behind(head: &Head) -> Self {
        Self { created_at: head.created_at, after: Some(head.session.clone()) }
    }

    /// Returns `true` if the list has the session behind this position: it is in descending order of time and id.
    fn precedes(&self, head: &Head) -> bool {
        match &self.after {
            Some(after) => (head.created_at, &head.session) < (self.created_at, after),
            None => head.created_at <= self.created_at,
        }
    }

    /// Restricts a filter to the sessions that can be behind this position.
    fn bound(&self, filter: &mut SessionFilter) {
        let end = Timestamp(self.created_at.0.saturating_add(1));
        filter.created_before = Some(filter.created_before.map_or(end, |given| given.min(end)));
    }

    /// Parses the text of a cursor.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (time, after) = match text.split_once('.') {
            Some((time, digits)) => (time, Some(parse_id(digits)?)),
            None => (text, None),
        };
        Some(Self { created_at: Timestamp(time.parse().ok()?), after })
    }
}

fn parse_id(digits: &str) -> Option<SessionId> {
    // The parser below would accept a sign.
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = (0..digits.len()).step_by(2).map(|at| digits.get(at..at + 2));
    let bytes =
        pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect::<Option<Vec<u8>>>()?;
    String::from_utf8(bytes).ok().map(SessionId::from)
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.created_at.0)?;
        let Some(after) = &self.after else { return Ok(()) };
        f.write_str(".")?;
        after.as_str().bytes().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A part of a list.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The heads of root sessions, newest first.
    pub(crate) heads: Vec<Head>,
    /// The position at which the list continues, if it may have more.
    pub(crate) next: Option<Cursor>,
}

/// Returns at most `limit` root sessions of these owners.
///
/// The store selects the sessions of one owner by their tag, which only root sessions have. In a list of all owners, heads
/// of children are read and dropped here: at most [`MAX_SCANNED`] heads for each request. A part of such a list may be
/// empty although there are more sessions.
///
/// # Errors
/// Returns the errors of the store.
pub(crate) async fn list(
    store: &dyn StateStore,
    owners: Owners<'_>,
    filter: &SessionFilter,
    from: Option<Cursor>,
    limit: usize,
) -> Result<Listing> {
    let mut filter = filter.clone();
    let mut page_size = MAX_PAGE;
    if let Owners::One(owner) = owners {
        filter = filter.tag(OWNER_TAG, owner);
        // The session after the last one shows that there are more.
        page_size = u32::try_from(limit.saturating_add(1)).unwrap_or(MAX_PAGE).min(MAX_PAGE);
    }
    let (mut heads, mut scanned) = (Vec::new(), 0);
    // The position up to which sessions are left out, and the last session of the previous page.
    let (mut start, mut last) = (from, None::<Head>);
    loop {
        start.iter().for_each(|start| start.bound(&mut filter));
        let after = last.as_ref().map(|last| last.session.clone());
        let found = match store.list(&filter, &Page { after, limit: page_size }).await {
            // The last session was deleted meanwhile. The list continues at its position.
            Err(error) if error.code() == ErrorCode::SessionNotFound && last.is_some() => {
                start = last.take().as_ref().map(Cursor::behind);
                continue;
            }
            found => found?,
        };
        let (count, is_last) = (found.len(), found.len() < page_size as usize);
        scanned += count;
        last = found.last().cloned();
        for (index, head) in found.into_iter().enumerate() {
            let is_root = head.created.parent.is_none();
            let is_behind = start.as_ref().is_none_or(|start| start.precedes(&head));
            if !(is_root && is_behind) {
                continue;
            }
            heads.push(head);
            if heads.len() >= limit {
                let has_more = !is_last || index + 1 < count;
                let next = heads.last().filter(|_| has_more).map(Cursor::behind);
                return Ok(Listing { heads, next });
            }
        }
        let Some(last) = last.as_ref().filter(|_| !is_last) else {
            return Ok(Listing { heads, next: None });
        };
        if scanned >= MAX_SCANNED {
            // A part with sessions continues behind its last one, so that none is listed twice.
            let in_time = || Cursor { created_at: last.created_at, after: None };
            let next = Some(heads.last().map_or_else(in_time, Cursor::behind));
            return Ok(Listing { heads, next });
        }
    }
}

/// Returns `true` if the owner has at least `limit` sessions.
///
/// # Errors
/// Returns the errors of the store.
pub(crate) async fn owns_at_least(
    store: &dyn StateStore,
    owner: &str,
    limit: usize,
) -> Result<bool> {
    let (mut count, mut next) = (0, None);
    loop {
        let rest = limit.max(1) - count;
        let listing = list(store, Owners::One(owner), &SessionFilter::new(), next, rest).await?;
        count += listing.heads.len();
        next = listing.next;
        if count >= limit || next.is_none() {
            return Ok(count >= limit);
        }
    }
}

#[cfg(test)]
mod tests;
