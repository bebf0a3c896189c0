//! Drives one run: determines the next action, records its result, then updates the stream and calls hooks.

use std::pin::pin;
use std::sync::Arc;

use helix_agents_core::agent::AnyAgent;
use helix_agents_core::error::{Error, Result};
use helix_agents_core::event::{Event, RunOutcome, ToolFinish, Trigger};
use helix_agents_core::hooks::{HookContext, HookScope};
use helix_agents_core::id::{CallId, RunId};
use helix_agents_core::message::Message;
use helix_agents_core::mutant;
use helix_agents_core::session::{
    Committed, Durability, Journal, Session, StreamRepair, deliver_missed_notices, event_chunks,
};
use helix_agents_core::step::{Action, CallResult, UndeliveredResults};
use tokio_util::sync::CancellationToken;

use crate::cancel_reason::CancelReason;
use crate::context::RuntimeContext;
use crate::hook_chain::{HookChain, changed, follow};
use crate::lease_keeper::LeaseKeeper;
use crate::live::LiveRun;
use crate::run_ref::RunRef;
use crate::runtime::Runtime;
use crate::start_queue::StartTicket;
use crate::store_clock::StoreClock;
use crate::stream_writer::{AttemptHandle, StreamWriter, WatermarkUpdate};

mod end;
mod recovered;
mod stream_updates;

/// Executes actions of one run in this process. The local engine uses one driver for the whole run. Work items create a
/// driver each.
#[derive(Debug)]
pub struct Driver {
    pub(crate) runtime: Runtime,
    pub(crate) context: Arc<RuntimeContext>,
    pub(crate) agent: AnyAgent,
    pub(crate) hooks: HookChain,
    /// The hooks that children inherit, even if the run disabled its own.
    pub(crate) inherited_hooks: HookChain,
    pub(crate) journal: Journal,
    pub(crate) stream_writer: StreamWriter,
    pub(crate) live: Arc<LiveRun>,
    /// Attempts that the next successful append settles. Child starts and companion calls are added before their
    /// outcome is known.
    pub(crate) unsettled: Vec<AttemptHandle>,
    /// The calls whose results an earlier run recorded after it was taken over. Attempts of these calls in this run are
    /// discarded, including attempts that end later.
    pub(crate) late_calls: Vec<CallId>,
    /// The version of the log when the driver was created.
    pub(crate) opened_at: u64,
    /// The store's clock, read when the driver was created and at each append.
    pub(crate) store_clock: StoreClock,
    /// Results for which hooks have not been called yet.
    pub(crate) results: UndeliveredResults,
    /// `true` if the run is executed as work items, so another worker may execute the same work item.
    pub(crate) in_work_items: bool,
    /// Cancelled when the run is asked to interrupt while an effect is in progress.
    pub(crate) interrupt: CancellationToken,
}

/// The progress of hook calls for a run whose start is retried: the results that hooks have not received yet, and the
/// state changes that hooks have made. A retry therefore calls no hook twice.
#[derive(Debug, Default)]
pub(crate) struct HookProgress {
    /// The last run of the session when these hook calls were made.
    after: Option<RunId>,
    results: UndeliveredResults,
    /// The state changes made by the hooks.
    changes: Vec<Event>,
}

impl HookProgress {
    /// If another run has started since these hook calls, resets the progress and returns `true`. The session's results
    /// must then be examined again, by a run with a new id.
    pub(crate) fn reset_after(&mut self, last: Option<&RunId>) -> bool {
        let is_new = self.after.as_ref() != last;
        if is_new {
            *self = Self { after: last.cloned(), ..Self::default() };
        }
        is_new
    }
}

impl Driver {
    /// Disables the hooks of a run after too many takeovers. A hook that is called at the end of the run may be the
    /// cause of the crashes.
    pub(crate) fn drop_hooks_after_max_takeovers(&mut self) {
        let session = self.journal.session();
        let takeovers = session.takeovers();
        if takeovers > self.agent.limits().max_takeovers {
            tracing::error!(session = %session.id(), takeovers, "hooks are disabled for the end of this run");
            self.hooks = HookChain::none();
        }
    }

    /// Returns the next action. This does not check ownership of the run: every effect waits for the
    /// [lease](Self::guarded), and an append is rejected if another run owns the session.
    ///
    /// # Errors
    /// Returns [`Closed`](helix_agents_core::error::ErrorCode::Closed) if the runtime is shutting down, unless the run only has to record its end.
    pub fn next(&self) -> Result<Action> {
        let action = self.journal.next();
        let ending = matches!(action, Action::End(_) | Action::Idle);
        if self.context.tasks.drain.is_cancelled() && !ending {
            return Err(self.error(CancelReason::ShuttingDown));
        }
        Ok(action)
    }

