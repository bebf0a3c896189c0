//! The log of one session and the rules for appending to it.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::mutant;
use helix_agents_core::store::{
    Append, AppendOutcome, Guard, Head, LeaseChange, NewSession, Position, Renewal, SessionUsage,
    Snapshot, StoredAppend, Summary,
};
use helix_agents_core::usage::UsageRollup;

/// A session: its head and its appends in order.
#[derive(Debug)]
pub(crate) struct Log {
    head: Head,
    appends: Vec<StoredAppend>,
    /// The number of appends that are shared with the log that this one was forked from.
    shared: usize,
    usage: Option<Arc<UsageRollup>>,
    snapshot: Option<Snapshot>,
}

impl Log {
    pub(crate) fn create(new: NewSession, first: Append, summary: Summary, now: Timestamp) -> Self {
        let session = first.session.clone();
        let mut log = Self::at(Position::start(), Vec::new(), session, new, summary, now);
        log.take(first, now);
        log
    }

    fn at(
        position: Position,
        appends: Vec<StoredAppend>,
        session: SessionId,
        created: NewSession,
        summary: Summary,
        now: Timestamp,
    ) -> Self {
        let head = Head {
            session,
            created,
            position,
            summary,
            lease_until: None,
            created_at: now,
            updated_at: now,
            read_at: now,
        };
        Self { head, shared: appends.len(), appends, usage: None, snapshot: None }
    }

    /// Forks the log at the position that `first` expects. Returns `None` if the log never ended at
    /// that position. The events themselves are shared, not copied.
    pub(crate) fn fork(
        &self,
        new: NewSession,
        first: Append,
        summary: Summary,
        now: Timestamp,
    ) -> Option<Self> {
        let after = self.after(&first.expected)?.len();
        let shared = self.appends.get(..self.appends.len() - after)?.to_vec();
        let now = shared.last().map_or(now, |last| now.max(last.at));
        let (position, session) = (first.expected.clone(), first.session.clone());
        let mut log = Self::at(position, shared, session, new, summary, now);
        log.take(first, now);
        Some(log)
    }

    /// Returns the append that created the session, if it expected this position.
    pub(crate) fn created_at(&self, position: &Position) -> Option<&StoredAppend> {
        let after = self.after(position)?;
        after.first().filter(|_| self.appends.len() - after.len() == self.shared)
    }

    /// Returns the head. Its `read_at` is the time of the last append.
    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    /// Returns the head as read at `now`.
    pub(crate) fn head_at(&self, now: Timestamp) -> Head {
        Head { read_at: now.max(self.head.updated_at), ..self.head.clone() }
    }

    /// Returns the usage of the session and the head as read at `now`.
    pub(crate) fn usage_at(&self, now: Timestamp) -> SessionUsage {
        SessionUsage { head: self.head_at(now), usage: self.usage.clone() }
    }

    pub(crate) fn append(&mut self, append: Append, now: Timestamp) -> AppendOutcome {
        let now = now.max(self.head.updated_at);
        if append.expected != self.head.position {
            return self.outcome_off_end(&append);
        }
        if let Some(failed) = self.check_guard(append.guard, now) {
            return failed;
        }
        self.take(append, now);
        AppendOutcome::Appended { at: now }
    }

    /// Returns up to `limit` appends after version `after`.
    pub(crate) fn read(&self, after: u64, limit: u32) -> Vec<StoredAppend> {
        let start = self.appends.partition_point(|append| append.first <= after);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        self.appends.iter().skip(start).take(limit).cloned().collect()
    }

    pub(crate) fn renew(&mut self, run: &RunId, ttl: Duration, now: Timestamp) -> Renewal {
        let now = now.max(self.head.updated_at);
        let renewed = self.head.summary.run.as_ref() == Some(run);
        if renewed {
            self.head.lease_until = Some(now.after(ttl));
        }
        Renewal { renewed, head: self.head_at(now) }
    }

    /// Saves a snapshot, unless a newer one is already saved.
    pub(crate) fn save_snapshot(&mut self, snapshot: Snapshot) {
        let kept = self.snapshot.as_ref().map(|kept| kept.position.version);
        if snapshot.is_kept(self.head.position.version, kept) {
            self.snapshot = Some(snapshot);
        }
    }

    pub(crate) fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// Returns the outcome of an append whose expected position is not the end of the log.
    fn outcome_off_end(&self, append: &Append) -> AppendOutcome {
        let Some(missed) = self.after(&append.expected) else {
            return AppendOutcome::HistoryLost;
        };
        match missed.first() {
            Some(next) if next.id == append.id && !mutant!("append-not-known") => {
                AppendOutcome::Appended { at: next.at }
            }
            _ => AppendOutcome::Conflict { missed: missed.to_vec() },
        }
    }

    /// Returns the appends after a position, or `None` if the log never ended there.
    fn after(&self, position: &Position) -> Option<&[StoredAppend]> {
        let index = self.appends.partition_point(|append| append.version() <= position.version);
        let (before, after) = self.appends.split_at_checked(index)?;
        let reached = before.last().map_or_else(Position::start, StoredAppend::position);
        (reached == *position).then_some(after)
    }

    fn check_guard(&self, guard: Guard, now: Timestamp) -> Option<AppendOutcome> {
        let lease_until = match guard {
            Guard::None | Guard::ParentExists => return None,
            Guard::NotAfter(deadline) if now <= deadline => return None,
            Guard::NotAfter(_) => None,
            Guard::LeaseFree => Some(self.head.lease_until.filter(|until| now < *until)?),
        };
        Some(AppendOutcome::GuardFailed { lease_until, now })
    }

    fn take(&mut self, append: Append, now: Timestamp) {
        let stored = StoredAppend {
            first: self.head.position.version + 1,
            count: append.count,
            id: append.id,
            run: append.run,
            schema: append.schema,
            at: now,
            body: append.body,
        };
        self.head.position = stored.position();
        self.head.updated_at = now;
        match append.lease {
            LeaseChange::Keep => {}
            LeaseChange::Take(ttl) => self.head.lease_until = Some(now.after(ttl)),
            LeaseChange::Clear => self.head.lease_until = None,
        }
        if let Some(summary) = append.summary {
            self.head.summary = summary;
        }
        if let Some(usage) = append.usage {
            self.usage = Some(usage);
        }
        self.appends.push(stored);
    }
}
