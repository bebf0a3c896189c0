//! Writing a log: how a run records facts and decisions, whatever else is appended meanwhile.

mod batch;
mod committed;
mod fit;
mod hold;
mod late;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::{Request, RequestKind, Savepoint, Session, SessionOverview};
use crate::agent::AnyAgent;
use crate::clock::{IdSource, Timestamp};
use crate::error::{Error, ErrorCode, Result};
use crate::event::{Event, RunOutcome, SCHEMA, ToolFinish, decode};
use crate::fault;
use crate::id::{AppendId, RunId, SessionId};
use crate::mutant;
use crate::step::{Action, StepIterator};
use crate::store::{
    Append, AppendOutcome, CreateOutcome, Guard, LeaseChange, NewSession, StateStore, StoredAppend,
};
use crate::usage::UsageRollup;
use batch::Batch;
pub use committed::Committed;
use hold::Oversize;

/// How often an append is tried against a log that others append to at the same time.
const MAX_CONFLICTS: u32 = 64;

/// When facts are appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// As they happen: the reply, then tool results. A crash repeats at most what was under way.
    #[default]
    PerEffect,
    /// Once per step. A crash repeats the step. Starts of at-most-once tools are still appended
    /// before they run.
    PerStep,
}

/// What a journal needs.
#[derive(Debug, Clone)]
pub struct JournalConfig {
    /// Where the log is kept. An append whose outcome is unknown ends the run, so what may be away
    /// for a moment is wrapped in a [`RetryingStore`](crate::store::RetryingStore).
    pub store: Arc<dyn StateStore>,
    /// Fresh ids.
    pub ids: Arc<dyn IdSource>,
    /// How long the owner counts as alive after each append.
    pub lease: Duration,
    /// When facts are appended.
    pub durability: Durability,
}

/// What came of starting a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartOutcome {
    /// The run is the session's current one.
    Started,
    /// Something was appended meanwhile: look at the session again.
    Changed,
    /// Somebody's lease is still good.
    Leased {
        /// Until when, by the store's clock.
        until: Timestamp,
        /// The store's clock.
        now: Timestamp,
    },
}

/// The one who writes a run's events.
///
/// Facts go into the fold first, then the decisions that follow from them, and all of that into
/// one append. If something else was appended meanwhile, the fold goes back, takes in what was
/// missed, takes the facts again if they are still new and legal, and asks for the decisions
/// anew.
///
/// What is large takes several appends. Each of them is a log to continue from: a fact that is
/// missing is asked for again, and decisions follow from those that are there. A fact that no append
/// carries is recorded as one that was too large, so that a run does not repeat it for ever.
#[derive(Debug)]
pub struct Journal {
    parts: JournalConfig,
    iterator: StepIterator,
    run: RunId,
    held: Batch,
    savepoint: Option<Savepoint>,
    /// Events that another worker of the same run recorded since the last commit, with their versions.
    by_others: Vec<(u64, Event)>,
    /// Results that an earlier run handed in since the last append of this run, with their versions.
    late: Vec<(u64, Arc<ToolFinish>)>,
    /// The most bytes of one append.
    limit: usize,
    /// The usage that the store was told last; none before this journal's first append, because
    /// whoever wrote before may have said nothing of it.
    told_usage: Option<Arc<UsageRollup>>,
}

impl Journal {
    /// The journal of `run`, which is the session's current run or is about to be.
    #[must_use]
    pub fn new(parts: JournalConfig, agent: AnyAgent, session: Session, run: RunId) -> Self {
        let iterator = StepIterator::new(agent, session);
        let limit = parts.store.max_append_bytes();
        let (held, by_others) = (Batch::default(), Vec::new());
        // What came before a run begins is not for its appends to show.
        let is_current = iterator.session().current_run().is_some_and(|current| current.id == run);
        let late = if is_current { iterator.session().late_results().to_vec() } else { Vec::new() };
        let (savepoint, told_usage) = (None, None);
        Self { parts, iterator, run, held, savepoint, by_others, late, limit, told_usage }
    }

    /// The session as far as this journal knows it.
    #[must_use]
    pub fn session(&self) -> &Session {
        self.iterator.session()
    }

