//! One run: what is next, what came of it, and what that means for the stream and the hooks.

use std::sync::Arc;

use helix_agents_core::agent::AnyAgent;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::event::{Event, RunOutcome, Trigger};
use helix_agents_core::executor::AgentResult;
use helix_agents_core::hooks::{HookChain, HookContext, HookPlace, changed, follow};
use helix_agents_core::id::RunId;
use helix_agents_core::message::Message;
use helix_agents_core::session::{
    Alignment, Journal, Session, alignment, boundaries, look_for_news, report_waiting,
};
use helix_agents_core::step::{Action, Results};
use helix_agents_core::stream::Boundary;

use crate::family;
use crate::feed::{Feed, FeedMark, Ticket};
use crate::lease::LeaseKeeper;
use crate::live::LiveRun;
use crate::parts::Parts;
use crate::run_ref::RunRef;
use crate::runtime::Runtime;
use crate::stop::Stop;

/// What one run is carried out with.
#[derive(Debug)]
pub struct Driver {
    pub(crate) runtime: Runtime,
    pub(crate) parts: Arc<Parts>,
    pub(crate) agent: AnyAgent,
    pub(crate) hooks: HookChain,
    pub(crate) journal: Journal,
    pub(crate) feed: Feed,
    pub(crate) live: Arc<LiveRun>,
    /// Tries whose outcome is staged and not appended yet.
    pub(crate) unsettled: Vec<Ticket>,
    /// Results that hooks are to be told of.
    pub(crate) results: Results,
    /// Whether somebody else may be at the same part of the run.
    pub(crate) in_parts: bool,
}

/// What hooks were told in a run that is tried until its first append is taken: each thing once.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// The run that was the last one then.
    after: Option<RunId>,
    results: Results,
    /// What they made of it.
    changes: Vec<Event>,
}

impl Told {
    /// Nothing was told yet if there was a run in between: what it left is to be looked at anew.
    pub(crate) fn is_of(&mut self, last: Option<&RunId>) {
        if self.after.as_ref() != last {
            *self = Self { after: last.cloned(), ..Self::default() };
        }
    }
}

impl Driver {
    /// Ends what was driven: tells the stream, and those above and below.
    ///
    /// # Errors
    /// The one that it was driven to, or [`ErrorCode::Superseded`] if the run is gone.
    pub async fn end(
        self: Box<Self>,
        lease: &LeaseKeeper,
        driven: Result<()>,
    ) -> Result<AgentResult> {
        self.feed.flush().await;
        // Nothing of this run is under way any more, so nobody has to wait for the lease.
        if driven.as_ref().is_err_and(|error| error.code() != ErrorCode::Superseded) {
            lease.release().await;
        }
        driven?;
        let session = self.journal.session();
        Box::pin(family::tell(&self.runtime, &self.agent, session, &self.hooks)).await;
        let last = self.journal.session().last_run();
        last.map(AgentResult::of).ok_or_else(|| self.error(Stop::Superseded))
    }

