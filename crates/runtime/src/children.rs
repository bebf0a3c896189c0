//! Sub-agents, as effects: begun in sessions of their own, and waited for.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::AnyAgent;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::event::{ChildStart, Event, ToolFinish};
use helix_agents_core::executor::{AgentExecutor as _, AgentResult, ResumeOptions, RunHandle};
use helix_agents_core::fault;
use helix_agents_core::hooks::{HookChain, HookContext, HookPoint, changed};
use helix_agents_core::id::{CallId, RequestId};
use helix_agents_core::mutant;
use helix_agents_core::session::{
    ChildStatus, RequestKind, SessionOverview, is_benign_race, overview_and_standing,
};
use helix_agents_core::step::{
    ChildSpec, ChildTask, child_outcome, child_refused, child_start_failed,
};
use helix_agents_core::stream::Effect;
use helix_agents_core::usage::UsageRollup;
use tokio_util::sync::CancellationToken;

use crate::driver::Driver;
use crate::lease::LeaseKeeper;
use crate::runtime::Runtime;
use crate::start::{self, StartedBy};

/// How long to wait before looking again at a child that somebody else is about to carry out.
const AGAIN: Duration = Duration::from_millis(50);

/// How often a child is looked at that others go on with and that does not get on.
const MAX_TRIES: u32 = 64;

impl Driver {
    /// Begins the sessions of children and records that. One that cannot be begun is a failed call; its
    /// siblings are begun all the same.
    ///
    /// # Errors
    /// As [`record`](Self::record), and if the runtime is shutting down.
    pub async fn start_children(
        &mut self,
        lease: &mut LeaseKeeper,
        tasks: &[ChildTask],
    ) -> Result<()> {
        let facts = self.begin_children(lease, tasks).await?;
        self.record(lease, facts).await
    }

    /// Begins the sessions of children for which those that have ended made room, while other children and
    /// calls of the same reply go on.
    ///
    /// # Errors
    /// As [`start_children`](Self::start_children).
    pub async fn start_children_beside(
        &mut self,
        lease: &mut LeaseKeeper,
        tasks: &[ChildTask],
    ) -> Result<()> {
        let facts = self.begin_children(lease, tasks).await?;
        self.record_beside(lease, facts).await
    }

    /// Returns `true` if a call of a sub-agent has no child yet: it waits until one of those before it
    /// makes room.
    pub(crate) fn has_children_to_begin(&self) -> bool {
        let step = self.journal.session().open_step();
        step.is_some_and(|step| {
            step.pairs().any(|(call, state)| {
                let is_open = state.finish.is_none() && state.child.is_none();
                is_open && self.agent.sub_agent(&call.name).is_some()
            })
        })
    }

    async fn begin_children(
        &mut self,
        lease: &mut LeaseKeeper,
        tasks: &[ChildTask],
    ) -> Result<Vec<Event>> {
        show_starts(self, tasks).await;
        let mut facts = Vec::with_capacity(tasks.len());
        for task in tasks {
            let Some(beginning) = beginning(self, task) else { continue };
            let mut beginning = Box::pin(begin(self, beginning));
            let (begun, change) = self.under_lease(lease, beginning.as_mut()).await??;
            facts.extend(change);
            fault::point("child.begun");
            facts.push(match begun {
                Ok(start) => Event::ChildStarted(Arc::new(start)),
                Err(error) => {
                    ToolFinish::without_run(task.call.clone(), child_start_failed(&error)).into()
                }
            });
        }
        Ok(facts)
    }
}

/// Shows that children begin, before they show something themselves.
async fn show_starts(driver: &mut Driver, tasks: &[ChildTask]) {
    let step = driver.journal.session().last_step();
    for task in tasks {
        let Some(beginning) = beginning(driver, task) else { continue };
        let ticket = driver.stream_writer.begin(step, Effect::Child { call: task.call.clone() });
        driver.stream_writer.show(Some(ticket), step, beginning.shown());
        driver.unsettled.push(ticket);
    }
    driver.stream_writer.flush().await;
}

