//! Splits a run into work items for engines that keep their own execution history and schedule workers. Each item loads
//! the run from the log, performs one action and returns the next work. An engine stores items and their results in its
//! history, so they contain only ids; the data stays in the log.
//!
//! An item that is executed again because its result was lost finds a recorded outcome in the log and does not execute
//! the effect again; result hooks may be called again in that case. A call that runs alone is an ordinary item.
//! Concurrent calls are executed individually and only append their results. [`WorkItem::Settle`] then makes the
//! decisions and calls the hooks for the results. Children that are still running are part of the next work.
//!
//! An engine may consider a live worker dead and have another worker execute the same item. Only one of them can
//! append to the log; the other detects this, reloads the log and continues from there.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::Either;
use futures_util::stream::FuturesUnordered;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::event::{Event, decode};
use helix_agents_core::id::{CallId, SessionId};
use helix_agents_core::session::{Lineage, MAX_CONFLICTS, lineage, too_many_conflicts};
use helix_agents_core::step::{Action, CallTask, ChildTask};
use helix_agents_core::store::Head;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::cancel_reason::CancelReason;
use crate::children::ChildWait;
use crate::context::LocalRunContext;
use crate::driver::Driver;
use crate::family;
use crate::hook_chain::HookChain;
use crate::lease_keeper::{self, LeaseKeeper};
use crate::run_ref::RunRef;
use crate::runtime::Runtime;
use crate::start;
use prior_execution::PriorExecution;

mod prior_execution;

/// A unit of work of a run. An engine executes the items of a run one after the other. Calls that run concurrently are
/// not items: see [`NextWork::Calls`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkItem {
    /// Show the start of the run and call the start hooks.
    Open,
    /// Make the model call of this step.
    Model(u32),
    /// Start the sessions of children.
    Children,
    /// Execute calls of companion tools.
    Companions,
    /// Execute this call, which is the only one that is due.
    Call(CallId),
    /// Continue after these calls, which ran concurrently.
    Settle(Vec<CallId>),
}

/// The next work of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextWork {
    /// One work item.
    #[serde(rename = "part")]
    WorkItem(WorkItem),
    /// Concurrent calls and children, followed by the item that continues after them.
    Calls {
        /// The calls to execute.
        calls: Vec<CallId>,
        /// The maximum number of concurrent calls.
        at_once: usize,
        /// The children to wait for.
        children: Vec<ChildRef>,
        /// The next item after all calls and children.
        then: WorkItem,
    },
    /// No more work: the run has ended, or another run owns the session.
    #[serde(rename = "over")]
    Done,
}

/// A child that the run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildRef {
    /// The sub-agent call.
    pub call: CallId,
    /// The child's session.
    pub session: SessionId,
}

/// A run that was loaded from the log to execute one of its items.
struct AttachedRun {
    driver: Box<Driver>,
    lease: LeaseKeeper,
}

impl Runtime {
    /// Executes a work item of a run and returns the next work. `is_first` states that no worker has started the
    /// item before, as far as the engine knows. Retries are counted in the log first, so that a run whose item crashes
    /// every process fails with [`ErrorCode::CrashLoop`].
    ///
    /// # Cancel safety
    /// Dropping the future has the effect of a crash. Retry the item, with `is_first` set to `false`.
    ///
    /// # Errors
    /// Returns the errors that stop a run, for example [`ErrorCode::Closed`] during a shutdown, and
    /// [`ErrorCode::StoreBusy`] after too many conflicts with other workers. The item may be retried.
    pub async fn perform(
        &self,
        run_ref: &RunRef,
        item: &WorkItem,
        is_first: bool,
    ) -> Result<NextWork> {
        for round in 0..MAX_CONFLICTS {
            let Some(mut run) = self.attach(run_ref, true).await? else {
                return self.finish_ended(run_ref).await;
            };
            let prior = match (is_first, round) {
                (true, 0) => PriorExecution::Never,
                (false, 0) => PriorExecution::Elsewhere,
                _ => PriorExecution::Here,
            };
            let done = run.perform(item, prior).await;
            match done {
                Ok(next) => return run.close(next).await,
                Err(error) if error.code() == ErrorCode::Superseded => {
                    run.discard_superseded().await
                }
                Err(error) => {
                    run.driver.stream_writer.close().await;
                    return Err(error);
                }
            }
        }
        Err(too_many_conflicts(&run_ref.session))
    }