    /// The session as the store has it, if nothing is staged.
    #[must_use]
    pub fn into_session(self) -> Option<Session> {
        self.savepoint.is_none().then(|| self.iterator.into_session())
    }

    /// The overview to save as a snapshot now, if one is due and nothing is staged. It counts as saved
    /// from here on: whether it was makes a difference to later readers only.
    pub fn take_due_snapshot(&mut self) -> Option<SessionOverview> {
        if self.savepoint.is_some() || !self.session().is_snapshot_due() {
            return None;
        }
        let overview = self.session().overview().clone();
        self.iterator.session_mut().snapshot_saved(overview.position().version);
        Some(overview)
    }

    /// What to do next.
    #[must_use]
    pub fn next(&self) -> Action {
        self.iterator.next()
    }

    /// How the run ends, if that is what comes next.
    #[must_use]
    pub fn ending(&self) -> Option<RunOutcome> {
        self.iterator.ending()
    }

    /// The version that the store has acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        match &self.savepoint {
            Some(savepoint) => savepoint.position().version,
            None => self.session().position().version,
        }
    }

    /// Creates the session with these events, which start its first run.
    ///
    /// # Errors
    /// [`ErrorCode::SessionExists`] if somebody else created it, [`ErrorCode::TooLarge`] if the
    /// events do not fit into one append; otherwise the store's.
    pub async fn create(&mut self, new: NewSession, events: Vec<Event>) -> Result<()> {
        self.hold(&events, Oversize::Refused)?;
        let append = self.append_of_held(Guard::None);
        fault::point("journal.before_create");
        let sent = append.id.clone();
        match self.parts.store.create_session(new, append).await? {
            CreateOutcome::Created { at } => {
                fault::point("journal.after_create");
                self.acknowledge(sent, at);
                Ok(())
            }
            CreateOutcome::Exists => {
                self.roll_back();
                Err(Error::new(ErrorCode::SessionExists, "a session of this id exists already")
                    .with_context("session", self.session().id()))
            }
        }
    }

    /// Starts this journal's run with these events, of which the first (after a heal) is its
    /// `RunStarted`. Like every decision it is not appended again on a conflict. What was staged
    /// before goes first: a run that ends with its start, as an abort does, is staged whole.
    ///
    /// # Errors
    /// The store's, those of events that are not legal, and [`ErrorCode::TooLarge`] if they do not
    /// fit into one append.
    pub async fn start(&mut self, events: Vec<Event>) -> Result<StartOutcome> {
        self.hold(&events, Oversize::Refused)?;
        let guard = if mutant!("lease-taken") { Guard::None } else { Guard::LeaseFree };
        let append = self.append_of_held(guard);
        let append_id = append.id.clone();
        fault::point("journal.before_start");
        match self.parts.store.append(append).await? {
            AppendOutcome::Appended { at } => {
                fault::point("journal.after_start");
                self.acknowledge(append_id, at);
                Ok(StartOutcome::Started)
            }
            AppendOutcome::Conflict { .. } => {
                self.roll_back();
                Ok(StartOutcome::Changed)
            }
            AppendOutcome::GuardFailed { lease_until, now } => {
                self.roll_back();
                Ok(StartOutcome::Leased { until: lease_until.unwrap_or(now), now })
            }
            AppendOutcome::HistoryLost => Err(self.history_lost()),
        }
    }

    /// Takes facts into the fold, and the decisions that follow from them, up to the next effect
    /// or the end of the run. Returns the decisions. [`commit`](Self::commit) appends all of it.
    ///
    /// # Errors
    /// Those of events that are not legal: the run must stop then.
    pub fn stage(&mut self, facts: &[Event]) -> Result<Vec<Event>> {
        self.hold(facts, Oversize::Replaced)?;
        self.decide()
    }

    /// What was staged and is not appended yet.
    #[must_use]
    pub fn staged(&self) -> &[Event] {
        self.held.events()
    }

    /// Takes facts into the fold and decides nothing yet: the next [`stage`](Self::stage) does.
    ///
    /// # Errors
    /// As [`stage`](Self::stage).
    pub fn hold_back(&mut self, facts: &[Event]) -> Result<()> {
        self.hold(facts, Oversize::Replaced)
    }

    /// Takes the end of the run into the fold, if that is what comes next; after `stage`, and
    /// after the hooks of the end were run.
    ///
    /// # Errors
    /// Those of events that are not legal.
    pub fn end_run(&mut self) -> Result<()> {
        if let Some(outcome) = self.ending() {
            self.hold(&[Event::RunEnded { outcome }], Oversize::Replaced)?;
        }
        Ok(())
    }

    /// Lets the fold know the store's clock: what has expired by then is decided upon, and
    /// deadlines are counted from there.
    ///
    /// # Errors
    /// The store's.
    pub async fn observe_clock(&mut self) -> Result<()> {
        if let Some(head) = self.parts.store.head(self.session().id()).await? {
            self.iterator.session_mut().observe(head.read_at);
        }
        Ok(())
    }

    /// Whether [`commit`](Self::commit) would append something now.
    #[must_use]
    pub fn is_due(&self) -> bool {
        let at_once = self.parts.durability == Durability::PerEffect
            || self.held.bytes() > batch::target(self.limit);
        !self.held.is_empty() && (at_once || self.must_flush() || self.reaches_others())
    }

    /// Whether what comes next writes to other sessions under names made of calls: those calls have
    /// to be on record, or the model might be asked again and call something else.
    fn reaches_others(&self) -> bool {
        matches!(self.next(), Action::StartChildren(_) | Action::RunCompanions(_))
    }

    /// Appends what was staged; with [`Durability::PerStep`] only if it closes a step, ends the
    /// run, has to be on record before something runs, or is too large to be held back.
    ///
    /// # Errors
    /// [`ErrorCode::Superseded`] if another run owns the session now,
    /// [`ErrorCode::HistoryLost`], or the store's. The run must stop then.
    pub async fn commit(&mut self) -> Result<Committed> {
        if !self.is_due() && !self.held.is_empty() {
            return Ok(Committed::nothing(self.acknowledged()));
        }
        self.flush().await
    }

    /// Appends what was staged.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub async fn flush(&mut self) -> Result<Committed> {
        self.flush_with(true).await
    }

    /// `decides` says whether decisions go with facts that are taken again.
    async fn flush_with(&mut self, decides: bool) -> Result<Committed> {
        // Who decides nothing meets others of its kind, of whom each append is one less.
        let mut tries = if decides { MAX_CONFLICTS } else { MAX_CONFLICTS * 64 };
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
                self.hold_again(next)?;
            } else if later.is_empty()
                && self.held.bytes() > batch::target(self.limit)
                && !mutant!("append-not-divided")
            {
                later = self.divide()?;
            }
            let append = self.append_of_held(Guard::None);
            let append_id = append.id.clone();
            fault::point("journal.before_append");
            match self.parts.store.append(append).await? {
                AppendOutcome::Appended { at } => {
                    fault::point("journal.after_append");
                    committed.take(self.acknowledge(append_id, at));
                }
                AppendOutcome::Conflict { missed } => {
                    tries -= 1;
                    if tries == 0 {
                        let message = "others append to the session without pause";
                        return Err(self.error(ErrorCode::StoreBusy, message));
                    }
                    later.drain(..).try_for_each(|part| self.hold_again(part))?;
                    committed.skip(&missed);
                    self.take_in(&missed, decides).await?;
                }
                AppendOutcome::HistoryLost | AppendOutcome::GuardFailed { .. } => {
                    return Err(self.history_lost());
                }
            }
        }
    }

    /// Appends facts and no decisions, which are for somebody else to take: for one of several effects
    /// that are carried out side by side in different places.
    ///
    /// # Errors
    /// As [`commit`](Self::commit), and those of events that are not legal.
    pub async fn append_facts(&mut self, facts: &[Event]) -> Result<Committed> {
        self.hold(facts, Oversize::Replaced)?;
        self.flush_with(false).await
    }

    /// Reads requests from outside that the fold does not hold yet; an abort before an interrupt. They
    /// enter the fold with the next append: this only says whether there is reason to hurry.
    ///
    /// # Errors
    /// The store's.
    pub async fn requested(
        store: &dyn StateStore,
        session: &SessionId,
        run: &RunId,
        after: u64,
    ) -> Result<Option<(RequestKind, Request)>> {
        let mut interrupt = None;
        for event in super::load_events(store, session, after).await? {
            match event.event {
                Event::AbortRequested { request: id, run: named, reason } if named == *run => {
                    return Ok(Some((RequestKind::Abort, Request { id, reason })));
                }
                Event::InterruptRequested { request: id, run: named, reason } if named == *run => {
                    interrupt = Some((RequestKind::Interrupt, Request { id, reason }));
                }
                _ => {}
            }
        }
        Ok(interrupt)
    }

    /// Takes in what was appended from outside since the last append.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub async fn catch_up(&mut self) -> Result<()> {
        let after = self.acknowledged();
        let missed = self.parts.store.read_log(self.session().id(), after, MAX_CONFLICTS).await?;
        if missed.is_empty() { Ok(()) } else { self.take_in(&missed, true).await }
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

    /// Puts the fold onto what others appended, and the facts that still stand onto that.
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
                    Event::PartRepeated { .. } => {}
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
        // Who decides is alone in a run, unless its engine took it for dead and had somebody else do the
        // same. What is held then has been recorded by that one; without a key it would be twice.
        // One that has only said that it tries again is not further.
        let is_further = by_others_before < self.by_others.len();
        let keyless = |event: &Event| {
            matches!(event, Event::StateChanged { .. } | Event::UsageRecorded { call: None, .. })
        };
        if is_further && held.iter().any(keyless) {
            let message = "somebody else carries the same run out, and is further";
            return Err(self.error(ErrorCode::Superseded, message));
        }
        if held.is_empty() {
            // The next `stage` decides, and its caller is told what.
            return Ok(());
        }
        let was_ended = held.iter().any(|event| matches!(event, Event::RunEnded { .. }));
        let facts: Vec<_> = held
            .into_iter()
            .filter(|event| !event.is_decision() || mutant!("decisions-kept"))
            .filter(|_| !mutant!("facts-dropped"))
            .collect();
        self.hold(&facts, Oversize::Replaced)?;
        if !decides {
            return Ok(());
        }
        let decided = self.decide()?;
        let answers = decided.iter().any(|event| matches!(event, Event::ToolFinished(_)));
        // Calls that were answered instead have hooks, which come before the end.
        if was_ended && !answers { self.end_run() } else { Ok(()) }
    }

    fn roll_back(&mut self) -> Vec<Event> {
        if let Some(savepoint) = self.savepoint.take() {
            self.iterator.session_mut().rollback(savepoint);
        }
        std::mem::take(&mut self.held).into_events()
    }

    fn acknowledge(&mut self, append: AppendId, at: Timestamp) -> Vec<Event> {
        self.iterator.settle(append, at);
        self.savepoint = None;
        self.told_usage = Some(Arc::clone(self.session().own_usage()));
        std::mem::take(&mut self.held).into_events()
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
            id: self.parts.ids.append(),
            run: Some(self.run.clone()),
            schema: SCHEMA,
            count,
            body,
            summary: (!mutant!("head-not-kept") || !ended).then(|| session.summary()),
            usage: self.usage_to_tell(),
            lease: if ended { LeaseChange::Clear } else { LeaseChange::Take(self.parts.lease) },
            guard,
        }
    }

    /// The usage after what is held, unless the store knows it.
    fn usage_to_tell(&self) -> Option<Arc<UsageRollup>> {
        let own = self.session().own_usage();
        let is_told = self.told_usage.as_ref().is_some_and(|told| Arc::ptr_eq(told, own));
        (!is_told).then(|| own.bounded())
    }

    fn superseded(&self) -> Error {
        self.error(ErrorCode::Superseded, "another run owns the session now")
    }

    fn history_lost(&self) -> Error {
        self.error(ErrorCode::HistoryLost, "the store lost what it had acknowledged; the run stops")
    }

    fn error(&self, code: ErrorCode, message: &'static str) -> Error {
        Error::new(code, message)
            .with_context("session", self.session().id())
            .with_context("run", &self.run)
    }
}