    /// Returns the session as known to this run.
    #[must_use]
    pub fn session(&self) -> &Session {
        self.journal.session()
    }

    /// Returns the log version that the store has acknowledged.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.journal.acknowledged()
    }

    /// Returns a reference to the run.
    #[must_use]
    pub fn run_ref(&self) -> RunRef {
        RunRef::named(self.session(), &self.live.run)
    }

    /// Returns the context shared with other runs.
    #[must_use]
    pub fn context(&self) -> &Arc<RuntimeContext> {
        &self.context
    }

    /// Returns the runtime of the run.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Returns the agent of the run.
    #[must_use]
    pub fn agent(&self) -> &AnyAgent {
        &self.agent
    }

    /// Returns the state of the run that is shared with its handles.
    #[must_use]
    pub fn live(&self) -> &Arc<LiveRun> {
        &self.live
    }

    /// Registers attempts whose outcome is about to be recorded.
    pub fn register_outcomes(&mut self, attempts: impl IntoIterator<Item = AttemptHandle>) {
        self.unsettled.extend(attempts);
    }

    /// Reads events that other processes appended.
    ///
    /// # Errors
    /// Returns the errors of [`record`](Self::record).
    pub async fn catch_up(&mut self) -> Result<()> {
        self.journal.catch_up().await
    }

    /// Returns the error of a run that was cancelled for this reason.
    #[must_use]
    pub fn error(&self, reason: CancelReason) -> Error {
        reason.into_error(&self.live.session, &self.live.run)
    }

    /// Repairs the stream, shows the start of the run, and calls the hooks for its start or its resumption. The log
    /// must end with `start_events`.
    ///
    /// # Errors
    /// Returns the errors of the store. The run must stop then.
    pub async fn open(&mut self, lease: &mut LeaseKeeper, start_events: &[Event]) -> Result<()> {
        let version = self.version();
        self.open_at(lease, start_events, version).await
    }

    /// Repairs the stream, shows the start of the run and calls start hooks. `start_events` are the events of the
    /// append that started the run, and `version` is the log version after that append.
    ///
    /// # Errors
    /// Returns the errors of the store. The run must stop then.
    pub(crate) async fn open_at(
        &mut self,
        lease: &mut LeaseKeeper,
        start_events: &[Event],
        version: u64,
    ) -> Result<()> {
        let session = self.journal.session();
        let trigger = session.last_run().map(|run| run.trigger);
        let starts_turn = matches!(trigger, Some(Trigger::Execute | Trigger::Continue));
        let mut line = if session.runs().nth(1).is_some() {
            self.plan_repair(lease, version - start_events.len() as u64).await?
        } else {
            StreamRepair::default()
        };
        let shown =
            event_chunks(session, (version + 1 - start_events.len() as u64..).zip(start_events));
        line.boundaries.extend(self.stream_writer.boundaries(0, shown));
        let StreamRepair { settled, discarded, boundaries } = line;
        // Events after the start are shown by the watermarks of later appends.
        let watermark = WatermarkUpdate {
            version,
            settled_before: settled,
            discarded,
            boundaries,
            ..WatermarkUpdate::default()
        };
        self.stream_writer.watermark(0, watermark);
        self.report_superseded_run(lease, version).await?;
        if self.journal.session().companions().next().is_some() {
            let mut polled = Box::pin(deliver_missed_notices(
                self.context.request_context(),
                self.journal.session(),
            ));
            self.under_lease(lease, polled.as_mut()).await??;
            drop(polled);
            self.journal.catch_up().await?;
            let mut shown = Box::pin(self.show_ended_companions());
            self.under_lease(lease, shown.as_mut()).await?;
        }
        if self.hooks.is_empty() {
            return Ok(());
        }
        self.results = UndeliveredResults::taken_over(self.journal.session(), &self.agent);
        if !starts_turn {
            // A rewind to before the suspension resumes none of the pending calls.
            let went_back = start_events.iter().any(|event| matches!(event, Event::Rewound { .. }));
            return if went_back { Ok(()) } else { Box::pin(self.resumed_hooks(lease)).await };
        }
        let place = self.place(0);
        let state = Arc::clone(self.journal.session().state());
        let cx = HookContext::new(&place, "on_agent_start", Arc::clone(&state));
        let mut hook_call = Box::pin(async {
            self.hooks.agent_start(&cx).await;
            let mut events: Vec<_> = changed(&cx, "on_agent_start").into_iter().collect();
            let mut state = state;
            follow(&mut state, events.first());
            for event in start_events {
                if let Event::UserMessages { messages } = event {
                    events.extend(self.hooks.user_messages(&place, &state, messages).await);
                }
            }
            events
        });
        let events = self.under_lease(lease, hook_call.as_mut()).await?;
        drop(hook_call);
        self.journal.stage(&events).map(drop)
    }

    /// Shows the ends of companions whose owner may have crashed before it wrote them to the stream.
    async fn show_ended_companions(&self) {
        for (_, record) in self.journal.session().companions() {
            self.context.show_end(&record.start.session).await;
        }
    }

    /// Calls the hooks for the resumption of a suspended run.
    async fn resumed_hooks(&mut self, lease: &mut LeaseKeeper) -> Result<()> {
        let session = self.journal.session();
        let runs: Vec<_> = session.runs().rev().take(2).collect();
        let before = runs.get(1).and_then(|run| run.suspended.as_ref());
        let Some(from) = before.filter(|_| session.current_run().is_some()) else { return Ok(()) };
        let place = self.place(session.last_step());
        let cx = HookContext::new(&place, "on_agent_resumed", session.step_state());
        let mut hook_call = Box::pin(self.hooks.agent_resumed(&cx, from));
        self.under_lease(lease, hook_call.as_mut()).await?;
        drop(hook_call);
        let events: Vec<_> = changed(&cx, "on_agent_resumed").into_iter().collect();
        self.journal.apply_facts(&events)
    }

    /// Records facts and the decisions that follow from them, calls hooks, and updates the stream.
    ///
    /// Hooks are called for results that are recorded: results among the facts, and those that are decisions, such as
    /// that of a denied call. With such results, this takes at least two appends. The last one contains the remaining
    /// decisions and the state changes of the hooks.
    ///
    /// # Errors
    /// Returns the errors of [`Journal::commit`]. If the lease is lost meanwhile, returns `superseded`,
    /// `session_not_found`, `store_unavailable` or `closed`. The run must stop then.
    pub async fn record(&mut self, lease: &mut LeaseKeeper, mut facts: Vec<Event>) -> Result<()> {
        let step = self.journal.session().last_step();
        let mut has_recorded = false;
        if self.calls_result_hooks(&facts) {
            has_recorded = Box::pin(self.record_facts(lease, &facts)).await?;
            facts.clear();
        }
        has_recorded |= self.record_results(lease, &facts).await?;
        let mut decided = self.stage(&[])?;
        if matches!(self.journal.pending_outcome(), Some(RunOutcome::Suspended { .. })) {
            // Deadlines are compared with the store's clock. Some may have expired already.
            self.journal.observe_clock().await?;
            has_recorded |= self.record_results(lease, &[]).await?;
            decided.extend(self.stage(&[])?);
        }
        if !self.hooks.is_empty() {
            let results = self.results.take(&self.journal.next());
            let mut hook_call = Box::pin(self.result_hooks(&results, &decided));
            let changes = Box::pin(self.under_lease(lease, hook_call.as_mut())).await?;
            drop(hook_call);
            self.journal.stage(&changes)?;
        }
        if let Some(outcome) = self.journal.pending_outcome() {
            if !self.hooks.is_empty() {
                let session = self.journal.session();
                let place = self.place(session.last_step());
                let mut hook_call =
                    Box::pin(self.hooks.ends(&place, session.step_state(), &outcome));
                let change = Box::pin(self.under_lease(lease, hook_call.as_mut())).await?;
                drop(hook_call);
                self.journal.stage(change.as_slice())?;
            }
            self.journal.end_run()?;
        }
        let is_due = self.journal.is_due();
        if is_due && mutant!("mark-first") {
            let version = self.session().position().version;
            self.stream_writer
                .watermark(step, WatermarkUpdate { version, ..WatermarkUpdate::default() });
        }
        let is_staged = !self.journal.staged().is_empty();
        let (sent, committed) = {
            let commit = pin!(self.journal.commit());
            match is_due {
                true => self.stream_writer.flush_before(commit).await,
                false => (lease.now(), commit.await),
            }
        };
        let committed = committed?;
        self.note_late(&committed.late);
        if committed.events.is_empty() {
            if self.in_work_items && is_staged && !has_recorded {
                // Another process has recorded all of it.
                self.discard();
            }
            self.show_late(step, &committed);
            return Ok(());
        }
        lease.extended(sent);
        self.apply_commit(step, &committed);
        Ok(())
    }

    /// Adds facts to the fold. If hooks have to be called for results that follow from the fold, records these results
    /// as well. Returns `true` if it recorded events.
    async fn record_results(&mut self, lease: &mut LeaseKeeper, facts: &[Event]) -> Result<bool> {
        self.journal.apply_facts(facts)?;
        let mut has_recorded = false;
        if self.hooks.is_empty() {
            return Ok(has_recorded);
        }
        // A conflict drops decisions, which are made again.
        while !self.journal.stage_results()?.is_empty() {
            has_recorded |= Box::pin(self.record_facts(lease, &[])).await?;
        }
        self.results.refresh(self.journal.session(), &self.agent);
        Ok(has_recorded)
    }

    /// Records facts while other calls of the same step are running. If the append reads an abort request, these calls
    /// stay open, so that their results can be recorded if they stop in time.
    ///
    /// # Errors
    /// Returns the errors of [`record`](Self::record).
    pub async fn record_concurrently(
        &mut self,
        lease: &mut LeaseKeeper,
        facts: Vec<Event>,
    ) -> Result<()> {
        if self.calls_result_hooks(&facts) {
            return self.record_facts(lease, &facts).await.map(drop);
        }
        self.journal.apply_facts(&facts)?;
        if self.journal.is_due() {
            self.record_facts(lease, &[]).await?;
        }
        Ok(())
    }

    /// Adds results to the fold. They are recorded immediately if hooks have to be called for them, otherwise with the
    /// next append.
    ///
    /// # Errors
    /// Returns the errors of [`record`](Self::record).
    pub async fn take_results(&mut self, lease: &mut LeaseKeeper, facts: &[Event]) -> Result<()> {
        if self.calls_result_hooks(facts) {
            self.record_facts(lease, facts).await.map(drop)
        } else {
            // The next `record` decides: with hooks, it records results before everything else.
            self.journal.apply_facts(facts)
        }
    }

    /// Returns `true` if hooks have to be called for results among these events.
    fn calls_result_hooks(&self, events: &[Event]) -> bool {
        !self.hooks.is_empty() && events.iter().any(|event| matches!(event, Event::ToolFinished(_)))
    }

    /// Registers the results of an append and shows its events in the stream.
    fn apply_commit(&mut self, step: u32, committed: &Committed) {
        let session = self.journal.session();
        self.store_clock = StoreClock::read(session.clock(), self.context.clock.monotonic());
        if !self.hooks.is_empty() {
            // Events of other processes may have answered calls.
            self.results.note(session, &self.agent, &committed.events);
        }
        let step = step.max(session.last_step());
        let boundaries = self.shown(step, committed);
        self.discard_late(step, committed);
        self.watermark(step, committed.version, &committed.events, boundaries);
        self.save_snapshot();
    }

    /// Notes the recorded results of these calls for hooks, in the first execution of a work item. Later executions note
    /// all results.
    pub(crate) fn note_calls(&mut self, calls: &[CallId], is_first: bool) {
        if is_first && !self.hooks.is_empty() {
            self.results = UndeliveredResults::of_calls(self.session(), &self.agent, calls);
        }
    }

    /// Notes all recorded results for which hooks may not have been called.
    pub(crate) fn note_open_step(&mut self) {
        if !self.hooks.is_empty() {
            self.results = UndeliveredResults::of_open_step(self.session(), &self.agent);
        }
    }

    /// Notes late results that an earlier run has recorded since this driver was created.
    fn note_late(&mut self, late: &[(u64, Arc<ToolFinish>)]) {
        if self.hooks.is_empty() {
            return;
        }
        for (_, finish) in late.iter().filter(|(version, _)| *version > self.opened_at) {
            self.results.note_one(self.journal.session(), &self.agent, finish);
        }
    }

    /// Records facts without taking decisions. Returns `false` if another process has recorded all of them.
    ///
    /// # Errors
    /// Returns the errors of [`record`](Self::record).
    pub(crate) async fn record_facts(
        &mut self,
        lease: &mut LeaseKeeper,
        facts: &[Event],
    ) -> Result<bool> {
        let step = self.journal.session().last_step();
        self.journal.apply_facts(facts)?;
        if !self.hooks.is_empty() {
            // The staged form takes precedence: an oversized fact is replaced there.
            self.results.note(self.journal.session(), &self.agent, self.journal.staged());
            self.results.note(self.journal.session(), &self.agent, facts);
        }
        let (sent, committed) = {
            let append = pin!(self.journal.append_facts(&[]));
            self.stream_writer.flush_before(append).await
        };
        let committed = committed?;
        self.note_late(&committed.late);
        if committed.events.is_empty() {
            if self.in_work_items {
                self.discard();
            } else {
                let lost = std::mem::take(&mut self.unsettled);
                self.stream_writer.discard(step, &lost);
            }
            self.show_late(step, &committed);
            return Ok(false);
        }
        lease.extended(sent);
        self.apply_commit(step, &committed);
        Ok(true)
    }

    /// Records the start of a call in a work item and allows the call to run. Returns `false` if the call must not run,
    /// because the run was aborted or the call was answered in the meantime.
    ///
    /// # Errors
    /// Returns the errors of [`record`](Self::record), and
    /// [`Superseded`](helix_agents_core::error::ErrorCode::Superseded) if another process has started the call.
    pub(crate) async fn record_start(
        &mut self,
        lease: &mut LeaseKeeper,
        start: StartTicket,
    ) -> Result<bool> {
        if !self.record_facts(lease, std::slice::from_ref(start.event())).await? {
            return Err(self.error(CancelReason::Superseded));
        }
        let is_started = self.is_started(start.call());
        if is_started {
            start.grant();
        }
        Ok(is_started)
    }

    /// Adds facts and the decisions that follow from them to the fold, and registers the results among them.
    ///
    /// # Errors
    /// Returns the errors of illegal events. The run must stop then.
    pub fn stage(&mut self, facts: &[Event]) -> Result<Vec<Event>> {
        if self.hooks.is_empty() {
            return self.journal.stage(facts);
        }
        let late = self.journal.late_results().to_vec();
        self.note_late(&late);
        self.journal.apply_facts(facts)?;
        // The calls have to be looked up before the step is closed.
        self.results.note(self.journal.session(), &self.agent, self.journal.staged());
        let decided = self.journal.stage(&[])?;
        self.results.note(self.journal.session(), &self.agent, self.journal.staged());
        Ok(decided)
    }

    /// Stages the decisions and the end of a run that only records the abort of its session. Before that, calls the
    /// hooks for the calls that the abort answers, and if the last run crashed, for the results that it has recorded.
    /// `progress` holds the results of the hook calls of earlier tries and receives those of this one.
    pub(crate) async fn answer_aborted(
        &mut self,
        progress: &mut HookProgress,
        has_crashed: bool,
    ) -> Result<()> {
        if self.hooks.is_empty() {
            self.journal.stage(&[])?;
        } else {
            self.results = std::mem::take(&mut progress.results);
            if has_crashed {
                // The run may have recorded results that hooks have not received.
                self.results.note_open_step(self.journal.session(), &self.agent);
            }
            self.stage(&[])?;
            let results = self.results.take(&self.journal.next());
            progress.changes.extend(self.result_hooks(&results, &[]).await);
            progress.results = std::mem::take(&mut self.results);
            self.journal.stage(&progress.changes)?;
        }
        self.journal.end_run()
    }

    /// Calls the hooks for results and corrections. Returns their state changes.
    async fn result_hooks(&self, results: &[CallResult], decided: &[Event]) -> Vec<Event> {
        let session = self.journal.session();
        let place = self.place(session.last_step());
        let mut events = Vec::new();
        let mut state = session.step_state();
        for result in results {
            let change = self.hooks.result(&place, Arc::clone(&state), result).await;
            follow(&mut state, change.as_ref());
            events.extend(change);
        }
        for event in decided {
            let Event::CorrectionSent { message, .. } = event else { continue };
            let cx = HookContext::new(&place, "on_message.correction", Arc::clone(&state));
            self.hooks.message(&cx, &Message::User(message.clone())).await;
            events.extend(changed(&cx, "on_message"));
        }
        events
    }

    /// Returns the clock for the end times of effects, if their outcomes are not appended immediately.
    pub(crate) fn end_clock(&self) -> Option<StoreClock> {
        (self.context.durability == Durability::PerStep).then_some(self.store_clock)
    }

    /// Returns the stream position at which the run started.
    pub(crate) fn stream_from(&self) -> u64 {
        self.journal.session().last_run().map_or(0, |run| run.stream_from)
    }

    pub(crate) fn place(&self, step: u32) -> HookScope {
        HookScope {
            agent: Arc::clone(self.agent.name()),
            session: self.live.session.clone(),
            run: self.live.run.clone(),
            turn: self.journal.session().turn(),
            step,
        }
    }
}