    /// Runs one of several concurrent calls and records its result. `Ok` does not mean that the call ran: it may have
    /// been answered or aborted in the meantime. The next [`WorkItem::Settle`] reads its state from the log. An
    /// at-most-once call is in doubt if its start is on record, regardless of which process recorded it.
    ///
    /// # Errors
    /// Returns the errors of [`perform`](Self::perform).
    pub async fn perform_call(&self, run_ref: &RunRef, call: &CallId) -> Result<()> {
        self.one_of_several(run_ref, call, true).await
    }

    /// Retries a call that a worker has started before without returning a result. Like
    /// [`perform_call`](Self::perform_call), but counts the retry in the log first. After too many retries the call
    /// is answered with [`ErrorCode::CrashLoop`].
    ///
    /// # Errors
    /// Returns the errors of [`perform`](Self::perform).
    pub async fn retry_call(&self, run_ref: &RunRef, call: &CallId) -> Result<()> {
        self.one_of_several(run_ref, call, false).await
    }

    async fn one_of_several(&self, run_ref: &RunRef, call: &CallId, is_first: bool) -> Result<()> {
        let Some(mut run) = self.attach(run_ref, false).await? else { return Ok(()) };
        let done = run.one_of_several(call, is_first).await;
        run.unless_superseded(done).await
    }

    /// Waits until a child has ended or is suspended, or until the limit has passed. The next [`WorkItem::Settle`]
    /// checks which case applies. If the child is still running, the next work waits for it again. While calls of other
    /// sub-agents are queued, the wait also ends when any concurrent child ends.
    ///
    /// # Errors
    /// Returns the errors of [`perform`](Self::perform).
    pub async fn follow_child(
        &self,
        run_ref: &RunRef,
        call: &CallId,
        limit: Duration,
    ) -> Result<()> {
        let Some(mut run) = self.attach(run_ref, false).await? else { return Ok(()) };
        let done = tokio::time::timeout(limit, run.follow(call)).await;
        run.unless_superseded(done.unwrap_or(Ok(()))).await
    }

    /// Releases the lease of a run without an active worker, so that another process can take over immediately.
    pub async fn release_run(&self, run_ref: &RunRef) {
        let context = self.context();
        context.local_runs().remove(&run_ref.run);
        context.folds.forget(&run_ref.session);
        lease_keeper::release(&*context.store, &run_ref.session, &run_ref.run, context.lease).await;
    }

    /// Loads the run and ensures that enough of its lease remains. `alone` states that no other task of this process
    /// works on the run meanwhile. Returns `None` if the run is no longer the session's current run.
    async fn attach(&self, run_ref: &RunRef, alone: bool) -> Result<Option<AttachedRun>> {
        let context = self.context();
        let Some((head, lease)) = LeaseKeeper::attach(context, run_ref).await? else {
            return Ok(None);
        };
        let LocalRunContext { agent, hooks } = self.run_context(run_ref, &head).await?;
        let mut fold = context.folds.get(&*context.store, &head, alone).await?;
        if fold.current_run().is_none_or(|run| run.id != run_ref.run) {
            return Ok(None);
        }
        fold.observe(head.read_at);
        let journal = start::journal(context, &agent, fold, &run_ref.run);
        let mut driver = start::driver(self, agent, journal, hooks);
        driver.in_work_items = true;
        Ok(Some(AttachedRun { driver, lease }))
    }

    /// Returns the agent and the hooks of a run.
    async fn run_context(&self, run_ref: &RunRef, head: &Head) -> Result<LocalRunContext> {
        let context = self.context();
        let known = context.local_runs().get(&run_ref.run).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let Lineage { agent, above } = lineage(&*context.store, &context.registry, head).await?;
        let hooks = HookChain::new(&HookChain::of_lineage(&above), &agent, &[]);
        Ok(LocalRunContext { agent, hooks })
    }