    /// What to do next.
    ///
    /// # Errors
    /// If nothing may be done any more: the runtime is shutting down, or the lease was lost.
    pub fn next(&self, lease: &LeaseKeeper) -> Result<Action> {
        let action = self.journal.next();
        let ending = matches!(action, Action::End(_) | Action::Idle);
        if self.parts.tasks.drain.is_cancelled() && !ending {
            return Err(self.error(Stop::ShuttingDown));
        }
        if lease.is_lost() && !ending {
            return Err(self.error(Stop::LeaseLost));
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
    pub fn parts(&self) -> &Arc<Parts> {
        &self.parts
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
    pub fn settles(&mut self, tickets: impl IntoIterator<Item = Ticket>) {
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
    pub fn error(&self, stop: Stop) -> Error {
        stop.into_error(&self.live.session, &self.live.run)
    }

    /// Says that a run began whose events are the last of the log, and brings the stream into line.
    ///
    /// # Errors
    /// Those of the store; the run must stop then.
    pub async fn open(&mut self, begun: &[Event]) -> Result<()> {
        let version = self.version();
        self.open_at(begun, version, false).await
    }

    /// Brings the stream into line with the log, and says that the run began: with these events, after
    /// which the log had that version.
    ///
    /// # Errors
    /// Those of the store; the run must stop then.
    pub(crate) async fn open_at(
        &mut self,
        begun: &[Event],
        version: u64,
        in_parts: bool,
    ) -> Result<()> {
        let session = self.journal.session();
        let trigger = session.last_run().map(|run| run.trigger);
        let begins_turn = matches!(trigger, Some(Trigger::Execute | Trigger::Continue));
        let mut line = if session.runs().nth(1).is_some() {
            self.out_of_line(version - begun.len() as u64).await
        } else {
            Alignment::default()
        };
        let shown = boundaries(session, (version + 1 - begun.len() as u64..).zip(begun));
        line.boundaries.extend(self.feed.boundaries(0, shown));
        let Alignment { settled, discarded, boundaries } = line;
        let (settled_before, version) = (settled, self.journal.acknowledged());
        let mark =
            FeedMark { version, settled_before, discarded, boundaries, ..FeedMark::default() };
        self.feed.mark(0, mark);
        if self.journal.session().companions().next().is_some() {
            let news = look_for_news(self.parts.outside(), self.journal.session());
            Box::pin(news).await?;
            self.journal.catch_up().await?;
            for (_, record) in self.journal.session().companions() {
                // Its process may have died before it showed its end.
                if let Err(error) = self.parts.align_ended(&record.start.session).await {
                    tracing::warn!(session = %record.start.session, %error, "it is out of line");
                }
            }
        }
        if self.hooks.is_empty() {
            return Ok(());
        }
        self.results = Results::taken_over(
            self.journal.session(),
            &self.agent,
            &self.journal.next(),
            in_parts,
        );
        if !begins_turn {
            // Who went back behind what was waited for resumes nothing of it.
            let went_back = begun.iter().any(|event| matches!(event, Event::Rewound { .. }));
            let resumed = Box::pin(self.resumed_hooks());
            return if went_back { Ok(()) } else { resumed.await };
        }
        let place = self.place(0);
        let state = Arc::clone(self.journal.session().state());
        let cx = HookContext::new(&place, "on_agent_start", Arc::clone(&state));
        self.hooks.agent_start(&cx).await;
        let mut events: Vec<_> = changed(&cx, "on_agent_start").into_iter().collect();
        let mut state = state;
        follow(&mut state, events.first());
        for event in begun {
            if let Event::UserMessages { messages } = event {
                events.extend(self.hooks.user_messages(&place, &state, messages).await);
            }
        }
        self.journal.stage(&events).map(drop)
    }

    /// Tells the hooks that a suspended run goes on.
    async fn resumed_hooks(&mut self) -> Result<()> {
        let session = self.journal.session();
        let runs: Vec<_> = session.runs().rev().take(2).collect();
        let before = runs.get(1).and_then(|run| run.suspended.as_ref());
        let Some(from) = before.filter(|_| session.current_run().is_some()) else { return Ok(()) };
        let place = self.place(session.last_step());
        let cx = HookContext::new(&place, "on_agent_resumed", session.step_state());
        self.hooks.agent_resumed(&cx, from).await;
        let events: Vec<_> = changed(&cx, "on_agent_resumed").into_iter().collect();
        self.journal.hold_back(&events)
    }

    /// Records facts, runs the hooks that ride in the same append, and shows what it means.
    ///
    /// # Errors
    /// Those of [`Journal::commit`]; the run must stop then.
    pub async fn record(&mut self, lease: &mut LeaseKeeper, facts: Vec<Event>) -> Result<()> {
        let step = self.journal.session().last_step();
        let mut decided = self.stage(&facts)?;
        if matches!(self.journal.ending(), Some(RunOutcome::Suspended { .. })) {
            // Deadlines count from now by the store's clock, which may have passed some.
            self.journal.observe_clock().await?;
            decided.extend(self.stage(&[])?);
        }
        if !self.hooks.is_empty() {
            let changes = self.result_hooks(&decided).await;
            self.journal.stage(&changes)?;
        }
        if let Some(outcome) = self.journal.ending() {
            if !self.hooks.is_empty() {
                let session = self.journal.session();
                let place = self.place(session.last_step());
                let change = self.hooks.ends(&place, session.step_state(), &outcome).await;
                self.journal.stage(change.as_slice())?;
            }
            self.journal.end_run()?;
        }
        if self.journal.is_due() {
            self.feed.flush().await;
        }
        let sent = lease.now();
        let committed = self.journal.commit().await?;
        if committed.events.is_empty() {
            if self.in_parts {
                // Somebody else has recorded it all.
                self.abandon();
            }
            return Ok(());
        }
        lease.extended(sent);
        let session = self.journal.session();
        if !self.hooks.is_empty() {
            // What others appended may have answered calls.
            self.results.note(session, &self.agent, &committed.events);
        }
        report_waiting(session, &committed.events);
        let step = step.max(session.last_step());
        let shown = boundaries(session, committed.numbered());
        let boundaries = self.feed.boundaries(step, shown).collect();
        self.mark(step, committed.version, &committed.events, boundaries);
        Ok(())
    }

    /// Brings the stream into line with an append: with what was tried for it, unless somebody else had
    /// recorded the same before.
    fn mark(&mut self, step: u32, version: u64, events: &[Event], boundaries: Vec<Boundary>) {
        let mut settled = std::mem::take(&mut self.unsettled);
        if self.in_parts {
            let lost = |ticket: &mut Ticket| !self.feed.is_of(*ticket, events);
            let lost: Vec<_> = settled.extract_if(.., lost).collect();
            self.feed.abandon(step, &lost);
        }
        self.feed.mark(step, FeedMark { version, settled, boundaries, ..FeedMark::default() });
    }

    /// Takes back what it showed of what is not in the log, or that somebody else has recorded.
    pub(crate) fn abandon(&mut self) {
        self.unsettled.clear();
        self.feed.abandon_all(self.session().last_step());
    }

    /// Brings the stream into line with what is on record of this run, if somebody died before doing so.
    /// What is under way elsewhere is left alone.
    pub(crate) async fn realign(&mut self) {
        let version = self.version();
        let session = self.journal.session();
        let Alignment { settled, boundaries, .. } = self.out_of_line(version).await;
        let mark = FeedMark { version, settled_before: settled, boundaries, ..FeedMark::default() };
        self.feed.mark(session.last_step(), mark);
    }

    /// What the stream lacks of the log up to a version.
    async fn out_of_line(&self, version: u64) -> Alignment {
        let (parts, session) = (&self.parts, self.journal.session());
        let found = alignment(&*parts.store, &*parts.streams, &*parts.clock, session, version);
        // A stream that cannot be read costs what people see, never the run.
        found.await.unwrap_or_else(|error| {
            tracing::warn!(session = %session.id(), %error, "the stream is out of line");
            Alignment::default()
        })
    }

    /// Records facts and decides nothing: others of the same phase are under way elsewhere.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub(crate) async fn record_only(
        &mut self,
        lease: &mut LeaseKeeper,
        facts: &[Event],
    ) -> Result<()> {
        self.feed.flush().await;
        let sent = lease.now();
        let committed = self.journal.append_facts(facts).await?;
        lease.extended(sent);
        let session = self.journal.session();
        let shown = boundaries(session, committed.numbered());
        let step = session.last_step();
        let boundaries = self.feed.boundaries(step, shown).collect();
        if committed.events.is_empty() {
            self.abandon();
        } else {
            self.mark(step, committed.version, &committed.events, boundaries);
        }
        self.feed.flush().await;
        Ok(())
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
    pub(crate) async fn answer_aborted(&mut self, told: &mut Told) -> Result<()> {
        if !self.hooks.is_empty() {
            self.results = std::mem::take(&mut told.results);
            self.stage(&[])?;
            told.changes.extend(self.result_hooks(&[]).await);
            told.results = std::mem::take(&mut self.results);
            self.journal.stage(&told.changes)?;
        }
        self.journal.end_run()
    }

    /// The hooks of results that are to be told of now, and of corrections.
    async fn result_hooks(&mut self, decided: &[Event]) -> Vec<Event> {
        let results = self.results.take(&self.journal.next());
        let session = self.journal.session();
        let place = self.place(session.last_step());
        let mut events = Vec::new();
        let mut state = session.step_state();
        for result in &results {
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
