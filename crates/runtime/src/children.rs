//! Starts sub-agents in sessions of their own and waits for them.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::AnyAgent;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::event::{ChildStart, Event, ToolFinish};
use helix_agents_core::executor::{
    AgentExecutor as _, AgentResult, ResumeOptions, RunHandle, StopOptions,
};
use helix_agents_core::fault;
use helix_agents_core::hooks::{HookCall, HookContext};
use helix_agents_core::id::{CallId, RequestId, SessionId};
use helix_agents_core::mutant;
use helix_agents_core::session::{
    ChildStatus, MAX_CONFLICTS, SessionOverview, StopKind, is_already_done, overview_and_status,
    too_many_conflicts,
};
use helix_agents_core::step::{
    ChildSpec, ChildTask, child_outcome, child_refused, child_start_failed,
};
use helix_agents_core::stream::Effect;
use helix_agents_core::usage::UsageRollup;
use tokio_util::sync::CancellationToken;

use crate::driver::Driver;
use crate::hook_chain::{HookChain, changed};
use crate::lease_keeper::LeaseKeeper;
use crate::runtime::Runtime;
use crate::start::{self, StartedBy};

/// The delay between two checks of a child that another process is about to execute.
const RETRY_DELAY: Duration = Duration::from_millis(50);

impl Driver {
    /// Starts the sessions of children and records the starts. A child that cannot be started becomes a failed call;
    /// its siblings are started nevertheless.
    ///
    /// # Errors
    /// Returns the errors of [`record`](Self::record). Also returns an error if the runtime is shutting down.
    pub async fn start_children(
        &mut self,
        lease: &mut LeaseKeeper,
        tasks: &[ChildTask],
    ) -> Result<()> {
        let facts = self.start_all(lease, tasks).await?;
        self.record(lease, facts).await
    }

    /// Starts the sessions of queued children after others have ended, while other children and calls of the same
    /// reply are still running.
    ///
    /// # Errors
    /// Returns the errors of [`start_children`](Self::start_children).
    pub async fn start_children_concurrently(
        &mut self,
        lease: &mut LeaseKeeper,
        tasks: &[ChildTask],
    ) -> Result<()> {
        let facts = self.start_all(lease, tasks).await?;
        self.record_concurrently(lease, facts).await
    }

    /// Returns `true` if a sub-agent call has no child yet because it is queued behind other children.
    pub(crate) fn has_unstarted_children(&self) -> bool {
        let step = self.journal.session().open_step();
        step.is_some_and(|step| {
            step.pairs().any(|(call, state)| {
                let is_open = state.finish.is_none() && state.child.is_none();
                is_open && self.agent.sub_agent(&call.name).is_some()
            })
        })
    }

    async fn start_all(
        &mut self,
        lease: &mut LeaseKeeper,
        tasks: &[ChildTask],
    ) -> Result<Vec<Event>> {
        show_starts(self, tasks).await;
        let mut facts = Vec::with_capacity(tasks.len());
        for task in tasks {
            let Some(child_spec) = child_spec(self, task) else { continue };
            let mut child_spec = Box::pin(start_child(self, child_spec));
            let (started, change) = self.under_lease(lease, child_spec.as_mut()).await??;
            facts.extend(change);
            fault::point("child.begun");
            facts.push(match started {
                Ok(start) => Event::ChildStarted(Arc::new(start)),
                Err(error) => {
                    ToolFinish::without_run(task.call.clone(), child_start_failed(&error)).into()
                }
            });
        }
        Ok(facts)
    }
}

/// Shows the starts of children before they write chunks themselves.
async fn show_starts(driver: &mut Driver, tasks: &[ChildTask]) {
    let step = driver.journal.session().last_step();
    for task in tasks {
        let Some(child_spec) = child_spec(driver, task) else { continue };
        let attempt =
            driver.stream_writer.start_attempt(step, Effect::Child { call: task.call.clone() });
        driver.stream_writer.show(Some(attempt), step, child_spec.start_chunk());
        driver.unsettled.push(attempt);
    }
    driver.stream_writer.flush().await;
}

fn child_spec(driver: &Driver, task: &ChildTask) -> Option<ChildSpec> {
    ChildSpec::of_sub_agent(driver.journal.session(), &driver.agent, task)
}

/// Starts a child unless a hook refuses it. Returns the start for the parent's log, or the reason why the child was
/// not started, and the state changes of hooks.
pub(crate) async fn start_child(
    driver: &Driver,
    spec: ChildSpec,
) -> Result<(Result<ChildStart>, Option<Event>)> {
    let session = driver.journal.session();
    let point = HookCall::PerCall("before_sub_agent", spec.start.call.clone());
    let place = driver.place(session.last_step());
    let cx = HookContext::new(&place, point, session.step_state());
    let started = match driver.hooks.before_sub_agent(&cx, spec.view()).await {
        Ok(()) => execute(driver, spec).await,
        Err(reason) => Err(child_refused(&reason)),
    };
    if started.as_ref().is_err_and(is_start_unknown) {
        return started.map(|start| (Ok(start), None));
    }
    Ok((started, changed(&cx, "before_sub_agent")))
}

