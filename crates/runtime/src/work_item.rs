//! Runs in parts, for engines whose workers carry them out: each part finds the run in the log, does one
//! thing, and says what is next. An engine keeps parts and answers in a journal of its own, so they are
//! ids only; what they are about is in the log.
//!
//! A part that is done once more, because its answer was lost, finds its effect on record and does not
//! repeat it; hooks of results may be told once more then. A call that runs alone is a part like any other.
//! Those that run side by side are carried out each by itself, record their result and decide nothing;
//! [`WorkItem::Settle`] takes the decisions when all are done, and has the hooks told of what they left.
//!
//! An engine may take somebody for dead who is not, and have another one do the same part. Only one of them
//! gets it into the log; the other finds that out, looks at the log anew and goes on from there.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::Either;
use futures_util::stream::FuturesUnordered;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::event::{Event, decode};
use helix_agents_core::hooks::HookChain;
use helix_agents_core::id::{CallId, SessionId};
use helix_agents_core::session::{Lineage, lineage};
use helix_agents_core::step::{Action, CallTask, ChildTask, Results};
use helix_agents_core::store::Head;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::cancel::CancelReason;
use crate::children::ChildRun;
use crate::context::LocalRunContext;
use crate::driver::Driver;
use crate::family;
use crate::lease::{self, LeaseKeeper};
use crate::run_ref::RunRef;
use crate::runtime::Runtime;
use crate::start;

/// How often somebody who was overtaken looks at the log anew.
const MAX_TRIES: u32 = 16;

/// One thing to do for a run, alone: no other part of the run is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkItem {
    /// Tell that the run began.
    Open,
    /// Make the model call of this step.
    Model(u32),
    /// Begin the sessions of children.
    Children,
    /// Carry out calls of companion tools.
    Companions,
    /// Carry out this call, the only one that is next.
    Call(CallId),
    /// Go on after these calls, which ran side by side.
    Settle(Vec<CallId>),
}

/// What is next of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// This part.
    WorkItem(WorkItem),
    /// These calls and children, side by side, and then the part that goes on after them.
    Calls {
        /// The calls to carry out.
        calls: Vec<CallId>,
        /// How many of them at once.
        at_once: usize,
        /// The children to wait for.
        children: Vec<ChildRef>,
        /// What is next then.
        then: WorkItem,
    },
    /// Nothing: the run has ended, or another one owns the session.
    Over,
}

/// A child that is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildRef {
    /// The call.
    pub call: CallId,
    /// The child's session.
    pub session: SessionId,
}

/// A run, found in the log by somebody who carries out a part of it.
struct Attached {
    driver: Box<Driver>,
    lease: LeaseKeeper,
}

impl Runtime {
    /// Carries out a part of a run, and says what is next. `is_first` says that nobody has begun it
    /// before, as far as the engine knows. A part that is tried again is counted in the log first, so that
    /// one that no process outlives ends with [`ErrorCode::CrashLoop`].
    ///
    /// # Errors
    /// Those that stop a run; the part may be tried again.
    pub async fn perform(&self, of: &RunRef, part: &WorkItem, is_first: bool) -> Result<Next> {
        for tried in 0..MAX_TRIES {
            let Some(mut run) = self.attach(of, true).await? else { return self.over(of).await };
            let tried = match (is_first, tried) {
                (true, 0) => Tried::Never,
                (false, 0) => Tried::Elsewhere,
                _ => Tried::Here,
            };
            let done = run.perform(part, tried).await;
            match done {
                Ok(next) => return run.close(next).await,
                Err(error) if error.code() == ErrorCode::Superseded => run.overtaken().await,
                Err(error) => {
                    run.driver.stream_writer.close().await;
                    return Err(error);
                }
            }
        }
        Err(start::busy(&of.session))
    }

    /// Runs one of several calls that run side by side, and records its result. A call that must not run
    /// twice is in doubt if its start is on record, whichever process recorded it.
    ///
    /// # Errors
    /// As [`perform`](Self::perform).
    pub async fn perform_call(&self, of: &RunRef, call: &CallId) -> Result<()> {
        self.one_of_several(of, call, true).await
    }

