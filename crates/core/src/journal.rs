//! The journal: appends a run's facts and decisions to its log despite concurrent writers. This layer also contains the
//! other operations on logs, such as loading, forking, exporting and stream repair.

mod batch;
mod cache;
mod committed;
mod conflicts;
mod delete;
pub mod executor;
mod family;
mod first_model;
mod fork;
mod hold;
mod late;
mod load;
pub mod log_events;
pub mod observer;
mod oversize;
mod page;
mod pending_views;
mod repair;
mod request;
mod required_tags;
mod shared_stream;
mod start_run;
mod stream_cache;
mod submit;
mod transfer;
mod tree;
mod usage;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::AnyAgent;
use crate::clock::IdSourceExt as _;
use crate::clock::{IdSource, Timestamp};
use crate::error::{Error, ErrorCode, Result};
use crate::event::{Event, RunOutcome, SCHEMA, ToolFinish, decode};
use crate::fault;
use crate::id::{AppendId, RunId, SessionId};
use crate::machine::session::{Savepoint, Session, SessionOverview, StopKind, StopRequest};
use crate::mutant;
use crate::step::{Action, StepIterator};
use crate::store::{Append, AppendOutcome, Guard, LeaseChange, StateStore, StoredAppend};
use batch::Batch;
use hold::Oversize;
use observer::{Appended, Observers};

pub use cache::{MAX_CACHED_EVENTS, MAX_CACHED_SESSIONS, SessionCache, SessionReader};
pub use committed::Committed;
pub use conflicts::{MAX_CONFLICTS, too_many_conflicts};
pub use delete::{clear_stream, delete_session, delete_session_if};
pub use family::{
    CompletionNotice, Lineage, child_status, deliver_missed_notices, has_ready_child, has_waiter,
    is_already_done, lineage, overview_and_status, session_and_status,
};
pub use first_model::first_model;
pub use fork::fork;
pub use load::{catch_up, load, load_events};
pub use oversize::recordable_result;
pub use page::{SessionPage, StreamStatus, session_page};
pub use pending_views::{PendingCallView, all_pending_calls, pending_call, pending_calls};
pub use repair::{StreamRepair, is_outcome, plan_stream_repair, repair_ended_stream};
pub use request::{
    MessageOrigin, RequestContext, pass_down, queue_message, queue_message_in_turn, request,
};
pub use required_tags::root_has_tags;
pub use shared_stream::{CachedStream, SharedStream, StreamLookup, write_shared};
pub use start_run::StartOutcome;
pub use stream_cache::{BatchPosition, CacheEntry, PendingBatch, Receipts, StreamCache};
pub use submit::{CallRef, Submission, submit};
pub use transfer::{ExportedSession, SessionExport, export_session, import_session};
pub use tree::usage_of_tree;
pub use usage::{MAX_REPORT_SOURCES, UsageQuery, UsageReport, usage_of_sessions};

/// The maximum number of appends that [`Journal::catch_up`] reads at once. The next append reads any
/// others.
const MAX_MISSED: u32 = 64;

/// The granularity at which facts are appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Facts are appended as they happen: the reply, then tool results. A crash repeats at most the
    /// effects in progress.
    #[default]
    PerEffect,
    /// Facts are appended once per step. A crash repeats the step. Starts of at-most-once tools are
    /// still appended before the tools run.
    PerStep,
}

/// The configuration of a [`Journal`].
#[derive(Debug, Clone)]
pub struct JournalConfig {
    /// The store of the log. If the outcome of an append is unknown, the run stops in this process without ending. Wrap
    /// a store that can be temporarily unavailable in a [`RetryingStore`](crate::store::RetryingStore).
    pub store: Arc<dyn StateStore>,
    /// The source of new ids.
    pub ids: Arc<dyn IdSource>,
    /// The lease duration: the owner counts as alive for this long after each append.
    pub lease: Duration,
    /// The granularity at which facts are appended.
    pub durability: Durability,
    /// The observers of the events that are appended.
    pub observers: Observers,
}

