//! One run: what is next, what came of it, and what that means for the stream and the hooks.

use std::sync::Arc;

use helix_agents_core::agent::AnyAgent;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::event::{Event, RunOutcome, Trigger};
use helix_agents_core::executor::AgentResult;
use helix_agents_core::hooks::{HookChain, HookContext, HookPlace, changed, follow};
use helix_agents_core::id::RunId;
use helix_agents_core::message::Message;
use helix_agents_core::mutant;
use helix_agents_core::session::{
    Committed, Journal, Session, StreamRepair, boundaries, late_end, plan_stream_repair,
    poll_children, report_waiting,
};
use helix_agents_core::step::{Action, CallResult, Results};
use helix_agents_core::stream::{Boundary, ChunkKind};

use crate::cancel::CancelReason;
use crate::context::RuntimeContext;
use crate::family;
use crate::lease::LeaseKeeper;
use crate::live::LiveRun;
use crate::run_ref::RunRef;
use crate::runtime::Runtime;
use crate::starts::Start;
use crate::stream_writer::{AttemptHandle, FeedMark, StreamWriter};

/// What one run is carried out with.
#[derive(Debug)]
pub struct Driver {
    pub(crate) runtime: Runtime,
    pub(crate) context: Arc<RuntimeContext>,
    pub(crate) agent: AnyAgent,
    pub(crate) hooks: HookChain,
    /// The hooks that children inherit, also from a run that leaves out its own.
    pub(crate) inherited_hooks: HookChain,
    pub(crate) journal: Journal,
    pub(crate) stream_writer: StreamWriter,
    pub(crate) live: Arc<LiveRun>,
    /// Tries whose outcome is staged and not appended yet.
    pub(crate) unsettled: Vec<AttemptHandle>,
    /// Results that hooks are to be told of.
    pub(crate) results: Results,
    /// Whether somebody else may be at the same part of the run.
    pub(crate) in_parts: bool,
}

/// What hooks were told in a run that is tried until its first append is taken: each thing once.
#[derive(Debug, Default)]
pub(crate) struct HookProgress {
    /// The run that was the last one then.
    after: Option<RunId>,
    results: Results,
    /// What they made of it.
    changes: Vec<Event>,
}

impl HookProgress {
    /// Nothing was told yet if there was a run in between: what it left is to be looked at anew, by a run of
    /// another id. Returns `true` in that case.
    pub(crate) fn begins_anew(&mut self, last: Option<&RunId>) -> bool {
        let is_new = self.after.as_ref() != last;
        if is_new {
            *self = Self { after: last.cloned(), ..Self::default() };
        }
        is_new
    }
}

impl Driver {
    /// Ends what was driven: tells the stream, and those above and below.
    ///
    /// # Errors
    /// The one that it was driven to, or [`ErrorCode::Superseded`] if the run is gone.
    pub async fn end(
        mut self: Box<Self>,
        lease: &LeaseKeeper,
        driven: Result<()>,
    ) -> Result<AgentResult> {
        let failed = driven.as_ref().err().map(Error::code);
        if failed == Some(ErrorCode::Superseded) {
            // Another run has brought the stream into line with the log by now, or does so without knowing
            // what this one showed late.
            self.abandon();
        }
        self.stream_writer.close().await;
        // Nothing of this run is under way any more, so no other process has to wait for the lease.
        if failed.is_some_and(|code| code != ErrorCode::Superseded) {
            lease.release().await;
        }
        driven?;
        let session = self.journal.session();
        Box::pin(family::tell(&self.runtime, &self.agent, session, &self.inherited_hooks)).await;
        let Some(result) = self.journal.session().last_run().map(AgentResult::of) else {
            return Err(self.error(CancelReason::Superseded));
        };
        let Self { journal, context, .. } = *self;
        if let Some(fold) = journal.into_session() {
            context.folds.keep(fold);
        }
        Ok(result)
    }

    /// Drops the hooks of a run that gives up after one that could not even do that: a hook of the end may
    /// be what stops it.
    pub(crate) fn leave_out_hooks_that_stop_it(&mut self) {
        let session = self.journal.session();
        let takeovers = session.takeovers();
        if takeovers > self.agent.limits().max_takeovers {
            tracing::error!(session = %session.id(), takeovers, "no hook hears of this end");
            self.hooks = HookChain::none();
        }
    }