    /// [`perform_call`](Self::perform_call), of a call that somebody has tried before without an answer: that
    /// is counted in the log first. After too many tries the call is left to be answered with
    /// [`ErrorCode::CrashLoop`].
    ///
    /// # Errors
    /// As [`perform`](Self::perform).
    pub async fn perform_call_again(&self, of: &RunRef, call: &CallId) -> Result<()> {
        self.one_of_several(of, call, false).await
    }

    async fn one_of_several(&self, of: &RunRef, call: &CallId, is_first: bool) -> Result<()> {
        let Some(mut run) = self.attach(of, false).await? else { return Ok(()) };
        let done = run.one_of_several(call, is_first).await;
        run.unless_superseded(done).await
    }

    /// Waits until a child has ended or has to wait itself, or so much time has passed: the next
    /// [`WorkItem::Settle`] finds out which, and a child that goes on is among what is next again. While calls
    /// of other sub-agents wait for room, the end of any child that runs beside it is enough.
    ///
    /// # Errors
    /// As [`perform`](Self::perform).
    pub async fn follow_child(&self, of: &RunRef, call: &CallId, limit: Duration) -> Result<()> {
        let Some(mut run) = self.attach(of, false).await? else { return Ok(()) };
        let done = tokio::time::timeout(limit, run.follow(call)).await;
        run.unless_superseded(done.unwrap_or(Ok(()))).await
    }

    /// Gives up a run that nobody carries out any more, so that others may go on with it at once.
    pub async fn give_up(&self, of: &RunRef) {
        let context = self.context();
        context.local_runs().remove(&of.run);
        context.folds.forget(&of.session);
        lease::release(&*context.store, &of.session, &of.run, context.lease).await;
    }

    /// The run, if it still is its session's, with a lease that is good for a while.
    async fn attach(&self, of: &RunRef, alone: bool) -> Result<Option<Attached>> {
        let context = self.context();
        let Some((head, lease)) = LeaseKeeper::attach(context, of).await? else { return Ok(None) };
        let LocalRunContext { agent, hooks } = self.carried_out_with(of, &head).await?;
        let mut fold = context.folds.get(&*context.store, &head, alone).await?;
        if fold.current_run().is_none_or(|run| run.id != of.run) {
            return Ok(None);
        }
        fold.observe(head.read_at);
        let journal = start::journal(context, &agent, fold, &of.run);
        let mut driver = start::driver(self, agent, journal, hooks);
        driver.in_parts = true;
        Ok(Some(Attached { driver, lease }))
    }

    /// The agent of a run, and its hooks.
    async fn carried_out_with(&self, of: &RunRef, head: &Head) -> Result<LocalRunContext> {
        let context = self.context();
        let known = context.local_runs().get(&of.run).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let Lineage { agent, above } = lineage(&*context.store, &context.registry, head).await?;
        let hooks = HookChain::new(&HookChain::of_lineage(&above), &agent, &[]);
        Ok(LocalRunContext { agent, hooks })
    }

    /// Nothing is next of a run. Whoever ended it may have died before it told anybody.
    ///
    /// # Errors
    /// If it is not so: the run has begun since it was looked for.
    async fn over(&self, of: &RunRef) -> Result<Next> {
        let context = self.context();
        let fold = context.logs().overview(&of.session).await?;
        if fold.current_run().is_some_and(|run| run.id == of.run) {
            return Err(start::busy(&of.session));
        }
        let known = context.local_runs().remove(&of.run);
        if fold.current_run().is_none() && fold.last_run().is_some_and(|run| run.id == of.run) {
            context.show_end(&of.session).await;
            let with = match known {
                Some(known) => Ok(known),
                None => self.carried_out_with(of, &self.head(&of.session).await?).await,
            };
            match with {
                Ok(LocalRunContext { agent, hooks }) => {
                    family::tell(self, &agent, &fold, &hooks).await
                }
                Err(error) => tracing::warn!(session = %of.session, %error, "nobody was told"),
            }
        }
        Ok(Next::Over)
    }
}

