//! One run, from its start to its end: asks what is next, has it carried out, records it.

use std::sync::Arc;

use helix_agents_core::agent::AnyAgent;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::event::{Event, RunOutcome, ToolFinish, Trigger};
use helix_agents_core::executor::AgentResult;
use helix_agents_core::hooks::{HookContext, HookPlace, HookPoint, SubAgentView, ToolCallView};
use helix_agents_core::json::Json;
use helix_agents_core::message::{Message, ToolCall};
use helix_agents_core::session::{
    Alignment, Journal, RunStatus, alignment, boundaries, report_waiting, result_message,
};
use helix_agents_core::step::Action;
use tokio_util::sync::CancellationToken;

use crate::children::{self, ChildEnd};
use crate::companions;
use crate::family;
use crate::feed::{Feed, FeedMark, Ticket};
use crate::hooks::{Hooks, changed};
use crate::lease::LeaseKeeper;
use crate::live::LiveRun;
use crate::parts::Parts;
use crate::runtime::LocalRuntime;
use crate::step_site;
use crate::step_site::Settled;
use crate::stop::Stop;

/// What one run is carried out with.
pub(crate) struct Driver {
    pub(crate) runtime: LocalRuntime,
    pub(crate) parts: Arc<Parts>,
    pub(crate) agent: AnyAgent,
    pub(crate) hooks: Hooks,
    pub(crate) journal: Journal,
    pub(crate) feed: Feed,
    pub(crate) live: Arc<LiveRun>,
    /// Tries whose outcome is staged and not appended yet.
    pub(crate) unsettled: Vec<Ticket>,
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
        if self.journal.session().stays() {
            Box::pin(companions::notify(&self.parts, self.journal.session())).await;
        }
        let session = self.journal.session();
        if session.last_run().is_some_and(|run| run.status == RunStatus::Aborted) {
            let children = session.last_children();
            let reason = session.last_run().and_then(|run| run.reason.clone());
            let below = family::abort_below(&self.runtime, &self.agent, &children, reason);
            Box::pin(below).await;
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
                decision if decision.is_decision() => self.record(lease, Vec::new(), &[]).await?,
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
        line.boundaries.extend(shown.into_iter().map(|kind| self.feed.chunk(0, kind)));
        let Alignment { settled, discarded, boundaries } = line;
        let settled_before = settled;
        let mark =
            FeedMark { version, settled_before, discarded, boundaries, ..FeedMark::default() };
        self.feed.mark(0, mark);
        if self.journal.session().companions().next().is_some() {
            let news = companions::look_for_news(&self.parts, self.journal.session());
            Box::pin(news).await?;
            self.journal.catch_up().await?;
        }
        if self.hooks.is_empty() {
            return Ok(());
        }
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
        results: &[Settled],
    ) -> Result<()> {
        let step = self.journal.session().last_step();
        let mut decided = self.journal.stage(&facts)?;
        if matches!(self.journal.ending(), Some(RunOutcome::Suspended { .. })) {
            // Deadlines count from now by the store's clock, which may have passed some.
            self.journal.observe_clock().await?;
            decided.extend(self.journal.stage(&[])?);
        }
        if !self.hooks.is_empty() {
            let changes = self.result_hooks(results, &decided).await;
            self.journal.stage(&changes)?;
        }
        if let Some(outcome) = self.journal.ending() {
            let change = self.end_hooks(&outcome).await;
            self.journal.stage(change.as_slice())?;
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
        report_waiting(session, &committed.events);
        let step = step.max(session.last_step());
        let boundaries = boundaries(session, &committed.events, committed.version)
            .into_iter()
            .map(|kind| self.feed.chunk(step, kind))
            .collect();
        let settled = std::mem::take(&mut self.unsettled);
        let version = committed.version;
        self.feed.mark(step, FeedMark { version, settled, boundaries, ..FeedMark::default() });
        Ok(())
    }

    /// Per result in call order, when all calls of the phase have settled: the change of the
    /// state, the message, the end of the tool.
    async fn result_hooks(&self, results: &[Settled], decided: &[Event]) -> Vec<Event> {
        let session = self.journal.session();
        let place = self.place(session.last_step());
        let mut events = Vec::new();
        for settled in results {
            let settled = match settled {
                Settled::Call(settled) => settled,
                Settled::Child(end) => {
                    events.extend(Box::pin(self.child_hooks(end)).await);
                    continue;
                }
                Settled::Broken(_) => continue,
            };
            let state = session.step_state();
            let cx = HookContext::new(
                &place,
                HookPoint::Of("after_tool", settled.call.id.clone()),
                state,
            );
            let finish = &settled.finish;
            if !finish.state_patch.is_empty() {
                self.hooks.state_change(&cx, &finish.state_patch).await;
            }
            let message = Message::Tool(result_message(&settled.call, &finish.outcome));
            self.hooks.message(&cx, &message).await;
            let (call, tool) = (&settled.call.id, &*settled.call.name);
            let view = ToolCallView { call, tool, input: &settled.input };
            self.hooks.after_tool(&cx, view, &finish.outcome).await;
            events.extend(changed(&cx, "after_tool"));
        }
        for event in decided {
            let (message, point) = match event {
                Event::ToolFinished(finish) => match session.tool_call(&finish.call) {
                    Some(call) => {
                        let message = Message::Tool(result_message(call, &finish.outcome));
                        if session.settled_call(&finish.call).is_some() {
                            let hooks = self.drained_hooks(call, finish, &message);
                            events.extend(Box::pin(hooks).await);
                            continue;
                        }
                        (message, HookPoint::Of("on_message", finish.call.clone()))
                    }
                    None => continue,
                },
                Event::CorrectionSent { message, .. } => {
                    (Message::User(message.clone()), "on_message.correction".into())
                }
                _ => continue,
            };
            let cx = HookContext::new(&place, point, session.step_state());
            self.hooks.message(&cx, &message).await;
            events.extend(changed(&cx, "on_message"));
        }
        events
    }

    async fn child_hooks(&self, end: &ChildEnd) -> Option<Event> {
        let finish = end.finish.as_deref()?;
        let session = self.journal.session();
        let place = self.place(session.last_step());
        let point = HookPoint::Of("after_sub_agent", finish.call.clone());
        let cx = HookContext::new(&place, point, session.step_state());
        let message = Message::Tool(result_message(&end.call, &finish.outcome));
        self.hooks.message(&cx, &message).await;
        let input = end.call.arguments.as_json().cloned().unwrap_or_else(Json::empty_object);
        let view = SubAgentView {
            call: &finish.call,
            agent: &end.agent,
            session: &end.session,
            input: &input,
        };
        self.hooks.after_sub_agent(&cx, view, &finish.outcome).await;
        changed(&cx, "after_sub_agent")
    }

    /// The hooks of a call that got its result from people, or from nobody in time.
    pub(crate) async fn drained_hooks(
        &self,
        call: &ToolCall,
        finish: &ToolFinish,
        message: &Message,
    ) -> Option<Event> {
        let session = self.journal.session();
        let place = self.place(session.last_step());
        let point = HookPoint::Of("after_tool", finish.call.clone());
        let cx = HookContext::new(&place, point, session.step_state());
        self.hooks.message(&cx, message).await;
        let input = call.arguments.as_json().cloned().unwrap_or_else(Json::empty_object);
        let view = ToolCallView { call: &finish.call, tool: &call.name, input: &input };
        self.hooks.after_tool(&cx, view, &finish.outcome).await;
        changed(&cx, "after_tool")
    }

    async fn end_hooks(&self, outcome: &RunOutcome) -> Option<Event> {
        if self.hooks.is_empty() {
            return None;
        }
        let session = self.journal.session();
        let place = self.place(session.last_step());
        let cx = HookContext::new(&place, "end", session.step_state());
        match outcome {
            RunOutcome::Completed { output } => {
                self.hooks.agent_complete(&cx, output.as_ref()).await;
                changed(&cx, "on_agent_complete")
            }
            RunOutcome::Failed { error } => {
                self.hooks.agent_fail(&cx, error).await;
                changed(&cx, "on_agent_fail")
            }
            RunOutcome::Suspended { on } => {
                self.hooks.agent_suspended(&cx, on).await;
                changed(&cx, "on_agent_suspended")
            }
            _ => None,
        }
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