    /// Handles a run that is no longer current. The process that ended the run may have crashed before it updated
    /// the stream and notified the parent and children, so this is repeated here.
    ///
    /// # Errors
    /// Returns an error if the run is current after all, because it started concurrently.
    async fn finish_ended(&self, run_ref: &RunRef) -> Result<NextWork> {
        let context = self.context();
        let fold = context.logs().overview(&run_ref.session).await?;
        if fold.current_run().is_some_and(|run| run.id == run_ref.run) {
            let message = "the run was started concurrently";
            return Err(
                Error::new(ErrorCode::StoreBusy, message).with_context("session", &run_ref.session)
            );
        }
        let known = context.local_runs().remove(&run_ref.run);
        if fold.current_run().is_none() && fold.last_run().is_some_and(|run| run.id == run_ref.run)
        {
            context.show_end(&run_ref.session).await;
            let with = match known {
                Some(known) => Ok(known),
                None => self.run_context(run_ref, &self.head(&run_ref.session).await?).await,
            };
            match with {
                Ok(LocalRunContext { agent, hooks }) => {
                    family::propagate_end(self, &agent, &fold, &hooks).await
                }
                Err(error) => {
                    tracing::warn!(session = %run_ref.session, %error, "the end of the run was not propagated")
                }
            }
        }
        Ok(NextWork::Done)
    }
}

impl AttachedRun {
    async fn perform(&mut self, item: &WorkItem, prior: PriorExecution) -> Result<NextWork> {
        let is_first = prior == PriorExecution::Never;
        if !is_first {
            // An earlier execution may have crashed before it updated the stream.
            self.driver.repair_stream(&mut self.lease).await?;
            self.driver.report_repeated_run(&mut self.lease).await?;
        }
        // All items run user code, except those that only wait for children.
        let waits = matches!(item, WorkItem::Settle(calls) if calls.is_empty());
        if prior == PriorExecution::Elsewhere && !waits {
            let call = if let WorkItem::Call(call) = item { Some(call) } else { None };
            let call = call.filter(|call| self.is_open(call));
            self.count_repeat(call.cloned()).await?;
        }
        if !is_first {
            // The execution that recorded the results may have crashed before it called the hooks.
            self.driver.note_open_step();
        }
        self.drive(item, is_first).await?;
        self.advance().await
    }

    /// Returns `true` if a call has no result yet.
    fn is_open(&self, call: &CallId) -> bool {
        let step = self.driver.session().open_step();
        step.and_then(|step| step.call(call)).is_some_and(|state| state.finish.is_none())
    }

    /// Records a retry of the item.
    async fn count_repeat(&mut self, call: Option<CallId>) -> Result<()> {
        let Self { driver, lease } = self;
        tracing::warn!(session = %driver.session().id(), ?call, "a work item of the run is retried");
        driver.record_facts(lease, &[Event::WorkItemRepeated { call }]).await?;
        driver.drop_hooks_after_max_takeovers();
        Ok(())
    }

    async fn drive(&mut self, item: &WorkItem, is_first: bool) -> Result<()> {
        let Self { driver, lease } = self;
        match (item, driver.next()?) {
            (WorkItem::Open, _) => self.open().await,
            (WorkItem::Model(expected), Action::CallModel { step, force_completion })
                if step == *expected =>
            {
                driver.call_model(lease, step, force_completion).await
            }
            (WorkItem::Children, next) => {
                // Hooks have not been called yet for calls of the same step that have ended or were refused. If an
                // abort was requested meanwhile, this item is the last one that can call them.
                driver.note_open_step();
                match next {
                    Action::StartChildren(tasks) => {
                        Box::pin(driver.start_children(lease, &tasks)).await
                    }
                    _ => Ok(()),
                }
            }
            (WorkItem::Companions, Action::RunCompanions(tasks)) => {
                Box::pin(driver.run_companions(lease, &tasks)).await
            }
            (WorkItem::Settle(calls), next) => self.settle(calls, &next, is_first).await,
            (WorkItem::Call(call), _) => match self.call(call).await? {
                Some(facts) => self.driver.record(&mut self.lease, facts).await,
                None => {
                    // Another process may have recorded the result before this item could run the call.
                    self.driver.note_calls(std::slice::from_ref(call), is_first);
                    Ok(())
                }
            },
            // The item is not due: another event was recorded first, or the item was completed and the engine lost its
            // result.
            (WorkItem::Companions, _) => {
                // An earlier run may have recorded results before this item could run the calls.
                let late = driver.session().late_results().iter();
                let late: Vec<_> = late.map(|(_, finish)| finish.call.clone()).collect();
                driver.note_calls(&late, is_first);
                Ok(())
            }
            (WorkItem::Model(_), _) => Ok(()),
        }
    }