/// Who has tried a part before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tried {
    Never,
    /// This very execution, until another process was found to be further.
    Here,
    /// Another execution, which left no answer.
    Elsewhere,
}

impl Attached {
    async fn perform(&mut self, part: &WorkItem, tried: Tried) -> Result<Next> {
        let is_first = tried == Tried::Never;
        if !is_first {
            // Who did it may have died before the stream had it.
            self.driver.realign(&mut self.lease).await?;
        }
        // Code of the user's runs in all parts but those that only wait for children.
        let waits = matches!(part, WorkItem::Settle(calls) if calls.is_empty());
        if tried == Tried::Elsewhere && !waits {
            let call = if let WorkItem::Call(call) = part { Some(call) } else { None };
            let call = call.filter(|call| self.is_open(call));
            self.count_repeat(call.cloned()).await?;
        }
        if !is_first {
            // The execution that recorded them may have been cut off before the hooks had run.
            note_all(&mut self.driver);
        }
        self.drive(part, is_first).await?;
        self.advance().await
    }

    /// Returns `true` if a call has no result yet.
    fn is_open(&self, call: &CallId) -> bool {
        let step = self.driver.session().open_step();
        step.and_then(|step| step.call(call)).is_some_and(|state| state.finish.is_none())
    }

    /// Records that the part is tried again.
    async fn count_repeat(&mut self, call: Option<CallId>) -> Result<()> {
        let Self { driver, lease } = self;
        tracing::warn!(session = %driver.session().id(), ?call, "a part of the run is tried again");
        driver.record_facts(lease, &[Event::PartRepeated { call }]).await?;
        driver.leave_out_hooks_that_stop_it();
        Ok(())
    }

    async fn drive(&mut self, part: &WorkItem, is_first: bool) -> Result<()> {
        let Self { driver, lease } = self;
        match (part, driver.next()?) {
            (WorkItem::Open, _) => self.open().await,
            (WorkItem::Model(asked), Action::CallModel { step, force_completion })
                if step == *asked =>
            {
                driver.call_model(lease, step, force_completion).await
            }
            (WorkItem::Children, Action::StartChildren(tasks)) => {
                // Of what was refused beside them nobody was told yet.
                note_all(driver);
                Box::pin(driver.start_children(lease, &tasks)).await
            }
            (WorkItem::Companions, Action::RunCompanions(tasks)) => {
                Box::pin(driver.run_companions(lease, &tasks)).await
            }
            (WorkItem::Settle(calls), next) => self.settle(calls, &next, is_first).await,
            (WorkItem::Call(call), _) => match self.call(call).await? {
                Some(facts) => self.driver.record(&mut self.lease, facts).await,
                None => Ok(()),
            },
            // It is not next: something came in between, or it is on record and its answer was lost.
            (WorkItem::Model(_) | WorkItem::Children | WorkItem::Companions, _) => Ok(()),
        }
    }

    /// Says that the run began.
    async fn open(&mut self) -> Result<()> {
        let Self { driver, lease } = self;
        let (session, run) = (driver.session(), Some(&driver.live().run));
        // Unless others appended meanwhile, the append that started the run is the last one.
        let last = session.last_append();
        let started = session.current_run().is_some_and(|run| last.start < run.version);
        let after = if started { last.start } else { 0 };
        let appends = driver.context().store.read_log(session.id(), after, u32::MAX).await?;
        let mut own = appends.iter().filter(|append| append.run.as_ref() == run);
        let Some(first) = own.next() else { return Ok(()) };
        for append in own {
            let events = decode(driver.session().id(), append)?;
            if !events.iter().all(|it| matches!(it.event, Event::PartRepeated { .. })) {
                // This part was carried out before.
                return Ok(());
            }
        }
        let begun = decode(driver.session().id(), first)?;
        let begun: Vec<_> = begun.into_iter().map(|recorded| recorded.event).collect();
        driver.open_at(lease, &begun, first.version()).await?;
        driver.record(lease, Vec::new()).await
    }