fn beginning(driver: &Driver, task: &ChildTask) -> Option<ChildSpec> {
    ChildSpec::of_sub_agent(driver.journal.session(), &driver.agent, task)
}

/// Begins a child, if no hook keeps it from that. Tells what the caller's log has to say of it, or why
/// it was not begun, and what hooks changed of the state.
pub(crate) async fn begin(
    driver: &Driver,
    begin: ChildSpec,
) -> Result<(Result<ChildStart>, Option<Event>)> {
    let session = driver.journal.session();
    let point = HookPoint::Of("before_sub_agent", begin.start.call.clone());
    let place = driver.place(session.last_step());
    let cx = HookContext::new(&place, point, session.step_state());
    let begun = match driver.hooks.before_sub_agent(&cx, begin.view()).await {
        Ok(()) => execute(driver, begin).await,
        Err(reason) => Err(child_refused(&reason)),
    };
    if let Err(error) = &begun {
        if is_open(error) {
            return begun.map(|start| (Ok(start), None));
        }
        tracing::error!(session = %driver.live.session, %error, "subagent.dispatch_failed");
    }
    Ok((begun, changed(&cx, "before_sub_agent")))
}

/// Returns `true` if an error does not tell whether the child was started. The run stops over it: the next
/// one finds the child, or begins it.
fn is_open(error: &Error) -> bool {
    let code = error.code();
    matches!(code, ErrorCode::Closed | ErrorCode::StoreUnavailable | ErrorCode::StoreBusy)
}

