//! Marks: the situations that the simulation must reach, and how often it reached them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of stories after which every situation must have been reached. The rarest one occurs about once in ten
/// thousand stories.
pub const ALL_REACHED_AFTER: u64 = 100_000;

/// A situation that stories must reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// A process was killed.
    Kill,
    /// A process stalled for longer than its lease, and continued.
    StallBeyondLease,
    /// A takeover from a crashed owner.
    TakeoverOfDead,
    /// A takeover from a stalled owner that continues later.
    TakeoverOfStill,
    /// A takeover while a child of the run had not ended.
    TakeoverWithChild,
    /// A takeover of a run that had a pending abort or interrupt.
    TakeoverAfterRequest,
    /// A superseded owner tried to append.
    LateOwnerFenced,
    /// An append conflicted with earlier appends.
    Conflict,
    /// A start was refused because of a valid lease.
    LeaseInTheWay,
    /// A request never reached the store.
    RequestLost,
    /// A request took effect, and its answer was lost.
    AnswerLost,
    /// A request took effect a second time, after others had written.
    Doubled,
    /// A request was late by more than a lease.
    Late,
    /// A process could not reach the store.
    Partition,
    /// A process could not reach the streams.
    StreamsAway,
    /// The store's clock jumped.
    StoreJump,
    /// A process listed sessions from a stale index.
    StaleList,
    /// A call was answered.
    Answer,
    /// A run was aborted.
    Abort,
    /// A run was interrupted.
    Interrupt,
    /// A message was queued into a session.
    Message,
    /// A session was rewound to a checkpoint.
    Rewind,
    /// A session was forked.
    Fork,
    /// A process was shut down gracefully.
    Shutdown,
    /// A work item of a run was executed again.
    PartAgain,
    /// A session was deleted.
    Delete,
    /// An append exceeded a tenth of the store's limit: larger appends are divided.
    LargeAppend,
    /// A planner decided which tools to call.
    Plan,
    /// Sessions were purged.
    Purge,
    /// A stream reader was disconnected, and continued.
    ReaderCut,
    /// A session was exported, and imported elsewhere.
    Export,
    /// A process of another build ran concurrently.
    Upgrade,
    /// An engine dropped a running work item, and executed it again.
    PartCut,
    /// A message was sent to a child.
    MessageBelow,
    /// A process crashed between two steps of an operation: right before a request, or right after its answer.
    KillAtRequest,
    /// A request to the streams hung.
    StreamHangs,
    /// No process could reach the store.
    Outage,
    /// A run ended because its budget was used up.
    BudgetUsedUp,
    /// A run failed because every process that executed a call crashed.
    CrashLoop,
    /// The deadline of a pending call passed.
    DeadlinePassed,
    /// A call with an unknown outcome ended without a second execution.
    OutcomeUnknown,
    /// A superseded run submitted a result.
    LateResult,
    /// A takeover while a child of the run waited for an answer.
    TakeoverWithWaitingChild,
    /// The overview of a session was read from a snapshot.
    SnapshotRead,
    /// A result was larger than an append, and an error was recorded in its place.
    Replaced,
    /// The log of a session reached 200 events.
    LongLog,
    /// A process stalled right before a request.
    StallAtRequest,
}

/// The number of events of a long log.
pub(crate) const LONG_LOG: u64 = 200;

impl Mark {
    /// All situations.
    pub const ALL: [Self; 47] = [
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
        Self::Replaced,
        Self::LongLog,
        Self::StallAtRequest,
    ];
}

/// The number of times that each situation was reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks(BTreeMap<Mark, u64>);

impl Marks {
    /// Returns the situations that were never reached.
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

/// The marks of one world. Clones share them.
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