/// Returns `true` if it is unknown after this error whether the child was started. The run stops then; the next run
/// finds the child or starts it.
fn is_start_unknown(error: &Error) -> bool {
    let code = error.code();
    matches!(code, ErrorCode::Closed | ErrorCode::StoreUnavailable | ErrorCode::StoreBusy)
}

async fn execute(driver: &Driver, spec: ChildSpec) -> Result<ChildStart> {
    driver.context.check_open()?;
    let ChildSpec { start, parent, agent, input, .. } = spec;
    let input = input?;
    // Boxed, because a child's run may start children of its own.
    let execute = start::execute_child(
        &driver.runtime,
        agent,
        &input,
        start,
        parent,
        &driver.inherited_hooks,
    );
    Box::pin(execute).await
}

/// A wait for one child of a run.
#[derive(Debug)]
pub struct ChildWait {
    runtime: Runtime,
    agent: AnyAgent,
    start: Arc<ChildStart>,
    above: HookChain,
    cancel: CancellationToken,
    /// The start time of the waiting run.
    since: Option<Timestamp>,
    /// `true` if the child is resumed when it was interrupted before the waiting run started. Set for the first check
    /// only, and never if the waiting run has to stop.
    resumes_interrupted: bool,
    /// `true` if the waiting run has to stop at its next step boundary.
    interrupted: bool,
    /// The interrupt that was cleared for the waiting session. It does not stop the children either.
    cleared: Option<RequestId>,
    /// Whether [`drive`](Self::drive) shows the end of a child of another process. A work item shows it when it
    /// records the end, because the engine may drop the wait.
    shows_end: bool,
}

impl ChildWait {
    pub(crate) fn new(
        driver: &Driver,
        task: &ChildTask,
        cancel: &CancellationToken,
    ) -> Option<Self> {
        let session = driver.journal.session();
        let start = Arc::clone(&session.open_step()?.call(&task.call)?.child.as_ref()?.start);
        Some(Self {
            runtime: driver.runtime.clone(),
            agent: Arc::clone(driver.agent.agent_of_child(&start.agent)?),
            start,
            above: driver.inherited_hooks.clone(),
            cancel: cancel.clone(),
            since: session.current_run().and_then(|run| run.started),
            resumes_interrupted: session.interrupt_request().is_none(),
            interrupted: session.interrupt_request().is_some(),
            cleared: session.cleared_interrupt().cloned(),
            shows_end: !driver.in_work_items,
        })
    }

    /// Returns the child's session id.
    pub(crate) fn session(&self) -> &SessionId {
        &self.start.session
    }

    /// Returns the id of the sub-agent call.
    fn call(&self) -> &CallId {
        &self.start.call
    }

    /// Waits until the child has ended or is suspended, and returns the event for the parent's log. A child that
    /// stopped without ending, or that was interrupted before this run started, is resumed first. If the token that was
    /// given to [`Driver::children`] is cancelled, the child is aborted; this still waits for its end. Dropping the
    /// future does not affect the child.
    ///
    /// # Errors
    /// Returns an error if the state of the child cannot be determined. The run has to stop then.
    pub async fn drive(mut self) -> Result<Event> {
        let child = &self.start.session;
        let context = Arc::clone(self.runtime.context());
        let mut has_run_here = false;
        for _ in 0..MAX_CONFLICTS {
            match self.status().await? {
                ChildStatus::Ended(result, used) => {
                    if self.shows_end && !has_run_here {
                        context.show_child_end(child).await;
                    }
                    return Ok(self.ended(&result, used));
                }
                ChildStatus::Waiting => return Ok(self.waits()),
                ChildStatus::Interrupted if !self.resumes_interrupted => return Ok(self.waits()),
                ChildStatus::Live => {
                    let handle = self.runtime.handle(child).await?;
                    has_run_here = self.runtime.live(child).is_some();
                    if has_run_here {
                        self.follow(&handle).await?;
                    } else {
                        // The owner may have crashed, and the child's lease may outlive the parent's lease.
                        tokio::select! {
                            biased;
                            followed = self.follow(&handle) => followed?,
                            until_lease_free = self.until_lease_free() => until_lease_free?,
                        }
                    }
                }
                ChildStatus::Ready if self.is_run_by_engine().await? => {
                    has_run_here = false;
                    self.follow(&self.runtime.handle(child).await?).await?;
                }
                ChildStatus::Ready | ChildStatus::Interrupted => {
                    let (agent, options) = (Arc::clone(&self.agent), ResumeOptions::default());
                    let (above, cleared) = (&self.above, self.cleared.clone());
                    let by = StartedBy::Parent { cleared };
                    let resume =
                        start::resume_if_first(&self.runtime, agent, child, options, above, &by);
                    match Box::pin(resume).await? {
                        Some(handle) => {
                            has_run_here = self.runtime.live(child).is_some();
                            self.follow(&handle).await?;
                        }
                        None => context.clock.sleep(RETRY_DELAY).await,
                    }
                }
            }
            self.resumes_interrupted = false;
        }
        Err(too_many_conflicts(child))
    }