    /// Executes [`WorkItem::Open`].
    async fn open(&mut self) -> Result<()> {
        let Self { driver, lease } = self;
        let (session, run) = (driver.session(), Some(&driver.live().run));
        // Unless other processes appended events, the append that started the run is the last one.
        let last = session.last_append();
        let started = session.current_run().is_some_and(|run| last.start < run.version);
        let after = if started { last.start } else { 0 };
        let appends = driver.context().store.read_log(session.id(), after, u32::MAX).await?;
        let mut own = appends.iter().filter(|append| append.run.as_ref() == run);
        let Some(first) = own.next() else { return Ok(()) };
        for append in own {
            let events = decode(driver.session().id(), append)?;
            if !events
                .iter()
                .all(|recorded| matches!(recorded.event, Event::WorkItemRepeated { .. }))
            {
                // This item was executed before.
                return Ok(());
            }
        }
        let start_events = decode(driver.session().id(), first)?;
        let start_events: Vec<_> =
            start_events.into_iter().map(|recorded| recorded.event).collect();
        driver.open_at(lease, &start_events, first.version()).await?;
        driver.record(lease, Vec::new()).await
    }

    /// Records the outcomes of children. A child that is still running stays open and is part of the next work again.
    async fn settle(&mut self, calls: &[CallId], next: &Action, is_first: bool) -> Result<()> {
        let Self { driver, lease } = self;
        driver.note_calls(calls, is_first);
        let children = match next {
            Action::RunTools { children, .. } => &**children,
            _ => &[],
        };
        let cancel = CancellationToken::new();
        let mut facts = Vec::with_capacity(children.len());
        for child in driver.children(children, &cancel) {
            let Some(event) = child.current_event().await? else { continue };
            if matches!(event, Event::ToolFinished(_)) {
                let shown = pin!(driver.context().show_child_end(child.session()));
                driver.under_lease(lease, shown).await?;
            }
            facts.push(event);
        }
        driver.record(lease, facts).await
    }

    /// Records decisions until an effect is due, and returns it.
    async fn advance(&mut self) -> Result<NextWork> {
        let Self { driver, lease } = self;
        loop {
            let next = driver.next()?;
            if !next.is_decision() && driver.results.is_due(&next) {
                driver.record(lease, Vec::new()).await?;
                continue;
            }
            return Ok(match next {
                Action::Idle => NextWork::Done,
                Action::CallModel { step, .. } => NextWork::WorkItem(WorkItem::Model(step)),
                Action::StartChildren(_) => NextWork::WorkItem(WorkItem::Children),
                Action::RunCompanions(_) => NextWork::WorkItem(WorkItem::Companions),
                Action::RunTools { calls, children } => {
                    let at_once = driver.agent().limits().tool_concurrency;
                    let calls = calls.into_iter().map(|task| task.call).collect();
                    concurrent_calls(driver, calls, at_once, children)
                }
                Action::RunFinishTool(task) => {
                    concurrent_calls(driver, vec![task.call], 1, Vec::new())
                }
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

    /// Runs one of several concurrent calls. Records its result without taking decisions.
    async fn one_of_several(&mut self, call: &CallId, is_first: bool) -> Result<()> {
        if !is_first && self.is_open(call) {
            self.count_repeat(Some(call.clone())).await?;
        }
        if !is_first {
            self.driver.report_repeated_run(&mut self.lease).await?;
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

    /// Runs a call and returns its events. Returns `None` if the call is not due, or if an abort answers it.
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
                        requested = starts.next() => Either::Right(requested),
                    }
                });
                driver.guarded(lease, next).await
            };
            match next {
                Ok(Either::Left(end)) => break end,
                Ok(Either::Right(requested)) => {
                    for start in requested {
                        if !driver.record_start(lease, start).await? {
                            return Ok(None);
                        }
                    }
                }
                Err(CancelReason::Aborted) => {
                    cancel.cancel();
                    // If the call does not stop in time, the abort answers it.
                    let late = pin!(tokio::time::timeout(driver.context().grace, run.as_mut()));
                    match driver.under_lease(lease, late).await? {
                        Ok(end) => break end,
                        Err(_) => return Ok(None),
                    }
                }
                Err(reason) => return Err(driver.error(reason)),
            }
        };
        let Some(end) = end else { return Ok(None) };
        driver.register_outcomes([end.attempt]);
        Ok(Some(end.facts().collect()))
    }

