//! The log of one session and the rules for appending to it.

use std::sync::Arc;

use helix_agents::clock::Timestamp;
use helix_agents::store::{
    Append, AppendOutcome, Guard, Head, LeaseChange, NewSession, Position, StoredAppend,
};
use helix_agents::usage::UsageRollup;

use super::record::Appended;

/// A session's head and its appends in order.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) head: Head,
    pub(crate) usage: Option<Arc<UsageRollup>>,
    appends: Vec<StoredAppend>,
    /// The number of appends that are shared with the log that this one was forked from.
    shared: usize,
}

/// The decision on an append.
pub(crate) enum Decision {
    /// Write this append.
    Accept(Appended),
    /// Return this outcome and write nothing.
    Reply(AppendOutcome),
}

impl Log {
    /// Creates a session with its first append.
    pub(crate) fn new(new: NewSession, first: Appended) -> Self {
        Self::with_base(Vec::new(), new, first)
    }

    /// Forks the session before `first`, which is the fork's first own append. The shared appends
    /// exist only once, in memory as well as in the file.
    pub(crate) fn fork(&self, new: NewSession, first: Appended) -> Self {
        let shared = self.appends.iter().take_while(|append| append.first < first.first);
        Self::with_base(shared.cloned().collect(), new, first)
    }

    fn with_base(appends: Vec<StoredAppend>, new: NewSession, first: Appended) -> Self {
        let head = Head {
            session: first.session.clone(),
            created: new,
            position: appends.last().map_or_else(Position::start, StoredAppend::position),
            summary: first.summary.clone(),
            lease_until: None,
            created_at: first.at,
            updated_at: first.at,
            read_at: first.at,
        };
        let mut log = Self { head, usage: None, shared: appends.len(), appends };
        log.push(first);
        log
    }

    /// Decides on an append as the contract requires, in this order: a repeated append gets the
    /// original outcome; a position that the log never had is lost history; a position before the
    /// end of the log is a conflict; finally, the guard is checked with the store's clock.
    pub(crate) fn decide(&self, append: Append, now: Timestamp) -> Decision {
        let now = now.max(self.head.updated_at);
        if append.expected != self.head.position {
            return Decision::Reply(match self.after(&append.expected) {
                None => AppendOutcome::HistoryLost,
                Some([next, ..]) if next.id == append.id => AppendOutcome::Appended { at: next.at },
                Some(missed) => AppendOutcome::Conflict { missed: missed.to_vec() },
            });
        }
        let lease = self.head.lease_until.filter(|until| now < *until);
        let failed = match append.guard {
            // Only the creation of a session checks the parent.
            Guard::None | Guard::ParentExists => false,
            Guard::NotAfter(deadline) => deadline < now,
            Guard::LeaseFree => lease.is_some(),
        };
        if failed {
            let lease_until = lease.filter(|_| append.guard == Guard::LeaseFree);
            return Decision::Reply(AppendOutcome::GuardFailed { lease_until, now });
        }
        let lease_until = match append.lease {
            LeaseChange::Keep => self.head.lease_until,
            LeaseChange::Take(ttl) => Some(now.after(ttl)),
            LeaseChange::Clear => None,
        };
        Decision::Accept(Appended {
            session: append.session,
            first: self.head.position.version + 1,
            count: append.count,
            id: append.id,
            run: append.run,
            schema: append.schema,
            at: now,
            summary: append.summary.unwrap_or_else(|| self.head.summary.clone()),
            lease_until,
            usage: append.usage.or_else(|| self.usage.clone()),
            body: append.body,
        })
    }

    /// Adds an append that is on the disk.
    pub(crate) fn push(&mut self, append: Appended) {
        let stored = append.stored();
        self.head.position = stored.position();
        self.head.updated_at = stored.at;
        self.head.summary = append.summary;
        self.head.lease_until = append.lease_until;
        self.usage = append.usage;
        self.appends.push(stored);
    }

    pub(crate) fn renew(&mut self, until: Timestamp) {
        self.head.lease_until = Some(until);
    }

    /// Returns the head as read at `now`.
    pub(crate) fn head_at(&self, now: Timestamp) -> Head {
        Head { read_at: now.max(self.head.updated_at), ..self.head.clone() }
    }

    /// Returns the append that created the session, if it expected this position.
    pub(crate) fn created_at(&self, position: &Position) -> Option<&StoredAppend> {
        let after = self.after(position)?;
        after.first().filter(|_| self.appends.len() - after.len() == self.shared)
    }

    /// Returns up to `limit` appends after version `after`.
    pub(crate) fn read(&self, after: u64, limit: usize) -> Vec<StoredAppend> {
        let start = self.appends.partition_point(|append| append.first <= after);
        self.appends.iter().skip(start).take(limit).cloned().collect()
    }

    /// Returns the append that ends at a position.
    pub(crate) fn ending(&self, position: &Position) -> Option<&StoredAppend> {
        self.appends.iter().find(|append| append.position() == *position)
    }

    /// Returns the appends after a position, or `None` if the log never ended there.
    pub(crate) fn after(&self, position: &Position) -> Option<&[StoredAppend]> {
        let index = self.appends.partition_point(|append| append.version() <= position.version);
        let (before, after) = self.appends.split_at_checked(index)?;
        let reached = before.last().map_or_else(Position::start, StoredAppend::position);
        (reached == *position).then_some(after)
    }
}