    /// Takes over what children came to. One that goes on meanwhile stays open, and is next again.
    async fn settle(&mut self, calls: &[CallId], next: &Action, is_first: bool) -> Result<()> {
        let Self { driver, lease } = self;
        if is_first && !driver.hooks.is_empty() {
            driver.results = Results::left_by(driver.session(), driver.agent(), calls);
        }
        let children = match next {
            Action::RunTools { children, .. } => &**children,
            _ => &[],
        };
        let cancel = CancellationToken::new();
        let mut facts = Vec::with_capacity(children.len());
        for child in driver.children(children, &cancel) {
            facts.extend(child.found().await?);
        }
        driver.record(lease, facts).await
    }

    /// Takes the decisions up to the next effect.
    async fn advance(&mut self) -> Result<Next> {
        let Self { driver, lease } = self;
        loop {
            let next = driver.next()?;
            if !next.is_decision() && driver.results.is_due(&next) {
                driver.record(lease, Vec::new()).await?;
                continue;
            }
            return Ok(match next {
                Action::Idle => Next::Over,
                Action::CallModel { step, .. } => Next::WorkItem(WorkItem::Model(step)),
                Action::StartChildren(_) => Next::WorkItem(WorkItem::Children),
                Action::RunCompanions(_) => Next::WorkItem(WorkItem::Companions),
                Action::RunTools { calls, children } => {
                    let at_once = driver.agent().limits().tool_concurrency;
                    let calls = calls.into_iter().map(|task| task.call).collect();
                    side_by_side(driver, calls, at_once, children)
                }
                Action::RunFinishTool(task) => side_by_side(driver, vec![task.call], 1, Vec::new()),
                decision if decision.is_decision() => {
                    driver.record(lease, Vec::new()).await?;
                    continue;
                }
                other => {
                    let message = format!("this runtime does not know the action {other:?}");
                    return Err(Error::new(ErrorCode::Internal, message));
                }
            });
        }
    }