async fn execute(driver: &Driver, begin: ChildSpec) -> Result<ChildStart> {
    driver.context.check_open()?;
    let ChildSpec { start, parent, agent, input, .. } = begin;
    let input = input?;
    // Boxed: a child's run may begin children of its own.
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

/// Everything that waiting for one child needs.
#[derive(Debug)]
pub struct ChildRun {
    runtime: Runtime,
    agent: AnyAgent,
    start: Arc<ChildStart>,
    above: HookChain,
    cancel: CancellationToken,
    /// When the run began that waits.
    since: Option<Timestamp>,
    /// Whether one that was interrupted is gone on with: by a run that began since, once.
    goes_on: bool,
    /// Whether the run that waits is to stop at its next step boundary.
    interrupted: bool,
    /// The interrupt that was cleared for the session that waits, and so for its children.
    cleared: Option<RequestId>,
}

impl ChildRun {
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
            goes_on: session.interrupt_request().is_none(),
            interrupted: session.interrupt_request().is_some(),
            cleared: session.cleared_interrupt().cloned(),
        })
    }

    /// The call that waits.
    fn call(&self) -> &CallId {
        &self.start.call
    }

    /// Waits until the child has ended, or has to wait itself, and tells that for the caller's log.
    /// What stopped without ending, or was interrupted before this run began, is gone on with first.
    ///
    /// # Errors
    /// If what became of it cannot be found out: the run has to stop.
    pub async fn drive(mut self) -> Result<Event> {
        let child = &self.start.session;
        let context = Arc::clone(self.runtime.context());
        for tried in 0..MAX_TRIES {
            match self.standing().await? {
                ChildStatus::Ended(result, used) => {
                    if tried == 0 {
                        // Its owner may have died before it could show the end.
                        context.show_end(child).await;
                    }
                    return Ok(self.ended(&result, used));
                }
                ChildStatus::Waits => return Ok(self.waits()),
                ChildStatus::Interrupted if !self.goes_on => return Ok(self.waits()),
                ChildStatus::Live => {
                    let handle = self.runtime.handle(child).await?;
                    if self.runtime.live(child).is_some() {
                        self.follow(&handle).await?;
                    } else {
                        // Its owner may be dead, and its lease outlive that of the caller's.
                        tokio::select! {
                            biased;
                            followed = self.follow(&handle) => followed?,
                            abandoned = self.abandoned() => abandoned?,
                        }
                    }
                }
                ChildStatus::Ready if self.is_carried_out().await? => {
                    self.follow(&self.runtime.handle(child).await?).await?;
                }
                ChildStatus::Ready | ChildStatus::Interrupted => {
                    let (agent, options) = (Arc::clone(&self.agent), ResumeOptions::default());
                    let (above, cleared) = (&self.above, self.cleared.clone());
                    let by = StartedBy::Parent { cleared };
                    let resume =
                        start::resume_if_first(&self.runtime, agent, child, options, above, &by);
                    match Box::pin(resume).await? {
                        Some(handle) => self.follow(&handle).await?,
                        None => context.clock.sleep(AGAIN).await,
                    }
                }
            }
            self.goes_on = false;
        }
        Err(Error::new(ErrorCode::StoreBusy, "others go on with the child without pause")
            .with_context("session", child))
    }

    /// Whether the engine goes on with it by itself, though nobody has a lease on it.
    async fn is_carried_out(&self) -> Result<bool> {
        let head = self.runtime.head(&self.start.session).await?;
        Ok(!head.is_leased() && self.runtime.goes_on(&head).await?)
    }

    /// The child's standing, as far as the run that waits may change it.
    async fn standing(&self) -> Result<ChildStatus> {
        let logs = self.runtime.context().logs();
        let (child, standing) = overview_and_standing(logs, &self.start.session).await?;
        Ok(match standing {
            // The run that waits is to stop, so nothing is started for it. A run of the child's that stopped
            // without ending is taken over all the same: it honours its requests itself.
            ChildStatus::Ready if self.interrupted && child.current_run().is_none() => {
                ChildStatus::Waits
            }
            ChildStatus::Interrupted if self.has_cleared(&child) => ChildStatus::Ready,
            // An interrupt that came after the run that waits had started is not for that run to undo.
            ChildStatus::Interrupted if child.last_run().and_then(|run| run.ended) > self.since => {
                ChildStatus::Waits
            }
            standing => standing,
        })
    }

    /// Returns `true` if the child was stopped by the interrupt that was cleared for the session that waits.
    fn has_cleared(&self, child: &SessionOverview) -> bool {
        !self.interrupted
            && self.cleared.is_some()
            && child.honoured_interrupt() == self.cleared.as_ref()
    }

    /// What there is to tell of it now; none if it goes on.
    pub(crate) async fn found(&self) -> Result<Option<Event>> {
        Ok(match self.standing().await? {
            ChildStatus::Ended(result, used) => Some(self.ended(&result, used)),
            ChildStatus::Waits | ChildStatus::Interrupted => Some(self.waits()),
            ChildStatus::Live | ChildStatus::Ready => None,
        })
    }

    /// Returns once the child has ended or has to wait itself. Starts nothing: a child that stopped in between
    /// is for [`drive`](Self::drive) to continue.
    pub(crate) async fn rests(&self) {
        while !matches!(self.found().await, Ok(Some(_))) {
            if let Ok(handle) = self.runtime.handle(&self.start.session).await {
                drop(handle.result().await);
            }
            self.runtime.context().clock.sleep(AGAIN).await;
        }
    }

    /// Waits until nobody has a lease on the child.
    async fn abandoned(&self) -> Result<()> {
        loop {
            let head = self.runtime.head(&self.start.session).await?;
            let Some(until) = head.lease_until.filter(|_| head.is_leased()) else { return Ok(()) };
            self.runtime.context().clock.sleep(until.since(head.read_at) + AGAIN).await;
        }
    }

    /// Waits for a run of the child; if the parent is aborted, so is the child.
    async fn follow(&self, handle: &RunHandle) -> Result<()> {
        let result = tokio::select! {
            biased;
            result = handle.result() => result,
            () = self.cancel.cancelled() => {
                match self.runtime.ask(&self.start.session, RequestKind::Abort, None).await {
                    Ok(()) => {}
                    Err(error) if is_benign_race(&error) => {}
                    Err(error) => {
                        let session = &self.start.session;
                        tracing::warn!(%session, %error, "a request was not passed down");
                    }
                }
                handle.result().await
            }
        };
        match result {
            Ok(_) => Ok(()),
            // Somebody else goes on with it.
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