    /// Returns `true` if the engine recovers the child by itself although the child has no valid lease.
    async fn is_run_by_engine(&self) -> Result<bool> {
        let head = self.runtime.head(&self.start.session).await?;
        Ok(!head.is_leased() && self.runtime.engine_recovers(&head).await?)
    }

    /// Returns the status of the child as seen by the waiting run.
    async fn status(&self) -> Result<ChildStatus> {
        let logs = self.runtime.context().logs();
        let (child, status) = overview_and_status(logs, &self.start.session).await?;
        Ok(match status {
            // The waiting run has to stop, so it starts nothing. An unfinished run of the child is taken over
            // nevertheless: it handles its requests itself.
            ChildStatus::Ready if self.interrupted && child.current_run().is_none() => {
                ChildStatus::Waiting
            }
            ChildStatus::Interrupted if self.has_cleared(&child) => ChildStatus::Ready,
            // The waiting run must not override an interrupt that was requested after its start.
            ChildStatus::Interrupted if child.last_run().and_then(|run| run.ended) > self.since => {
                ChildStatus::Waiting
            }
            status => status,
        })
    }

    /// Returns `true` if the child was stopped by the interrupt that was cleared for the waiting session.
    fn has_cleared(&self, child: &SessionOverview) -> bool {
        !self.interrupted
            && self.cleared.is_some()
            && child.handled_interrupt() == self.cleared.as_ref()
    }

    /// Returns the event for the parent's log if the child has ended or is suspended. Returns `None` if it is running
    /// or can continue.
    pub(crate) async fn current_event(&self) -> Result<Option<Event>> {
        Ok(match self.status().await? {
            ChildStatus::Ended(result, used) => Some(self.ended(&result, used)),
            ChildStatus::Waiting | ChildStatus::Interrupted => Some(self.waits()),
            ChildStatus::Live | ChildStatus::Ready => None,
        })
    }

    /// Waits until the child has ended or is suspended. Does not resume the child; [`drive`](Self::drive) does that.
    pub(crate) async fn until_idle(&self) {
        while !matches!(self.current_event().await, Ok(Some(_))) {
            if let Ok(handle) = self.runtime.handle(&self.start.session).await {
                drop(handle.result().await);
            }
            self.runtime.context().clock.sleep(RETRY_DELAY).await;
        }
    }

    /// Waits until the child's lease has expired or was released.
    async fn until_lease_free(&self) -> Result<()> {
        loop {
            let head = self.runtime.head(&self.start.session).await?;
            let Some(until) = head.lease_until.filter(|_| head.is_leased()) else { return Ok(()) };
            self.runtime.context().clock.sleep(until.since(head.read_at) + RETRY_DELAY).await;
        }
    }

    /// Waits for a run of the child. If the parent is aborted, the child is aborted too.
    async fn follow(&self, handle: &RunHandle) -> Result<()> {
        let result = tokio::select! {
            biased;
            result = handle.result() => result,
            () = self.cancel.cancelled() => {
                let (session, options) = (&self.start.session, StopOptions::default());
                match self.runtime.append_request(session, StopKind::Abort, &options).await {
                    Ok(()) => {}
                    Err(error) if is_already_done(&error) => {}
                    Err(error) => {
                        tracing::warn!(%session, %error, "the abort request was not passed to the child");
                    }
                }
                handle.result().await
            }
        };
        match result {
            Ok(_) => Ok(()),
            // Another run has taken over.
            Err(error) if error.code() == ErrorCode::Superseded => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn waits(&self) -> Event {
        Event::ChildWaiting { call: self.call().clone() }
    }

    fn ended(&self, result: &AgentResult, used: Arc<UsageRollup>) -> Event {
        let outcome = child_outcome(&self.start, result);
        let finish = ToolFinish::without_run(self.call().clone(), outcome);
        let used = if mutant!("child-usage-lost") { Arc::default() } else { used };
        ToolFinish { child: Some(used), ..finish }.into()
    }
}
