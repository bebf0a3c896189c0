//! One session: the rules of appending.

use std::sync::Arc;

use helix_agents::clock::Timestamp;
use helix_agents::store::{
    Append, AppendOutcome, Guard, Head, LeaseChange, NewSession, Position, StoredAppend,
};
use helix_agents::usage::UsageRollup;

use crate::record::Appended;

/// A session's head, and its appends in order.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) head: Head,
    pub(crate) usage: Option<Arc<UsageRollup>>,
    appends: Vec<StoredAppend>,
    /// How many of the appends are those of the log that it was forked from.
    shared: usize,
}

/// What is to be done with an append.
pub(crate) enum Judgement {
    /// Write this.
    Take(Appended),
    /// Answer this, and write nothing.
    Answer(AppendOutcome),
}

impl Log {
    /// A session with its first append.
    pub(crate) fn new(new: NewSession, first: Appended) -> Self {
        Self::after_those(Vec::new(), new, first)
    }

    /// A session that begins with what this one has before `first`, which is its own. What was
    /// appended stays in memory once, however many sessions share it; and in the file.
    pub(crate) fn fork(&self, new: NewSession, first: Appended) -> Self {
        let shared = self.appends.iter().take_while(|it| it.first < first.first);
        Self::after_those(shared.cloned().collect(), new, first)
    }

    fn after_those(appends: Vec<StoredAppend>, new: NewSession, first: Appended) -> Self {
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
        log.take(first);
        log
    }

    /// Judges an append by the contract, in this order: a repetition is answered as the first time;
    /// a log that never was where the writer believes has lost its history; one that went on is a
    /// conflict; then the guard, by the store's clock.
    pub(crate) fn judge(&self, append: Append, now: Timestamp) -> Judgement {
        let now = now.max(self.head.updated_at);
        if append.expected != self.head.position {
            return Judgement::Answer(match self.after(&append.expected) {
                None => AppendOutcome::HistoryLost,
                Some([next, ..]) if next.id == append.id => AppendOutcome::Appended { at: next.at },
                Some(missed) => AppendOutcome::Conflict { missed: missed.to_vec() },
            });
        }
        let lease = self.head.lease_until.filter(|until| now < *until);
        let failed = match append.guard {
            Guard::None => false,
            Guard::NotAfter(deadline) => deadline < now,
            Guard::LeaseFree => lease.is_some(),
        };
        if failed {
            let lease_until = lease.filter(|_| append.guard == Guard::LeaseFree);
            return Judgement::Answer(AppendOutcome::GuardFailed { lease_until, now });
        }
        let lease_until = match append.lease {
            LeaseChange::Keep => self.head.lease_until,
            LeaseChange::Take(ttl) => Some(now.after(ttl)),
            LeaseChange::Clear => None,
        };
        Judgement::Take(Appended {
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

    /// Takes an append that is on the disk.
    pub(crate) fn take(&mut self, append: Appended) {
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

    /// The head as it is read now.
    pub(crate) fn head_at(&self, now: Timestamp) -> Head {
        Head { read_at: now.max(self.head.updated_at), ..self.head.clone() }
    }

    /// The append that created the session, if it was to follow this position.
    pub(crate) fn created_at(&self, position: &Position) -> Option<&StoredAppend> {
        let after = self.after(position)?;
        after.first().filter(|_| self.appends.len() - after.len() == self.shared)
    }

    /// The appends after a version.
    pub(crate) fn read(&self, after: u64, limit: usize) -> Vec<StoredAppend> {
        let start = self.appends.partition_point(|it| it.first <= after);
        self.appends.iter().skip(start).take(limit).cloned().collect()
    }

    /// The append that ends at a position, if one does.
    pub(crate) fn ending(&self, position: &Position) -> Option<&StoredAppend> {
        self.appends.iter().find(|it| it.position() == *position)
    }

    /// The appends after a position; none if the log never was there.
    pub(crate) fn after(&self, position: &Position) -> Option<&[StoredAppend]> {
        let index = self.appends.partition_point(|it| it.version() <= position.version);
        let (before, after) = self.appends.split_at_checked(index)?;
        let reached = before.last().map_or_else(Position::start, StoredAppend::position);
        (reached == *position).then_some(after)
    }
}