    /// Follows one of several children.
    async fn follow(&mut self, call: &CallId) -> Result<()> {
        let Self { driver, lease } = self;
        driver.forward_interrupt(lease).await;
        let Action::RunTools { children, .. } = driver.next()? else { return Ok(()) };
        let (own, others): (Vec<_>, Vec<_>) =
            children.into_iter().partition(|child| child.call == *call);
        let cancel = CancellationToken::new();
        let Some(child) = driver.children(&own, &cancel).pop() else { return Ok(()) };
        let others = match driver.has_unstarted_children() {
            true => driver.children(&others, &cancel),
            false => Vec::new(),
        };
        let mut child = pin!(child.drive());
        let ended = {
            let either = pin!(async {
                tokio::select! {
                    biased;
                    end = child.as_mut() => end.map(drop),
                    // The next queued child starts when one has ended.
                    () = any_idle(&others) => Ok(()),
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
            Err(reason) => Err(driver.error(reason)),
        }
    }

    /// Completes an item, and the run if it is over.
    async fn close(self, next: NextWork) -> Result<NextWork> {
        let Self { driver, mut lease } = self;
        let context = Arc::clone(driver.context());
        if next == NextWork::Done {
            context.local_runs().remove(&driver.live().run);
            driver.end(&mut lease, Ok(())).await?;
        } else {
            driver.stream_writer.flush().await;
            if let Some(fold) = driver.journal.into_session() {
                context.folds.keep(fold);
            }
        }
        Ok(next)
    }

    /// Discards attempts whose outcome another process has recorded.
    async fn discard_superseded(mut self) {
        self.driver.discard();
        self.driver.stream_writer.close().await;
    }

    /// Completes a call or a wait. If the run was superseded, this only discards its attempts.
    async fn unless_superseded(self, done: Result<()>) -> Result<()> {
        match done {
            Err(error) if error.code() == ErrorCode::Superseded => {
                self.discard_superseded().await;
                Ok(())
            }
            done => done,
        }
    }
}

/// Resolves once one of these children has ended or is suspended. Never resolves for an empty slice.
async fn any_idle(children: &[ChildWait]) {
    let mut until_idle: FuturesUnordered<_> = children.iter().map(ChildWait::until_idle).collect();
    if until_idle.next().await.is_none() {
        std::future::pending().await
    }
}

/// Returns these calls and children as the next work, followed by an item that also settles calls whose results
/// still need hooks. A single call without children or such results becomes an ordinary item.
fn concurrent_calls(
    driver: &Driver,
    calls: Vec<CallId>,
    at_once: usize,
    children: Vec<ChildTask>,
) -> NextWork {
    let mut before = driver.results.waiting().peekable();
    if let [only] = &*calls
        && children.is_empty()
        && before.peek().is_none()
    {
        return NextWork::WorkItem(WorkItem::Call(only.clone()));
    }
    let all = calls.iter().chain(children.iter().map(|task| &task.call)).chain(before);
    let then = WorkItem::Settle(all.cloned().collect());
    let child = |ChildTask { call, session, .. }| ChildRef { call, session };
    NextWork::Calls { calls, at_once, children: children.into_iter().map(child).collect(), then }
}

/// Returns the task of the call if it is among the next ones.
fn task_of(next: Action, call: &CallId) -> Option<CallTask> {
    match next {
        Action::RunTools { calls, .. } => calls.into_iter().find(|task| task.call == *call),
        Action::RunFinishTool(task) => Some(task).filter(|task| task.call == *call),
        _ => None,
    }
}
