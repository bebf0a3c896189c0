//! Marks: which of the situations that the simulation is for were reached.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use std::sync::{Arc, Mutex, PoisonError};

/// A situation that stories must reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// A process was killed.
    Kill,
    /// A process stood still for longer than its lease, and went on.
    StallBeyondLease,
    /// A run was taken over from an owner that was dead.
    TakeoverOfDead,
    /// A run was taken over from an owner that stood still and would go on.
    TakeoverOfStill,
    /// A run was taken over while a child of it had not ended.
    TakeoverWithChild,
    /// A run was taken over that had been asked to stop.
    TakeoverAfterRequest,
    /// An owner that was superseded tried to append.
    LateOwnerFenced,
    /// An append met others that were first.
    Conflict,
    /// A start met a lease that was still good.
    LeaseInTheWay,
    /// A request never reached the store.
    RequestLost,
    /// A request took effect, and its answer was lost.
    AnswerLost,
    /// A request took effect a second time, after others had written.
    Doubled,
    /// A request was late by more than a lease.
    Late,
    /// A process was cut off from the store.
    Partition,
    /// A process was cut off from the streams alone.
    StreamsAway,
    /// The store's clock jumped.
    StoreJump,
    /// The process asked a stale index for its list.
    StaleList,
    /// A call was answered.
    Answer,
    /// A run was aborted.
    Abort,
    /// A run was interrupted.
    Interrupt,
    /// A message was queued into a session.
    Message,
    /// A session went back to a checkpoint.
    Rewind,
    /// A session was forked.
    Fork,
    /// A process was shut down in good order.
    Shutdown,
    /// A part of a run was executed again.
    PartAgain,
    /// A session was deleted.
    Delete,
    /// An append took more than a tenth of what its store accepts: larger ones are divided.
    LargeAppend,
    /// A planner decided which tools to call.
    Plan,
    /// Sessions were purged.
    Purge,
    /// A reader of a stream was cut off, and continued.
    ReaderCut,
    /// A session was exported, and imported elsewhere.
    Export,
    /// A process of another build ran beside the others.
    Upgrade,
    /// An engine dropped a part in the middle, and had it executed again.
    PartCut,
    /// A message was sent to a child.
    MessageBelow,
    /// A process died between two steps of an operation: right before a request, or right after its answer.
    KillAtRequest,
    /// A request to the streams hung.
    StreamHangs,
    /// No process could reach the store.
    Outage,
    /// A run ended because its budget was used up.
    BudgetUsedUp,
    /// A run failed because no process outlived a call.
    CrashLoop,
    /// A call that waits had a deadline that passed.
    DeadlinePassed,
    /// A call in doubt ended without a second execution.
    OutcomeUnknown,
    /// A superseded run handed in a result.
    LateResult,
    /// A run was taken over while a child of it waited for an answer.
    TakeoverWithWaitingChild,
    /// The overview of a session was read from a snapshot.
    SnapshotRead,
}

impl Mark {
    /// All of them.
    pub const ALL: [Self; 44] = [
        Self::Kill,
        Self::StallBeyondLease,
        Self::TakeoverOfDead,
        Self::TakeoverOfStill,
        Self::TakeoverWithChild,
        Self::TakeoverAfterRequest,
        Self::LateOwnerFenced,
        Self::Conflict,
        Self::LeaseInTheWay,
        Self::RequestLost,
        Self::AnswerLost,
        Self::Doubled,
        Self::Late,
        Self::Partition,
        Self::StreamsAway,
        Self::StoreJump,
        Self::StaleList,
        Self::Answer,
        Self::Abort,
        Self::Interrupt,
        Self::Message,
        Self::Rewind,
        Self::Fork,
        Self::Shutdown,
        Self::PartAgain,
        Self::Delete,
        Self::LargeAppend,
        Self::Plan,
        Self::Purge,
        Self::ReaderCut,
        Self::Export,
        Self::Upgrade,
        Self::PartCut,
        Self::MessageBelow,
        Self::KillAtRequest,
        Self::StreamHangs,
        Self::Outage,
        Self::BudgetUsedUp,
        Self::CrashLoop,
        Self::DeadlinePassed,
        Self::OutcomeUnknown,
        Self::LateResult,
        Self::TakeoverWithWaitingChild,
        Self::SnapshotRead,
    ];
}

/// How often each situation was reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks(BTreeMap<Mark, u64>);

impl Marks {
    /// The situations that were never reached.
    pub fn missing(&self) -> impl Iterator<Item = Mark> {
        Mark::ALL.into_iter().filter(|mark| !self.0.contains_key(mark))
    }
}

impl AddAssign<&Self> for Marks {
    fn add_assign(&mut self, other: &Self) {
        for (mark, count) in &other.0 {
            *self.0.entry(*mark).or_default() += count;
        }
    }
}

impl fmt::Display for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for mark in Mark::ALL {
            writeln!(f, "{:>10}  {mark:?}", self.0.get(&mark).copied().unwrap_or_default())?;
        }
        Ok(())
    }
}

/// The marks of one world. Clones are of the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reached(Arc<Mutex<Marks>>);

impl Reached {
    pub(crate) fn note(&self, mark: Mark) {
        let mut marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *marks.0.entry(mark).or_default() += 1;
    }

    pub(crate) fn all(&self) -> Marks {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