/// The writer of a run's events.
///
/// A *fact* is something that happened, such as a reply or a result. A *decision* follows from the facts. The journal
/// applies facts to the session state (the *fold*), then the decisions that follow from them, and sends all of it in
/// one append. On a conflict it rolls the fold back, applies the missed events, reapplies the facts that are still new
/// and legal, and derives the decisions again. If results of calls are among the decisions or among the missed events,
/// it appends only the facts, and the next [`stage`](Self::stage) makes the decisions: hooks receive results before
/// their step is closed.
///
/// Large batches take several appends. A run can continue from the log after each of them: it
/// executes an effect again if its fact is missing, and derives the decisions from the recorded
/// facts. If a fact does not fit into any append, the journal records that it was too large, so
/// that the run does not repeat the effect forever.
///
/// # Cancel safety
/// The methods that append events are not cancel safe. If a future is dropped, its events may or
/// may not have been appended, and the journal must not be used again. Discard it and load the
/// session from its log.
#[derive(Debug)]
pub struct Journal {
    config: JournalConfig,
    iterator: StepIterator,
    run: RunId,
    held: Batch,
    savepoint: Option<Savepoint>,
    /// Events that another worker of the same run has recorded since the last commit, with their
    /// versions.
    by_others: Vec<(u64, Event)>,
    /// Late results that an earlier run has recorded since the last append of this run, with their
    /// versions.
    late: Vec<(u64, Arc<ToolFinish>)>,
    /// The maximum size of one append, in bytes.
    limit: usize,
}

impl Journal {
    /// Creates the journal of `run`, which is the session's current run or is about to start.
    #[must_use]
    pub fn new(config: JournalConfig, agent: AnyAgent, session: Session, run: RunId) -> Self {
        let iterator = StepIterator::new(agent, session);
        let limit = config.store.max_append_bytes();
        let (held, by_others) = (Batch::default(), Vec::new());
        // The run's appends do not show results from before its start.
        let is_current = iterator.session().current_run().is_some_and(|current| current.id == run);
        let late = if is_current { iterator.session().late_results().to_vec() } else { Vec::new() };
        Self { config, iterator, run, held, savepoint: None, by_others, late, limit }
    }

    /// Returns the session, including staged events.
    #[must_use]
    pub fn session(&self) -> &Session {
        self.iterator.session()
    }

    /// Returns the session as the store has it, or `None` if events are staged.
    #[must_use]
    pub fn into_session(self) -> Option<Session> {
        self.savepoint.is_none().then(|| self.iterator.into_session())
    }

    /// Returns the overview to save as a snapshot, if a snapshot is due and nothing is staged. The snapshot then counts
    /// as saved, even if saving fails. Later readers only have to read more of the log.
    pub fn take_due_snapshot(&mut self) -> Option<SessionOverview> {
        if self.savepoint.is_some() || !self.session().is_snapshot_due() {
            return None;
        }
        let overview = self.session().overview().clone();
        self.iterator.session_mut().snapshot_saved(overview.position().version);
        Some(overview)
    }

    /// Returns the late results that an earlier run has recorded since the last append of this run,
    /// with their versions.
    #[must_use]
    pub fn late_results(&self) -> &[(u64, Arc<ToolFinish>)] {
        &self.late
    }

    /// Returns the next action.
    #[must_use]
    pub fn next(&self) -> Action {
        self.iterator.next()
    }

    /// Returns the outcome of the run if the run ends next.
    #[must_use]
    pub fn pending_outcome(&self) -> Option<RunOutcome> {
        self.iterator.pending_outcome()
    }