    /// One of several calls, whose result leaves it to others what follows.
    async fn one_of_several(&mut self, call: &CallId, is_first: bool) -> Result<()> {
        if !is_first && self.is_open(call) {
            self.count_repeat(Some(call.clone())).await?;
        }
        match self.call(call).await? {
            Some(facts) => {
                self.driver.record_facts(&mut self.lease, &facts).await?;
                self.driver.stream_writer.flush().await;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The result of a call, unless it is not next, or is left to be answered by the abort.
    async fn call(&mut self, call: &CallId) -> Result<Option<Vec<Event>>> {
        let Self { driver, lease } = self;
        let Some(task) = task_of(driver.next()?, call) else { return Ok(None) };
        let cancel = CancellationToken::new();
        let (mut runs, starts) = driver.calls(lease, &[task], &cancel);
        let Some(run) = runs.pop() else { return Ok(None) };
        let mut run = pin!(run.drive());
        let end = loop {
            let next = {
                let next = pin!(async {
                    tokio::select! {
                        biased;
                        end = run.as_mut() => Either::Left(end),
                        asked = starts.next() => Either::Right(asked),
                    }
                });
                driver.guarded(lease, next).await
            };
            match next {
                Ok(Either::Left(end)) => break end,
                Ok(Either::Right(asked)) => {
                    for start in asked {
                        if !driver.record_start(lease, start).await? {
                            return Ok(None);
                        }
                    }
                }
                Err(CancelReason::Aborted) => {
                    cancel.cancel();
                    // What does not stop in time is answered by the abort.
                    let late = pin!(tokio::time::timeout(driver.context().grace, run.as_mut()));
                    match driver.under_lease(lease, late).await? {
                        Ok(end) => break end,
                        Err(_) => return Ok(None),
                    }
                }
                Err(stop) => return Err(driver.error(stop)),
            }
        };
        let Some(end) = end else { return Ok(None) };
        driver.settles([end.ticket]);
        Ok(Some(end.facts().collect()))
    }

    /// One of several children.
    async fn follow(&mut self, call: &CallId) -> Result<()> {
        let Self { driver, lease } = self;
        driver.meet_interrupt(lease).await;
        let Action::RunTools { children, .. } = driver.next()? else { return Ok(()) };
        let (own, others): (Vec<_>, Vec<_>) =
            children.into_iter().partition(|child| child.call == *call);
        let cancel = CancellationToken::new();
        let Some(child) = driver.children(&own, &cancel).pop() else { return Ok(()) };
        let others = match driver.has_children_to_begin() {
            true => driver.children(&others, &cancel),
            false => Vec::new(),
        };
        let mut child = pin!(child.drive());
        let ended = {
            let either = pin!(async {
                tokio::select! {
                    biased;
                    end = child.as_mut() => end.map(drop),
                    // The next child begins in the place of one that has ended.
                    () = any_rests(&others) => Ok(()),
                }
            });
            driver.guarded(lease, either).await
        };
        match ended {
            Ok(end) => end,
            Err(CancelReason::Aborted) => {
                cancel.cancel();
                let grace = driver.context().grace;
                let late = pin!(tokio::time::timeout(grace, child));
                driver.under_lease(lease, late).await.map(drop)
            }
            Err(stop) => Err(driver.error(stop)),
        }
    }

    /// Ends a part, and with it the run if it is over.
    async fn close(self, next: Next) -> Result<Next> {
        let Self { driver, lease } = self;
        let context = Arc::clone(driver.context());
        if next == Next::Over {
            context.local_runs().remove(&driver.live().run);
            driver.end(&lease, Ok(())).await?;
        } else {
            driver.stream_writer.flush().await;
            if let Some(fold) = driver.journal.into_session() {
                context.folds.keep(fold);
            }
        }
        Ok(next)
    }

    /// Takes back what it showed that another process has recorded.
    async fn overtaken(mut self) {
        self.driver.abandon();
        self.driver.stream_writer.close().await;
    }

    /// The end of a call or a wait. One whose run was superseded has nothing more to do than to take back
    /// what it showed.
    async fn unless_superseded(self, done: Result<()>) -> Result<()> {
        match done {
            Err(error) if error.code() == ErrorCode::Superseded => {
                self.overtaken().await;
                Ok(())
            }
            done => done,
        }
    }
}

/// Returns once one of these children has ended or has to wait itself; never if there are none.
async fn any_rests(children: &[ChildRun]) {
    let mut rests: FuturesUnordered<_> = children.iter().map(ChildRun::rests).collect();
    if rests.next().await.is_none() {
        std::future::pending().await
    }
}

/// Notes all results that hooks may not have been told of.
fn note_all(driver: &mut Driver) {
    if !driver.hooks.is_empty() {
        driver.results = Results::left_before(driver.session(), driver.agent());
    }
}

/// These, and then what goes on after them and after those whose results wait to be told of. A call that
/// nothing of that is beside is a part like any other.
fn side_by_side(
    driver: &Driver,
    calls: Vec<CallId>,
    at_once: usize,
    children: Vec<ChildTask>,
) -> Next {
    let mut before = driver.results.waiting().peekable();
    if let [only] = &*calls
        && children.is_empty()
        && before.peek().is_none()
    {
        return Next::WorkItem(WorkItem::Call(only.clone()));
    }
    let all = calls.iter().chain(children.iter().map(|task| &task.call)).chain(before);
    let then = WorkItem::Settle(all.cloned().collect());
    let child = |ChildTask { call, session, .. }| ChildRef { call, session };
    Next::Calls { calls, at_once, children: children.into_iter().map(child).collect(), then }
}

/// The call among those that are next.
fn task_of(next: Action, call: &CallId) -> Option<CallTask> {
    match next {
        Action::RunTools { calls, .. } => calls.into_iter().find(|task| task.call == *call),
        Action::RunFinishTool(task) => Some(task).filter(|task| task.call == *call),
        _ => None,
    }
}
