//! One run, from its start to its end: asks what is next, has it carried out, records it.

use std::sync::Arc;

use helix_agents_core::agent::AnyAgent;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::event::{Event, RunOutcome, Trigger};
use helix_agents_core::executor::AgentResult;
use helix_agents_core::hooks::{HookChain, HookContext, HookPlace, changed};
use helix_agents_core::message::Message;
use helix_agents_core::session::{
    Alignment, Journal, alignment, boundaries, look_for_news, report_waiting,
};
use helix_agents_core::step::{Action, Results};
use tokio_util::sync::CancellationToken;

use crate::children;
use crate::companions;
use crate::family;
use crate::feed::{Feed, FeedMark, Ticket};
use crate::lease::LeaseKeeper;
use crate::live::LiveRun;
use crate::parts::Parts;
use crate::runtime::LocalRuntime;
use crate::step_site;
use crate::stop::Stop;

/// What one run is carried out with.
pub(crate) struct Driver {
    pub(crate) runtime: LocalRuntime,
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
    /// Cancelled when runs should stop where they stand.
    pub(crate) drain: CancellationToken,
}

impl Driver {
    /// Carries the run out.
    pub(crate) async fn drive(
        mut self: Box<Self>,
        mut lease: LeaseKeeper,
        begun: &[Event],
    ) -> Result<AgentResult> {
        let driven = self.steps(&mut lease, begun).await;
        self.feed.flush().await;
        // Nothing of this run is under way any more, so nobody has to wait for the lease.
        if driven.as_ref().is_err_and(|error| error.code() != ErrorCode::Superseded) {
            lease.release().await;
        }
        driven?;
        let session = self.journal.session();
        if session.works_beside() {
            Box::pin(family::notify(&self.parts, session)).await;
        }
        if let Some((children, reason)) = session.aborted_children() {
            Box::pin(family::stop_below(&self, &children, reason)).await;
        }
        let last = self.journal.session().last_run();
        last.map(AgentResult::of)
            .ok_or_else(|| Stop::Superseded.into_error(&self.live.session, &self.live.run))
    }

    async fn steps(&mut self, lease: &mut LeaseKeeper, begun: &[Event]) -> Result<()> {
        self.open(begun).await?;
        loop {
            let action = self.journal.next();
            let ending = matches!(action, Action::End(_) | Action::Idle);
            if self.drain.is_cancelled() && !ending {
                return Err(Stop::ShuttingDown.into_error(&self.live.session, &self.live.run));
            }
            if lease.is_lost() && !ending {
                return Err(Stop::LeaseLost.into_error(&self.live.session, &self.live.run));
            }
            match action {
                Action::Idle => return Ok(()),
                Action::CallModel { step, force_completion } => {
                    step_site::call_model(self, lease, step, force_completion).await?;
                }
                Action::StartTools(tasks) => step_site::start_tools(self, lease, &tasks).await?,
                Action::RunCompanions(tasks) => {
                    Box::pin(companions::run(self, lease, &tasks)).await?
                }
                Action::StartChildren(tasks) => {
                    Box::pin(children::start(self, lease, &tasks)).await?
                }
                Action::RunTools { calls, children } => {
                    step_site::run_calls(self, lease, &calls, &children).await?;
                }
                Action::RunFinishTool(task) => {
                    step_site::run_calls(self, lease, &[task], &[]).await?;
                }
                decision if decision.is_decision() => self.record(lease, Vec::new()).await?,
                other => {
                    let message = format!("this runtime does not know the action {other:?}");
                    return Err(Error::new(ErrorCode::Internal, message));
                }
            }
        }
    }

    /// Brings the stream into line with the log, and says that the run began.
    async fn open(&mut self, begun: &[Event]) -> Result<()> {
        let session = self.journal.session();
        let trigger = session.last_run().map(|run| run.trigger);
        let begins_turn = matches!(trigger, Some(Trigger::Execute | Trigger::Continue));
        let mut line = if session.runs().nth(1).is_some() {
            let before = self.journal.acknowledged() - begun.len() as u64;
            let parts = &self.parts;
            let found =
                alignment(&*parts.store, &*parts.streams, &*parts.clock, session, before).await;
            // A stream that cannot be read costs what people see, never the run.
            found.unwrap_or_else(|error| {
                tracing::warn!(session = %session.id(), %error, "the stream is out of line");
                Alignment::default()
            })
        } else {
            Alignment::default()
        };
        let version = self.journal.acknowledged();
        let shown = boundaries(session, begun, version);
        line.boundaries.extend(self.feed.boundaries(0, shown));
        let Alignment { settled, discarded, boundaries } = line;
        let settled_before = settled;
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
        self.results =
            Results::taken_over(self.journal.session(), &self.agent, &self.journal.next());
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
    pub(crate) async fn record(
        &mut self,
        lease: &mut LeaseKeeper,
        facts: Vec<Event>,
    ) -> Result<()> {
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
        let shown = boundaries(session, &committed.events, committed.version);
        let boundaries = self.feed.boundaries(step, shown).collect();
        let settled = std::mem::take(&mut self.unsettled);
        let version = committed.version;
        self.feed.mark(step, FeedMark { version, settled, boundaries, ..FeedMark::default() });
        Ok(())
    }

    /// Takes facts into the fold with what follows from them, and notes the results among them.
    pub(crate) fn stage(&mut self, facts: &[Event]) -> Result<Vec<Event>> {
        if self.hooks.is_empty() {
            return self.journal.stage(facts);
        }
        // With what is known of the calls before the step is closed.
        self.results.note(self.journal.session(), &self.agent, facts);
        let decided = self.journal.stage(facts)?;
        self.results.note(self.journal.session(), &self.agent, self.journal.staged());
        Ok(decided)
    }

    /// Ends the run as aborted that is about to begin so, after the hooks of the calls that it answers.
    pub(crate) async fn answer_aborted(&mut self) -> Result<()> {
        if !self.hooks.is_empty() {
            self.stage(&[])?;
            let changes = self.result_hooks(&[]).await;
            self.journal.stage(&changes)?;
        }
        self.journal.end_run()
    }

    /// The hooks of results that are to be told of now, and of corrections.
    async fn result_hooks(&mut self, decided: &[Event]) -> Vec<Event> {
        let results = self.results.take(&self.journal.next());
        let session = self.journal.session();
        let place = self.place(session.last_step());
        let mut events = Vec::new();
        for result in &results {
            events.extend(self.hooks.result(&place, session.step_state(), result).await);
        }
        for event in decided {
            let Event::CorrectionSent { message, .. } = event else { continue };
            let cx = HookContext::new(&place, "on_message.correction", session.step_state());
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
