//! The reference model of a store, as simple as possible. Every store operation is compared with it.
//!
//! It is written from the contract in `helix_agents_core::store`, with lists and no indexes. It handles one operation
//! at a time, as the store in memory does, so a history of both is linearizable if they agree on every answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Guard, Head, LeaseChange, MAX_PAGE,
    NewSession, Page, Position, Purge, Renewal, SessionFilter, SessionUsage, Snapshot,
    StoredAppend, Summary,
};
use helix_agents_core::usage::UsageRollup;

/// One session.
#[derive(Debug, Clone)]
struct Entry {
    head: Head,
    log: Vec<StoredAppend>,
    usage: Option<Arc<UsageRollup>>,
    snapshot: Option<Snapshot>,
}

/// All sessions. An operation on a session that does not exist returns `None`.
#[derive(Debug, Default)]
pub(crate) struct Model(BTreeMap<SessionId, Entry>);

impl Entry {
    fn start(
        new: NewSession,
        first: Append,
        summary: Summary,
        log: Vec<StoredAppend>,
        now: Timestamp,
    ) -> Self {
        let head = Head {
            session: first.session.clone(),
            created: new,
            position: log.last().map_or_else(Position::start, StoredAppend::position),
            summary,
            lease_until: None,
            created_at: now,
            updated_at: now,
            read_at: now,
        };
        let mut entry = Self { head, log, usage: None, snapshot: None };
        entry.take(first, now);
        entry
    }

    /// Returns the number of appends up to a position, or `None` if the log never had this position.
    fn place(&self, position: &Position) -> Option<usize> {
        if *position == Position::start() {
            return Some(0);
        }
        self.log.iter().position(|append| append.position() == *position).map(|index| index + 1)
    }

    fn take(&mut self, append: Append, now: Timestamp) {
        let first = self.head.position.version + 1;
        let Append { id, run, schema, count, body, summary, usage, lease, .. } = append;
        let stored = StoredAppend { first, count, id, run, schema, at: now, body };
        self.head.position = stored.position();
        self.head.updated_at = now;
        match lease {
            LeaseChange::Keep => {}
            LeaseChange::Take(ttl) => self.head.lease_until = Some(now.after(ttl)),
            LeaseChange::Clear => self.head.lease_until = None,
        }
        if let Some(summary) = summary {
            self.head.summary = summary;
        }
        if let Some(usage) = usage {
            self.usage = Some(usage);
        }
        self.log.push(stored);
    }

    fn head_at(&self, now: Timestamp) -> Head {
        Head { read_at: now.max(self.head.updated_at), ..self.head.clone() }
    }
}

impl Model {
    pub(crate) fn create(
        &mut self,
        new: NewSession,
        first: Append,
        now: Timestamp,
    ) -> Option<CreateOutcome> {
        let summary = first.summary.clone()?;
        if let Some(entry) = self.0.get(&first.session) {
            return Some(match entry.log.first() {
                Some(same) if same.id == first.id && same.first == 1 => {
                    CreateOutcome::Created { at: same.at }
                }
                _ => CreateOutcome::Exists,
            });
        }
        if first.required_parent(&new).is_some_and(|parent| !self.0.contains_key(parent)) {
            return Some(CreateOutcome::ParentMissing);
        }
        let id = first.session.clone();
        self.0.insert(id, Entry::start(new, first, summary, Vec::new(), now));
        Some(CreateOutcome::Created { at: now })
    }

    pub(crate) fn fork(
        &mut self,
        from: &SessionId,
        new: NewSession,
        first: Append,
        now: Timestamp,
    ) -> Option<ForkOutcome> {
        let summary = first.summary.clone()?;
        if let Some(entry) = self.0.get(&first.session) {
            let next = entry.place(&first.expected).and_then(|place| entry.log.get(place));
            return Some(match next {
                Some(same) if same.id == first.id => ForkOutcome::Created { at: same.at },
                _ => ForkOutcome::Exists,
            });
        }
        let original = self.0.get(from)?;
        let Some(place) = original.place(&first.expected) else {
            return Some(ForkOutcome::HistoryLost);
        };
        let shared = original.log.get(..place)?.to_vec();
        let at = shared.last().map_or(now, |last| now.max(last.at));
        let id = first.session.clone();
        self.0.insert(id, Entry::start(new, first, summary, shared, at));
        Some(ForkOutcome::Created { at })
    }

    pub(crate) fn save_snapshot(&mut self, session: &SessionId, snapshot: Snapshot) {
        let Some(entry) = self.0.get_mut(session) else { return };
        let version = snapshot.position.version;
        let newer = |kept: &Snapshot| kept.position.version > version;
        if version <= entry.head.position.version && !entry.snapshot.as_ref().is_some_and(newer) {
            entry.snapshot = Some(snapshot);
        }
    }

    pub(crate) fn snapshot(&self, session: &SessionId) -> Option<Snapshot> {
        self.0.get(session)?.snapshot.clone()
    }

    pub(crate) fn append(&mut self, append: Append, now: Timestamp) -> Option<AppendOutcome> {
        let entry = self.0.get_mut(&append.session)?;
        let now = now.max(entry.head.updated_at);
        let Some(place) = entry.place(&append.expected) else {
            return Some(AppendOutcome::HistoryLost);
        };
        if let Some(missed) = entry.log.get(place..).filter(|missed| !missed.is_empty()) {
            return Some(match missed.first() {
                Some(same) if same.id == append.id => AppendOutcome::Appended { at: same.at },
                _ => AppendOutcome::Conflict { missed: missed.to_vec() },
            });
        }
        let lease_until = entry.head.lease_until;
        match append.guard {
            Guard::NotAfter(deadline) if now > deadline => {
                return Some(AppendOutcome::GuardFailed { lease_until: None, now });
            }
            Guard::LeaseFree if lease_until.is_some_and(|until| until > now) => {
                return Some(AppendOutcome::GuardFailed { lease_until, now });
            }
            Guard::None | Guard::NotAfter(_) | Guard::LeaseFree | Guard::ParentExists => {}
        }
        entry.take(append, now);
        Some(AppendOutcome::Appended { at: now })
    }

