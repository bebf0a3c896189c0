//! Lists of sessions.
//!
//! An index names candidates, and the head is authoritative. A list by agent, status, runtime or
//! pending calls reads the sessions one after the other, newest first. A list by root, lease, wake
//! time or tag only reads the sessions of a smaller index.

use std::cmp::Reverse;
use std::collections::HashSet;

use futures_util::future::try_join_all;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, Result};
use helix_agents_core::id::SessionId;
use helix_agents_core::store::{Head, MAX_PAGE, Page, SessionFilter};

use super::head::Found;
use super::index::is_stale;
use crate::error::not_found;
use crate::script::Script;
use crate::{Inner, keys, script};

/// The number of index members that are read at once.
const BATCH: usize = 256;

/// The number of heads that are read concurrently.
const AT_ONCE: usize = 64;

/// A member of an index and its time.
struct Entry {
    session: SessionId,
    tag: String,
    member: String,
    time: String,
}

/// An index and the order in which it is read.
struct Index {
    key: String,
    script: &'static Script,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Generations of sessions, by creation time.
    Generations,
    /// Runs, in no particular order.
    Runs,
    /// Wake times, in no particular order.
    Wakes,
}

impl Inner {
    /// Returns sessions in list order, read with this script.
    pub(super) async fn list(
        &self,
        script: &'static Script,
        filter: &SessionFilter,
        page: &Page,
    ) -> Result<Vec<Found>> {
        filter.check()?;
        let limit = usize::try_from(page.limit.min(MAX_PAGE)).unwrap_or(usize::MAX);
        let after = match &page.after {
            None => None,
            Some(after) if after.check().is_err() => return Err(not_found(after)),
            Some(after) => Some(self.find(after).await?.ok_or_else(|| not_found(after))?),
        };
        let place = after.as_ref().map(|found| place(&found.head));
        let index = self.index(filter).await?;
        let mut list: Vec<Found> = Vec::new();
        let mut seen = HashSet::new();
        let is_by_age = index.kind == Kind::Generations;
        let mut last = match (&after, filter.created_before) {
            (Some(after), _) if is_by_age => Some((
                keys::member(&after.head.session, &after.generation),
                after.head.created_at.0.to_string(),
            )),
            // No member has an empty name, so only the time determines the start.
            (None, Some(before)) if is_by_age => {
                Some((String::new(), before.0.saturating_sub(1).to_string()))
            }
            _ => None,
        };
        while !is_by_age || list.len() < limit {
            let entries = self.entries(&index, last.as_ref()).await?;
            let Some(end) = entries.last() else { break };
            last = Some((end.member.clone(), end.time.clone()));
            let is_last = is_by_age && filter.created_from.is_some_and(|from| is_before(end, from));
            for found in self.look_up(&index, script, entries).await? {
                let head = &found.head;
                let is_after_place = place.as_ref().is_none_or(|after| *after > self::place(head));
                if is_after_place && matches(filter, head) && seen.insert(head.session.clone()) {
                    list.push(found);
                }
            }
            if is_last {
                break;
            }
        }
        list.sort_by_key(|found| Reverse(self::place(&found.head)));
        list.truncate(limit);
        Ok(list)
    }

    /// Returns the smallest index that contains all sessions that the filter selects.
    async fn index(&self, filter: &SessionFilter) -> Result<Index> {
        let generations = |key| Index { key, script: &script::INDEX_PAGE, kind: Kind::Generations };
        Ok(if filter.wake_due {
            Index { key: self.keys.wakes(), script: &script::DUE, kind: Kind::Wakes }
        } else if filter.lease_expired {
            Index { key: self.keys.runs(), script: &script::DUE, kind: Kind::Runs }
        } else if let Some(root) = &filter.root {
            generations(self.keys.of(root).tree())
        } else if let Some(key) = self.smallest_tag(filter).await? {
            generations(key)
        } else {
            generations(self.keys.sessions())
        })
    }

    /// Returns the key of the index with the fewest entries among those of the filter's tags.
    async fn smallest_tag(&self, filter: &SessionFilter) -> Result<Option<String>> {
        let mut keys = filter.tags.iter().map(|(key, value)| self.keys.tagged(key, value));
        if filter.tags.len() < 2 {
            return Ok(keys.next());
        }
        let sized = keys.map(|key| async move {
            let size = self.server.size(&key).await?;
            Ok::<_, Error>((size, key))
        });
        Ok(try_join_all(sized).await?.into_iter().min().map(|(_, key)| key))
    }

    /// Returns all sessions of a tree.
    pub(crate) async fn members(&self, tree: &str) -> Result<Vec<Found>> {
        let index =
            Index { key: tree.to_owned(), script: &script::INDEX_PAGE, kind: Kind::Generations };
        let (mut all, mut last) = (Vec::new(), None);
        while let Some(found) = self.next_of(&index, &mut last).await? {
            all.extend(found);
        }
        Ok(all)
    }