    /// What to do next. Whether the run is still this process's is asked by what it does: every effect
    /// waits for the [lease](Self::guarded), and an append is refused if another run owns the session.
    ///
    /// # Errors
    /// If nothing may be done any more, because the runtime is shutting down.
    pub fn next(&self) -> Result<Action> {
        let action = self.journal.next();
        let ending = matches!(action, Action::End(_) | Action::Idle);
        if self.context.tasks.drain.is_cancelled() && !ending {
            return Err(self.error(CancelReason::ShuttingDown));
        }
        Ok(action)
    }

    /// The session as far as this run knows it.
    #[must_use]
    pub fn session(&self) -> &Session {
        self.journal.session()
    }

    /// The version that the store has acknowledged.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.journal.acknowledged()
    }

    /// Which run it is.
    #[must_use]
    pub fn of(&self) -> RunRef {
        RunRef::named(self.session(), &self.live.run)
    }

    /// What it shares with other runs.
    #[must_use]
    pub fn context(&self) -> &Arc<RuntimeContext> {
        &self.context
    }

    /// The runtime that it is of.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Its agent.
    #[must_use]
    pub fn agent(&self) -> &AnyAgent {
        &self.agent
    }

    /// The run as handles see it.
    #[must_use]
    pub fn live(&self) -> &Arc<LiveRun> {
        &self.live
    }

    /// Notes tries whose outcome is about to be recorded.
    pub fn settles(&mut self, tickets: impl IntoIterator<Item = AttemptHandle>) {
        self.unsettled.extend(tickets);
    }

    /// Takes in what was appended from outside.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub async fn catch_up(&mut self) -> Result<()> {
        self.journal.catch_up().await
    }

    /// The error with which a run ends that was stopped.
    #[must_use]
    pub fn error(&self, stop: CancelReason) -> Error {
        stop.into_error(&self.live.session, &self.live.run)
    }

    /// Says that a run began whose events are the last of the log, and brings the stream into line.
    ///
    /// # Errors
    /// Those of the store; the run must stop then.
    pub async fn open(&mut self, lease: &mut LeaseKeeper, begun: &[Event]) -> Result<()> {
        let version = self.version();
        self.open_at(lease, begun, version).await
    }

    /// Brings the stream into line with the log, and says that the run began: with these events, after
    /// which the log had that version.
    ///
    /// # Errors
    /// Those of the store; the run must stop then.
    pub(crate) async fn open_at(
        &mut self,
        lease: &mut LeaseKeeper,
        begun: &[Event],
        version: u64,
    ) -> Result<()> {
        let session = self.journal.session();
        let trigger = session.last_run().map(|run| run.trigger);
        let begins_turn = matches!(trigger, Some(Trigger::Execute | Trigger::Continue));
        let mut line = if session.runs().nth(1).is_some() {
            self.out_of_line(lease, version - begun.len() as u64).await?
        } else {
            StreamRepair::default()
        };
        let shown = boundaries(session, (version + 1 - begun.len() as u64..).zip(begun));
        line.boundaries.extend(self.stream_writer.boundaries(0, shown));
        let StreamRepair { settled, discarded, boundaries } = line;
        // What came after the start is shown by the marks of later appends.
        let mark = FeedMark {
            version,
            settled_before: settled,
            discarded,
            boundaries,
            ..FeedMark::default()
        };
        self.stream_writer.mark(0, mark);
        if self.journal.session().companions().next().is_some() {
            let mut news = Box::pin(poll_children(self.context.outside(), self.journal.session()));
            self.under_lease(lease, news.as_mut()).await??;
            drop(news);
            self.journal.catch_up().await?;
            let mut shown = Box::pin(self.show_ended_companions());
            self.under_lease(lease, shown.as_mut()).await?;
        }
        if self.hooks.is_empty() {
            return Ok(());
        }
        self.results = Results::taken_over(self.journal.session(), &self.agent);
        if !begins_turn {
            // Who went back behind what was waited for resumes nothing of it.
            let went_back = begun.iter().any(|event| matches!(event, Event::Rewound { .. }));
            return if went_back { Ok(()) } else { Box::pin(self.resumed_hooks(lease)).await };
        }
        let place = self.place(0);
        let state = Arc::clone(self.journal.session().state());
        let cx = HookContext::new(&place, "on_agent_start", Arc::clone(&state));
        let mut told = Box::pin(async {
            self.hooks.agent_start(&cx).await;
            let mut events: Vec<_> = changed(&cx, "on_agent_start").into_iter().collect();
            let mut state = state;
            follow(&mut state, events.first());
            for event in begun {
                if let Event::UserMessages { messages } = event {
                    events.extend(self.hooks.user_messages(&place, &state, messages).await);
                }
            }
            events
        });
        let events = self.under_lease(lease, told.as_mut()).await?;
        drop(told);
        self.journal.stage(&events).map(drop)
    }

    /// Shows how companions ended whose process may have died before it did.
    async fn show_ended_companions(&self) {
        for (_, record) in self.journal.session().companions() {
            self.context.show_end(&record.start.session).await;
        }
    }

    /// Tells the hooks that a suspended run goes on.
    async fn resumed_hooks(&mut self, lease: &mut LeaseKeeper) -> Result<()> {
        let session = self.journal.session();
        let runs: Vec<_> = session.runs().rev().take(2).collect();
        let before = runs.get(1).and_then(|run| run.suspended.as_ref());
        let Some(from) = before.filter(|_| session.current_run().is_some()) else { return Ok(()) };
        let place = self.place(session.last_step());
        let cx = HookContext::new(&place, "on_agent_resumed", session.step_state());
        let mut told = Box::pin(self.hooks.agent_resumed(&cx, from));
        self.under_lease(lease, told.as_mut()).await?;
        drop(told);
        let events: Vec<_> = changed(&cx, "on_agent_resumed").into_iter().collect();
        self.journal.hold_back(&events)
    }

    /// Records facts and what follows from them, tells the hooks, and shows what it means. Results are on
    /// record before hooks are told of them: what hooks change, and the decisions, follow in an append of
    /// their own.
    ///
    /// # Errors
    /// Those of [`Journal::commit`]; the run must stop then.
    pub async fn record(&mut self, lease: &mut LeaseKeeper, mut facts: Vec<Event>) -> Result<()> {
        let step = self.journal.session().last_step();
        let mut has_recorded = false;
        if self.is_told_of(&facts) {
            has_recorded = self.record_facts(lease, &facts).await?;
            facts.clear();
        }
        let mut decided = self.stage(&facts)?;
        if matches!(self.journal.ending(), Some(RunOutcome::Suspended { .. })) {
            // Deadlines count from now by the store's clock, which may have passed some.
            self.journal.observe_clock().await?;
            decided.extend(self.stage(&[])?);
        }
        if !self.hooks.is_empty() {
            let results = self.results.take(&self.journal.next());
            let mut told = Box::pin(self.result_hooks(&results, &decided));
            let changes = self.under_lease(lease, told.as_mut()).await?;
            drop(told);
            self.journal.stage(&changes)?;
        }
        if let Some(outcome) = self.journal.ending() {
            if !self.hooks.is_empty() {
                let session = self.journal.session();
                let place = self.place(session.last_step());
                let mut told = Box::pin(self.hooks.ends(&place, session.step_state(), &outcome));
                let change = self.under_lease(lease, told.as_mut()).await?;
                drop(told);
                self.journal.stage(change.as_slice())?;
            }
            self.journal.end_run()?;
        }
        if self.journal.is_due() {
            if mutant!("mark-first") {
                let version = self.session().position().version;
                self.stream_writer.mark(step, FeedMark { version, ..FeedMark::default() });
            }
            self.stream_writer.flush().await;
        }
        let is_staged = !self.journal.staged().is_empty();
        let sent = lease.now();
        let committed = self.journal.commit().await?;
        if committed.events.is_empty() {
            if self.in_parts && is_staged && !has_recorded {
                // Another process has recorded it all.
                self.abandon();
            }
            self.show_late(step, &committed);
            return Ok(());
        }
        lease.extended(sent);
        self.take_in(step, &committed);
        Ok(())
    }

    /// Records facts while other calls of the phase run: the run does not end before these have stopped.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub async fn record_beside(
        &mut self,
        lease: &mut LeaseKeeper,
        facts: Vec<Event>,
    ) -> Result<()> {
        if self.is_told_of(&facts) {
            self.record_facts(lease, &facts).await.map(drop)
        } else {
            self.record(lease, facts).await
        }
    }

    /// Takes results into the fold: on record, if hooks are to be told of them, or else for the next
    /// append.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub async fn take_results(&mut self, lease: &mut LeaseKeeper, facts: &[Event]) -> Result<()> {
        if self.is_told_of(facts) {
            self.record_facts(lease, facts).await.map(drop)
        } else {
            self.stage(facts).map(drop)
        }
    }

    /// Whether hooks are told of results among these events.
    fn is_told_of(&self, events: &[Event]) -> bool {
        !self.hooks.is_empty() && events.iter().any(|it| matches!(it, Event::ToolFinished(_)))
    }

    /// Notes and shows what an append recorded.
    fn take_in(&mut self, step: u32, committed: &Committed) {
        let session = self.journal.session();
        if !self.hooks.is_empty() {
            // What others appended may have answered calls.
            self.results.note(session, &self.agent, &committed.events);
        }
        report_waiting(session, &committed.events);
        let step = step.max(session.last_step());
        let boundaries = self.shown(step, committed);
        self.abandon_late(step, committed);
        self.mark(step, committed.version, &committed.events, boundaries);
        self.save_snapshot();
    }

    /// Shows the results that an earlier run handed in, where nothing else was recorded.
    fn show_late(&mut self, step: u32, committed: &Committed) {
        if !committed.late.is_empty() {
            self.abandon_late(step, committed);
            let (version, boundaries) = (committed.version, self.shown(step, committed));
            self.stream_writer.mark(step, FeedMark { version, boundaries, ..FeedMark::default() });
        }
    }

    /// Returns what the events of a commit show, in the order of the log.
    fn shown(&self, step: u32, committed: &Committed) -> Vec<Boundary> {
        let session = self.journal.session();
        let mut shown = boundaries(session, committed.shown());
        let late = committed.late.iter();
        let late = late.flat_map(|(version, finish)| {
            late_end(session, finish).into_iter().map(move |kind| (*version, kind))
        });
        shown.extend::<Vec<(u64, ChunkKind)>>(late.collect());
        shown.sort_by_key(|(version, _)| *version);
        self.stream_writer.boundaries(step, shown).collect()
    }

    /// Takes back what was shown of calls whose results an earlier run handed in.
    fn abandon_late(&mut self, step: u32, committed: &Committed) {
        let is_late = |ticket: &mut AttemptHandle| {
            committed
                .late
                .iter()
                .any(|(_, finish)| self.stream_writer.is_call(*ticket, &finish.call))
        };
        let lost: Vec<_> = self.unsettled.extract_if(.., is_late).collect();
        self.stream_writer.abandon(step, &lost);
    }

    /// Brings the stream into line with an append: with what was tried for it, unless somebody else had
    /// recorded the same before.
    fn mark(&mut self, step: u32, version: u64, events: &[Event], boundaries: Vec<Boundary>) {
        let mut settled = std::mem::take(&mut self.unsettled);
        if self.in_parts {
            let lost = |ticket: &mut AttemptHandle| !self.stream_writer.is_of(*ticket, events);
            let lost: Vec<_> = settled.extract_if(.., lost).collect();
            self.stream_writer.abandon(step, &lost);
        }
        self.stream_writer
            .mark(step, FeedMark { version, settled, boundaries, ..FeedMark::default() });
    }

    /// Takes back what it showed of what is not in the log, or that somebody else has recorded.
    pub(crate) fn abandon(&mut self) {
        self.unsettled.clear();
        self.stream_writer.abandon_all(self.session().last_step());
    }

    /// Brings the stream into line with what is on record of this run, if somebody died before doing so.
    /// What is under way elsewhere is left alone.
    pub(crate) async fn realign(&mut self, lease: &mut LeaseKeeper) -> Result<()> {
        let version = self.version();
        let StreamRepair { settled, boundaries, .. } = self.out_of_line(lease, version).await?;
        let mark = FeedMark { version, settled_before: settled, boundaries, ..FeedMark::default() };
        self.stream_writer.mark(self.journal.session().last_step(), mark);
        Ok(())
    }

    /// What the stream lacks of the log up to a version.
    async fn out_of_line(&self, lease: &mut LeaseKeeper, version: u64) -> Result<StreamRepair> {
        let (context, session) = (&self.context, self.journal.session());
        if context.stream_info(session.root()).await.is_none() {
            return Ok(StreamRepair::default());
        }
        let mut found = Box::pin(plan_stream_repair(
            &*context.store,
            &*context.streams,
            &*context.clock,
            session,
            version,
        ));
        // A stream that cannot be read costs what people see, never the run.
        Ok(self.under_lease(lease, found.as_mut()).await?.unwrap_or_else(|error| {
            tracing::warn!(session = %session.id(), %error, "the stream is out of line");
            StreamRepair::default()
        }))
    }

    /// Records facts and decides nothing yet. Returns `false` if another process has recorded all of them.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub(crate) async fn record_facts(
        &mut self,
        lease: &mut LeaseKeeper,
        facts: &[Event],
    ) -> Result<bool> {
        let step = self.journal.session().last_step();
        self.journal.hold_back(facts)?;
        if !self.hooks.is_empty() {
            // What is recorded comes first: a fact that was too large is another one there.
            self.results.note(self.journal.session(), &self.agent, self.journal.staged());
            self.results.note(self.journal.session(), &self.agent, facts);
        }
        self.stream_writer.flush().await;
        let sent = lease.now();
        let committed = self.journal.append_facts(&[]).await?;
        if committed.events.is_empty() {
            if self.in_parts {
                self.abandon();
            } else {
                let lost = std::mem::take(&mut self.unsettled);
                self.stream_writer.abandon(step, &lost);
            }
            self.show_late(step, &committed);
            return Ok(false);
        }
        lease.extended(sent);
        self.take_in(step, &committed);
        Ok(true)
    }

    /// Records the start of a call in a part of a run, and lets the call run. Returns `false` if the run
    /// was aborted: the call does not run then.
    ///
    /// # Errors
    /// As [`record`](Self::record), and [`ErrorCode::Superseded`] if another process has started the call.
    pub(crate) async fn record_start(
        &mut self,
        lease: &mut LeaseKeeper,
        start: Start,
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

    /// Takes facts into the fold with what follows from them, and notes the results among them.
    ///
    /// # Errors
    /// Those of events that are not legal: the run must stop then.
    pub fn stage(&mut self, facts: &[Event]) -> Result<Vec<Event>> {
        if self.hooks.is_empty() {
            return self.journal.stage(facts);
        }
        self.journal.hold_back(facts)?;
        // With what is known of the calls before the step is closed.
        self.results.note(self.journal.session(), &self.agent, self.journal.staged());
        let decided = self.journal.stage(&[])?;
        self.results.note(self.journal.session(), &self.agent, self.journal.staged());
        Ok(decided)
    }

    /// Ends the run as aborted that is about to begin so, after the hooks of the calls that it answers.
    /// `told` is what an earlier try told them, and what this one has.
    pub(crate) async fn answer_aborted(&mut self, told: &mut HookProgress) -> Result<()> {
        if !self.hooks.is_empty() {
            self.results = std::mem::take(&mut told.results);
            self.stage(&[])?;
            let results = self.results.take(&self.journal.next());
            told.changes.extend(self.result_hooks(&results, &[]).await);
            told.results = std::mem::take(&mut self.results);
            self.journal.stage(&told.changes)?;
        }
        self.journal.end_run()
    }

    /// Tells the hooks of results, and of corrections. Returns what they changed.
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

    /// Where in the stream the run began.
    pub(crate) fn stream_from(&self) -> u64 {
        self.journal.session().last_run().map_or(0, |run| run.stream_from)
    }

    pub(crate) fn place(&self, step: u32) -> HookPlace {
        HookPlace {
            agent: Arc::clone(self.agent.name()),
            session: self.live.session.clone(),
            run: self.live.run.clone(),
            turn: self.journal.session().turn(),
            step,
        }
    }
}