    /// Returns the last version that the store has acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        match &self.savepoint {
            Some(savepoint) => savepoint.position().version,
            None => self.session().position().version,
        }
    }

    /// Applies facts to the fold, then the decisions that follow from them, up to the next effect
    /// or the end of the run. Returns the decisions. [`commit`](Self::commit) appends all of it.
    ///
    /// # Errors
    /// Returns an error if an event is illegal. The run must stop then.
    pub fn stage(&mut self, facts: &[Event]) -> Result<Vec<Event>> {
        self.hold(facts, Oversize::Replaced)?;
        self.decide(StepIterator::decide)
    }

    /// Applies only the decisions that answer calls, such as the result of a call that was denied, and
    /// returns them. [`append_facts`](Self::append_facts) appends them, so that hooks receive recorded
    /// results.
    ///
    /// # Errors
    /// Returns the errors of [`stage`](Self::stage).
    pub fn stage_results(&mut self) -> Result<Vec<Event>> {
        self.decide(StepIterator::decide_results)
    }

    /// Returns the events that are staged and not appended yet.
    #[must_use]
    pub fn staged(&self) -> &[Event] {
        self.held.events()
    }

    /// Applies facts to the fold without deciding anything. The next [`stage`](Self::stage) makes
    /// the decisions.
    ///
    /// # Errors
    /// Returns the errors of [`stage`](Self::stage).
    pub fn apply_facts(&mut self, facts: &[Event]) -> Result<()> {
        self.hold(facts, Oversize::Replaced)
    }

    /// Applies the end of the run to the fold, if it comes next. Call this after `stage` and after
    /// the hooks of the run's end have run.
    ///
    /// # Errors
    /// Returns an error if an event is illegal.
    pub fn end_run(&mut self) -> Result<()> {
        if let Some(outcome) = self.pending_outcome() {
            self.hold_decisions(&[Event::RunEnded { outcome }])?;
        }
        Ok(())
    }

    /// Updates the fold's clock from the store's clock. Decisions then take expired deadlines into
    /// account, and new deadlines count from this time.
    ///
    /// # Errors
    /// Returns the store's errors.
    pub async fn observe_clock(&mut self) -> Result<()> {
        if let Some(head) = self.config.store.head(self.session().id()).await? {
            self.iterator.session_mut().observe(head.read_at);
        }
        Ok(())
    }

    /// Returns `true` if [`commit`](Self::commit) would append something now.
    #[must_use]
    pub fn is_due(&self) -> bool {
        let at_once = self.config.durability == Durability::PerEffect
            || self.held.bytes() > batch::target(self.limit);
        !self.held.is_empty() && (at_once || self.must_flush() || self.reaches_others())
    }

    /// Returns `true` if the next action writes to other sessions whose ids derive from calls. The
    /// log must contain those calls first. Otherwise, after a crash, the model could be called
    /// again and make different calls.
    fn reaches_others(&self) -> bool {
        matches!(self.next(), Action::StartChildren(_) | Action::RunCompanions(_))
    }

    /// Appends the staged events. With [`Durability::PerStep`], it appends them only if they close
    /// a step, end the run, must be recorded before an effect runs, or are too large to be held
    /// back.
    ///
    /// # Errors
    /// Returns [`ErrorCode::Superseded`] if another run owns the session now, [`ErrorCode::HistoryLost`], or the errors
    /// of the store. The run must stop then.
    pub async fn commit(&mut self) -> Result<Committed> {
        if !self.is_due() && !self.held.is_empty() {
            return Ok(Committed::nothing(self.acknowledged()));
        }
        self.flush().await
    }

    /// Appends the staged events.
    ///
    /// # Errors
    /// Returns the errors of [`commit`](Self::commit).
    pub async fn flush(&mut self) -> Result<Committed> {
        self.flush_with(true).await
    }

    /// Appends the staged events. After a conflict, derives the decisions again if `decides` is `true`.
    async fn flush_with(&mut self, decides: bool) -> Result<Committed> {
        // Workers that only append facts often conflict with each other. Each conflict means that one of them made
        // progress, so they get more attempts.
        let mut attempts = if decides { MAX_CONFLICTS } else { MAX_CONFLICTS * 64 };
        let mut committed = Committed::default();
        let mut later = VecDeque::new();
        loop {
            if self.held.is_empty() {
                let Some(next) = later.pop_front() else {
                    self.savepoint = None;
                    committed.late = std::mem::take(&mut self.late);
                    if !committed.events.is_empty() || !committed.late.is_empty() {
                        committed.by_others = std::mem::take(&mut self.by_others);
                    }
                    return Ok(committed.up_to(self.acknowledged()));
                };
                fault::point("journal.between_appends");
                self.restage(next)?;
            } else if later.is_empty()
                && self.held.bytes() > batch::target(self.limit)
                && !mutant!("append-not-divided")
            {
                later = self.divide()?;
            }
            let append = self.append_of_held(Guard::None);
            let append_id = append.id.clone();
            fault::point("journal.before_append");
            match self.config.store.append(append).await? {
                AppendOutcome::Appended { at } => {
                    fault::point("journal.after_append");
                    committed.take(self.acknowledge(append_id, at));
                }
                AppendOutcome::Conflict { missed } => {
                    attempts -= 1;
                    if attempts == 0 {
                        return Err(
                            too_many_conflicts(self.session().id()).with_context("run", &self.run)
                        );
                    }
                    later.drain(..).try_for_each(|batch| self.restage(batch))?;
                    committed.skip(&missed);
                    Box::pin(self.absorb(&missed, decides)).await?;
                }
                AppendOutcome::HistoryLost | AppendOutcome::GuardFailed { .. } => {
                    return Err(self.history_lost());
                }
            }
        }
    }

    /// Appends facts without decisions, which the owner makes. For workers that execute effects of
    /// the same run concurrently in different places.
    ///
    /// # Errors
    /// Returns the errors of [`commit`](Self::commit). It also returns an error if an event is illegal.
    pub async fn append_facts(&mut self, facts: &[Event]) -> Result<Committed> {
        self.hold(facts, Oversize::Replaced)?;
        self.flush_with(false).await
    }

    /// Reads stop requests that the fold does not contain yet. An abort takes precedence over an
    /// interrupt. The requests enter the fold with the next append: this method only allows the
    /// caller to react early.
    ///
    /// # Errors
    /// Returns the store's errors.
    pub async fn requested(
        store: &dyn StateStore,
        session: &SessionId,
        run: &RunId,
        after: u64,
    ) -> Result<Option<(StopKind, StopRequest)>> {
        let mut interrupt = None;
        for event in load_events(store, session, after).await? {
            match event.event {
                Event::AbortRequested { request: id, run: named, reason } if named == *run => {
                    return Ok(Some((StopKind::Abort, StopRequest { id, reason })));
                }
                Event::InterruptRequested { request: id, run: named, reason } if named == *run => {
                    interrupt = Some((StopKind::Interrupt, StopRequest { id, reason }));
                }
                _ => {}
            }
        }
        Ok(interrupt)
    }

    /// Applies what others have appended since the last append.
    ///
    /// # Errors
    /// Returns the errors of [`commit`](Self::commit).
    pub async fn catch_up(&mut self) -> Result<()> {
        let after = self.acknowledged();
        let missed = self.config.store.read_log(self.session().id(), after, MAX_MISSED).await?;
        if missed.is_empty() { Ok(()) } else { self.absorb(&missed, true).await }
    }

    fn must_flush(&self) -> bool {
        self.staged().iter().any(|event| {
            matches!(
                event,
                Event::StepClosed { .. }
                    | Event::RunEnded { .. }
                    | Event::ToolStarted { .. }
                    | Event::ChildStarted(_)
            )
        })
    }

    /// Applies what others appended, then reapplies the facts that are still valid.
    fn rebase(&mut self, missed: &[StoredAppend], decides: bool) -> Result<()> {
        let held = self.roll_back();
        let by_others_before = self.by_others.len();
        for append in missed {
            self.iterator.session_mut().apply_append(append)?;
            if append.run.is_none() {
                continue;
            }
            let is_own = append.run.as_ref() == Some(&self.run);
            for recorded in decode(self.session().id(), append)? {
                match recorded.event {
                    Event::WorkItemRepeated { .. } => {}
                    event if is_own => self.by_others.push((recorded.seq, event)),
                    Event::ToolFinished(finish) if finish.attempts > 0 => {
                        self.late.push((recorded.seq, finish));
                    }
                    _ => {}
                }
            }
        }
        match self.session().current_run() {
            Some(current) if current.id == self.run => {}
            _ if mutant!("fence-ignored") => {}
            _ => return Err(self.superseded()),
        }
        // Normally only one worker of a run makes decisions. If the engine wrongly considered it crashed, a second
        // worker may have recorded the held events already, and events without a key would be recorded twice. A worker
        // that has only recorded a retry is not ahead.
        let is_further = by_others_before < self.by_others.len();
        let keyless = |event: &Event| {
            matches!(event, Event::StateChanged { .. } | Event::UsageRecorded { call: None, .. })
        };
        if is_further && held.events().iter().any(keyless) {
            let message = "another worker executes the same run and is ahead";
            return Err(self.error(ErrorCode::Superseded, message));
        }
        if held.is_empty() {
            // The next `stage` decides and returns the decisions to its caller.
            return Ok(());
        }
        let was_ended = held.events().iter().any(|event| matches!(event, Event::RunEnded { .. }));
        let mut facts =
            if mutant!("decisions-kept") { held.into_events() } else { held.into_facts() };
        facts.retain(|_| !mutant!("facts-dropped"));
        self.hold(&facts, Oversize::Replaced)?;
        if !decides {
            return Ok(());
        }
        let decided = self.decide(StepIterator::decide)?;
        if !self.late.is_empty()
            || decided.iter().any(|event| matches!(event, Event::ToolFinished(_)))
        {
            // Hooks receive results before their step is closed. The next `stage` decides and returns the decisions to
            // its caller, which calls the hooks.
            let facts = self.roll_back().into_facts();
            return self.hold(&facts, Oversize::Replaced);
        }
        if was_ended { self.end_run() } else { Ok(()) }
    }

    /// Removes the staged events from the fold and returns them.
    fn roll_back(&mut self) -> Batch {
        if let Some(savepoint) = self.savepoint.take() {
            self.iterator.session_to_roll_back().rollback(savepoint);
        }
        std::mem::take(&mut self.held)
    }

    fn acknowledge(&mut self, append: AppendId, at: Timestamp) -> Vec<Event> {
        let after = self.acknowledged();
        self.iterator.acknowledge(append, at);
        self.savepoint = None;
        let events = self.held.take_events();
        let appended = Appended { events: &events, after, at, run: &self.run };
        log_events::recorded(self.iterator.session(), &self.run, &events);
        self.config.observers.recorded(self.iterator.session(), appended);
        events
    }

    fn append_of_held(&mut self, guard: Guard) -> Append {
        let count = u32::try_from(self.staged().len()).unwrap_or(u32::MAX);
        let body = self.held.take_body();
        let session = self.session();
        let expected = match &self.savepoint {
            Some(savepoint) => savepoint.position().clone(),
            None => session.position().clone(),
        };
        let ended = session.current_run().is_none();
        Append {
            session: session.id().clone(),
            expected,
            id: self.config.ids.append(),
            run: Some(self.run.clone()),
            schema: SCHEMA,
            count,
            body,
            summary: (!mutant!("head-not-kept") || !ended).then(|| session.summary()),
            // Until the run ends, readers take the usage from the log.
            usage: ended.then(|| session.stored_usage()),
            lease: if ended { LeaseChange::Clear } else { LeaseChange::Take(self.config.lease) },
            guard,
        }
    }

    fn superseded(&self) -> Error {
        self.error(ErrorCode::Superseded, "another run owns the session now")
    }

    fn history_lost(&self) -> Error {
        let message = "the store lost acknowledged events, for example because it was restored from a backup; the run \
                       stops";
        self.error(ErrorCode::HistoryLost, message)
    }

    fn error(&self, code: ErrorCode, message: &'static str) -> Error {
        Error::new(code, message)
            .with_context("session", self.session().id())
            .with_context("run", &self.run)
    }
}