    /// Returns the next sessions after `last`, oldest first, or `None` if there are no more.
    pub(crate) async fn oldest(
        &self,
        last: &mut Option<(String, String)>,
    ) -> Result<Option<Vec<Found>>> {
        let index =
            Index { key: self.keys.sessions(), script: &script::DUE, kind: Kind::Generations };
        self.next_of(&index, last).await
    }

    /// Returns the next sessions after `last`, newest first, or `None` if there are no more. The
    /// list includes sessions that were created before the server's clock was set back.
    pub(super) async fn newest(
        &self,
        last: &mut Option<(String, String)>,
    ) -> Result<Option<Vec<Found>>> {
        let (key, script) = (self.keys.sessions(), &script::INDEX_PAGE);
        self.next_of(&Index { key, script, kind: Kind::Generations }, last).await
    }

    /// Returns the sessions of the next entries of an index after `last`, or `None` if there are no
    /// more entries.
    async fn next_of(
        &self,
        index: &Index,
        last: &mut Option<(String, String)>,
    ) -> Result<Option<Vec<Found>>> {
        let entries = self.entries(index, last.as_ref()).await?;
        let Some(end) = entries.last() else { return Ok(None) };
        *last = Some((end.member.clone(), end.time.clone()));
        Ok(Some(self.look_up(index, &script::HEAD, entries).await?))
    }

    async fn entries(&self, index: &Index, last: Option<&(String, String)>) -> Result<Vec<Entry>> {
        let count = BATCH.to_string();
        let mut args = vec![count.as_bytes()];
        if let Some((member, time)) = last {
            args.extend([member.as_bytes(), time.as_bytes()]);
        }
        let mut reply = self.server.eval(index.script, &[&index.key], &args).await?;
        let mut entries = Vec::new();
        while !reply.is_empty() {
            let (member, time) = (reply.text()?, reply.text()?);
            if let Some((session, tag)) = keys::parts(&member) {
                entries.push(Entry { session, tag: tag.to_owned(), member: member.clone(), time });
            }
        }
        Ok(entries)
    }

    /// Returns the sessions of index entries. Removes entries that will never have a session.
    async fn look_up(
        &self,
        index: &Index,
        script: &'static Script,
        entries: Vec<Entry>,
    ) -> Result<Vec<Found>> {
        let look_up = stream::iter(entries).map(|entry| async move {
            let found = self.find_by(script, &entry.session).await?;
            let is_generation =
                |found: &Found| index.kind != Kind::Generations || found.generation == entry.tag;
            let Some(found) = found.filter(is_generation) else {
                if index.key == self.keys.sessions() {
                    // A root also has an entry in the index of its own tree, which is not listed once the root is gone.
                    // That entry is removed first, because only this one leads to it.
                    let tree = self.keys.of(&entry.session).tree();
                    self.drop_if_old(&tree, &entry.member, &entry.time).await?;
                }
                self.drop_if_old(&index.key, &entry.member, &entry.time).await?;
                return Ok(None);
            };
            let (current, version) = (&found, found.head.position.version);
            match index.kind {
                Kind::Runs if is_stale(&entry.tag, &current.ran, version) => {
                    self.remove_run_entry(&entry.session, &entry.tag).await?;
                }
                Kind::Wakes if is_stale(&entry.tag, &current.woken, version) => {
                    self.remove_wake_entry(&entry.session, &entry.tag).await?;
                }
                Kind::Generations | Kind::Runs | Kind::Wakes => {}
            }
            Ok(Some(found))
        });
        let found: Vec<Option<Found>> = look_up.buffered(AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }
}

/// Returns `true` if an entry's session was created before that time.
fn is_before(entry: &Entry, time: Timestamp) -> bool {
    entry.time.parse::<i64>().is_ok_and(|at| at < time.0)
}

/// Returns the sort key of a head in a list. The highest key comes first.
fn place(head: &Head) -> (Timestamp, SessionId) {
    (head.created_at, head.session.clone())
}

fn matches(filter: &SessionFilter, head: &Head) -> bool {
    let SessionFilter {
        agent,
        status,
        root,
        runtime,
        pending,
        lease_expired,
        wake_due,
        created_from: _,
        created_before: _,
        tags,
    } = filter;
    agent.as_ref().is_none_or(|agent| *agent == head.created.agent)
        && status.is_none_or(|status| status == head.summary.status)
        && root.as_ref().is_none_or(|root| *root == head.created.root)
        && runtime.as_ref().is_none_or(|runtime| *runtime == head.summary.runtime)
        && (!pending || head.summary.pending > 0)
        && (!lease_expired || (head.summary.run.is_some() && !head.is_leased()))
        && (!wake_due || head.summary.wake_at.is_some_and(|at| at <= head.read_at))
        && filter.is_created_in_range(head.created_at)
        && head.created.has_tags(tags)
}