    pub(crate) fn read(&self, id: &SessionId, after: u64, limit: u32) -> Option<Vec<StoredAppend>> {
        let log = &self.0.get(id)?.log;
        let later = log.iter().filter(|append| append.first > after);
        Some(later.take(limit as usize).cloned().collect())
    }

    pub(crate) fn head(&self, id: &SessionId, now: Timestamp) -> Option<Head> {
        self.0.get(id).map(|entry| entry.head_at(now))
    }

    /// Returns the root sessions.
    pub(crate) fn roots(&self) -> BTreeSet<SessionId> {
        let roots = self.0.values().filter(|entry| entry.head.created.parent.is_none());
        roots.map(|entry| entry.head.session.clone()).collect()
    }

    pub(crate) fn version(&self, id: &SessionId) -> u64 {
        self.0.get(id).map_or(0, |entry| entry.head.position.version)
    }

    /// Returns one page of sessions, or `None` if the page continues after a session that was deleted.
    pub(crate) fn list(
        &self,
        filter: &SessionFilter,
        page: &Page,
        now: Timestamp,
    ) -> Option<Vec<Head>> {
        let place = |head: &Head| (head.created_at, head.session.clone());
        let after = match &page.after {
            Some(after) => Some(place(&self.0.get(after)?.head)),
            None => None,
        };
        let mut heads: Vec<_> = self.0.values().map(|entry| entry.head_at(now)).collect();
        heads.retain(|head| matches_filter(head, filter, now));
        heads.retain(|head| after.as_ref().is_none_or(|after| place(head) < *after));
        heads.sort_by_key(|head| std::cmp::Reverse(place(head)));
        heads.truncate(page.limit.min(MAX_PAGE) as usize);
        Some(heads)
    }

    /// Returns one page as [`list`](Self::list) does, with the usage of each session.
    pub(crate) fn list_usage(
        &self,
        filter: &SessionFilter,
        page: &Page,
        now: Timestamp,
    ) -> Option<Vec<SessionUsage>> {
        let usage = |head: &Head| self.0.get(&head.session).and_then(|entry| entry.usage.clone());
        let with_usage = |head| SessionUsage { usage: usage(&head), head };
        Some(self.list(filter, page, now)?.into_iter().map(with_usage).collect())
    }

    pub(crate) fn renew(
        &mut self,
        id: &SessionId,
        run: &RunId,
        ttl: Duration,
        now: Timestamp,
    ) -> Option<Renewal> {
        let entry = self.0.get_mut(id)?;
        let now = now.max(entry.head.updated_at);
        let renewed = entry.head.summary.run.as_ref() == Some(run);
        if renewed {
            entry.head.lease_until = Some(now.after(ttl));
        }
        Some(Renewal { renewed, head: entry.head_at(now) })
    }

    pub(crate) fn delete_if(
        &mut self,
        id: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> u64 {
        let has_tags = |entry: &Entry| entry.head.created.has_tags(required_tags);
        if self.0.get(id).is_some_and(has_tags) { self.delete(id) } else { 0 }
    }

    fn delete(&mut self, id: &SessionId) -> u64 {
        if self.0.remove(id).is_none() {
            return 0;
        }
        let parent = |entry: &Entry| entry.head.created.parent.as_ref() == Some(id);
        let children = self.0.iter().filter(|(_, entry)| parent(entry));
        let children: Vec<_> = children.map(|(child, _)| child.clone()).collect();
        1 + children.iter().map(|child| self.delete(child)).sum::<u64>()
    }

    pub(crate) fn purge(&mut self, purge: &Purge, now: Timestamp) -> u64 {
        let heads: Vec<_> = self.0.values().map(|entry| entry.head_at(now)).collect();
        let is_fresh = |head: &&Head| {
            head.is_leased() || head.read_at.since(head.updated_at) < purge.older_than
        };
        let mut gone = 0;
        let is_top = |head: &&Head| {
            let above = head.created.parent.as_ref();
            above.is_none_or(|above| !heads.iter().any(|head| head.session == *above))
        };
        for root in heads.iter().filter(is_top) {
            let mut tree = heads.iter().filter(|head| head.created.root == root.created.root);
            if purge.statuses.contains(&root.summary.status) && !tree.any(|head| is_fresh(&head)) {
                gone += self.delete(&root.session);
            }
        }
        gone
    }
}

fn matches_filter(head: &Head, filter: &SessionFilter, now: Timestamp) -> bool {
    let SessionFilter {
        agent,
        status,
        root,
        runtime,
        pending,
        lease_expired,
        wake_due,
        created_from,
        created_before,
        tags,
    } = filter;
    let summary = &head.summary;
    agent.as_ref().is_none_or(|agent| *agent == head.created.agent)
        && status.is_none_or(|status| status == summary.status)
        && root.as_ref().is_none_or(|root| *root == head.created.root)
        && runtime.as_ref().is_none_or(|runtime| *runtime == summary.runtime)
        && (!pending || summary.pending > 0)
        && (!lease_expired
            || (summary.run.is_some() && head.lease_until.is_none_or(|until| until <= now)))
        && (!wake_due || summary.wake_at.is_some_and(|at| at <= now))
        && created_from.is_none_or(|from| head.created_at >= from)
        && created_before.is_none_or(|before| head.created_at < before)
        && tags.iter().all(|(key, value)| head.created.tags.get(key) == Some(value))
}
