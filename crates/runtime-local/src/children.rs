//! Sub-agents, as effects: begun in sessions of their own, and waited for.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::AnyAgent;
use helix_agents_core::budget::Budget;
use helix_agents_core::error::{Error, ErrorCode, ErrorKind, ErrorRecord, Result};
use helix_agents_core::event::{ChildStart, Event, ParentRef, ToolFinish, ToolOutcome};
use helix_agents_core::executor::{AgentExecutor as _, AgentResult, ResumeOptions, RunHandle};
use helix_agents_core::fault;
use helix_agents_core::hooks::{HookContext, HookPoint, SubAgentView};
use helix_agents_core::id::SessionId;
use helix_agents_core::json::Json;
use helix_agents_core::message::ToolCall;
use helix_agents_core::session::{RequestKind, RunStatus, pass_down};
use helix_agents_core::step::ChildTask;
use helix_agents_core::stream::{ChunkKind, Effect};
use helix_agents_core::usage::UsageRollup;
use tokio_util::sync::CancellationToken;

use crate::companions;
use crate::driver::Driver;
use crate::family::{Standing, standing};
use crate::hooks::{Hooks, changed};
use crate::lease::LeaseKeeper;
use crate::runtime::LocalRuntime;
use crate::start::{self, Child};

/// How long to wait before looking again at a child that somebody else is about to carry out.
const AGAIN: Duration = Duration::from_millis(50);

/// How often a child is looked at that others go on with and that does not get on.
const MAX_TRIES: u32 = 64;

/// Begins the sessions of children and records that. One that cannot be begun is a failed call; its
/// siblings are begun all the same.
pub(crate) async fn start(
    driver: &mut Driver,
    lease: &mut LeaseKeeper,
    tasks: &[ChildTask],
) -> Result<()> {
    show_starts(driver, tasks).await;
    let mut facts = Vec::with_capacity(tasks.len());
    for task in tasks {
        let Some((call, agent)) = found(driver, task) else { continue };
        let input = call.arguments.as_json().cloned().unwrap_or_else(Json::empty_object);
        let view = SubAgentView {
            call: &call.id,
            agent: agent.name(),
            session: &task.session,
            input: &input,
        };
        let session = driver.journal.session();
        let point = HookPoint::Of("before_sub_agent", call.id.clone());
        let place = driver.place(session.last_step());
        let cx = HookContext::new(&place, point, session.step_state());
        let begun = match driver.hooks.before_sub_agent(&cx, view).await {
            Ok(()) => begin(driver, &call, Arc::clone(&agent), task, &input).await,
            Err(reason) => {
                let message = format!("not begun: {reason}");
                Err(Error::new(ErrorCode::ToolRefused, message))
            }
        };
        facts.extend(changed(&cx, "before_sub_agent"));
        fault::point("child.begun");
        match begun {
            Ok(allowance) => facts.push(Event::ChildStarted(Arc::new(ChildStart {
                call: call.id.clone(),
                session: task.session.clone(),
                agent: Arc::clone(agent.name()),
                companion: None,
                allowance,
            }))),
            Err(error) if error.code() == ErrorCode::Closed => return Err(error),
            Err(error) => {
                tracing::error!(
                    session = %driver.live.session, child = %task.session, %error,
                    "subagent.dispatch_failed"
                );
                facts.push(dispatch_failed(&call, &error).into());
            }
        }
    }
    driver.record(lease, facts, &[]).await?;
    // A request that came in before the children stood in the log did not reach them.
    let session = driver.journal.session();
    let asked = match (session.abort_request(), session.interrupt_request()) {
        (Some(request), _) => Some((RequestKind::Abort, request.reason.clone())),
        (None, Some(request)) => Some((RequestKind::Interrupt, request.reason.clone())),
        (None, None) => None,
    };
    if let Some((kind, reason)) = asked {
        for task in tasks {
            pass_down(driver.parts.outside(), &task.session, kind, reason.clone()).await;
        }
        driver.parts.runs.nudge();
    }
    Ok(())
}

/// Shows that children begin, before they show something themselves.
async fn show_starts(driver: &mut Driver, tasks: &[ChildTask]) {
    let step = driver.journal.session().last_step();
    for task in tasks {
        let Some((call, agent)) = found(driver, task) else { continue };
        let ticket = driver.feed.begin(step, Effect::Child { call: call.id.clone() });
        let (subagent, child) = (Arc::clone(agent.name()), task.session.clone());
        let start = ChunkKind::SubagentStart { call: call.id, subagent, child };
        driver.feed.show(Some(ticket), step, start);
        driver.unsettled.push(ticket);
    }
    driver.feed.flush().await;
}

async fn begin(
    driver: &Driver,
    call: &ToolCall,
    agent: AnyAgent,
    task: &ChildTask,
    input: &Json,
) -> Result<Option<Budget>> {
    driver.runtime.check_open()?;
    let session = driver.journal.session();
    let child = driver.agent.sub_agent(&call.name);
    let input = child.map(|child| child.input_of(input)).transpose()?.unwrap_or_default();
    let parent = ParentRef {
        session: session.id().clone(),
        call: call.id.clone(),
        root: session.root().clone(),
        notify: false,
    };
    // Boxed: a child's run may begin children of its own.
    let child = Child { session: task.session.clone(), parent, allowance: task.allowance };
    Box::pin(start::execute_child(&driver.runtime, agent, &input, child, &driver.hooks)).await
}

fn found(driver: &Driver, task: &ChildTask) -> Option<(ToolCall, AnyAgent)> {
    let call = driver.journal.session().open_step()?.tool_call(&task.call)?.clone();
    let agent = Arc::clone(driver.agent.sub_agent(&call.name)?.agent());
    Some((call, agent))
}

fn dispatch_failed(call: &ToolCall, error: &Error) -> ToolFinish {
    let code = match error.code() {
        ErrorCode::ToolRefused => ErrorCode::ToolRefused,
        _ => ErrorCode::SubAgentDispatchFailed,
    };
    let message = match code {
        ErrorCode::ToolRefused => error.message().to_owned(),
        _ => format!("the sub-agent could not be begun: {}", error.message()),
    };
    ToolFinish::without_run(call.id.clone(), ToolOutcome::Error(ErrorRecord::new(code, message)))
}

/// Everything that waiting for one child needs.
pub(crate) struct ChildRun {
    runtime: LocalRuntime,
    agent: AnyAgent,
    call: ToolCall,
    start: Arc<ChildStart>,
    session: SessionId,
    above: Hooks,
    cancel: CancellationToken,
}

/// What came of waiting for a child.
#[derive(Debug)]
pub(crate) struct ChildEnd {
    pub(crate) call: ToolCall,
    pub(crate) session: SessionId,
    pub(crate) agent: Arc<str>,
    /// The call's result; none if the child waits itself.
    pub(crate) finish: Option<Arc<ToolFinish>>,
}

impl ChildEnd {
    /// The fact of it.
    pub(crate) fn fact(&self) -> Event {
        match &self.finish {
            Some(finish) => Event::ToolFinished(Arc::clone(finish)),
            None => Event::ChildWaiting { call: self.call.id.clone() },
        }
    }
}

impl ChildRun {
    pub(crate) fn new(
        driver: &Driver,
        task: &ChildTask,
        cancel: &CancellationToken,
    ) -> Option<Self> {
        let step = driver.journal.session().open_step()?;
        let call = step.tool_call(&task.call)?.clone();
        let start = Arc::clone(&step.call(&task.call)?.child.as_ref()?.start);
        let agent = Arc::clone(driver.agent.agent_of_child(&start.agent)?);
        Some(Self {
            runtime: driver.runtime.clone(),
            agent,
            call,
            start,
            session: task.session.clone(),
            above: driver.hooks.clone(),
            cancel: cancel.clone(),
        })
    }

    /// Waits until the child has ended, or has to wait itself. What stopped without ending, or was
    /// interrupted before this run began, is gone on with first.
    pub(crate) async fn carry_out(self) -> Result<ChildEnd> {
        let mut first = true;
        for _ in 0..MAX_TRIES {
            match standing(self.runtime.parts(), &self.session).await? {
                Standing::Ended(result, used) => {
                    if first {
                        // Its owner may have died before it could show the end.
                        self.runtime.parts().align_ended(&self.session).await?;
                    }
                    return Ok(self.ended(&result, used));
                }
                Standing::Waits => return Ok(self.waits()),
                Standing::Interrupted if !first => return Ok(self.waits()),
                Standing::Live => {
                    let handle = self.runtime.handle(&self.session).await?;
                    if self.runtime.live(&self.session).is_some() {
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
                Standing::Ready | Standing::Interrupted => {
                    let options = ResumeOptions::default();
                    let agent = Arc::clone(&self.agent);
                    let resume =
                        start::resume(&self.runtime, agent, &self.session, options, &self.above);
                    match Box::pin(resume).await {
                        Ok(handle) => self.follow(&handle).await?,
                        Err(error) if error.kind() == ErrorKind::Conflict => {
                            self.runtime.parts().clock.sleep(AGAIN).await;
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            first = false;
        }
        Err(Error::new(ErrorCode::StoreBusy, "others go on with the child without pause")
            .with_context("session", &self.session))
    }

    /// Waits until nobody has a lease on the child.
    async fn abandoned(&self) -> Result<()> {
        loop {
            let head = self.runtime.head(&self.session).await?;
            let Some(until) = head.lease_until.filter(|_| head.is_leased()) else { return Ok(()) };
            self.runtime.parts().clock.sleep(until.since(head.read_at) + AGAIN).await;
        }
    }

    /// Waits for a run of the child; if the parent is aborted, so is the child.
    async fn follow(&self, handle: &RunHandle) -> Result<()> {
        let result = tokio::select! {
            biased;
            result = handle.result() => result,
            () = self.cancel.cancelled() => {
                let parts = self.runtime.parts();
                pass_down(parts.outside(), &self.session, RequestKind::Abort, None).await;
                parts.runs.nudge();
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

    fn waits(self) -> ChildEnd {
        let agent = Arc::clone(self.agent.name());
        ChildEnd { call: self.call, session: self.session, agent, finish: None }
    }

    fn ended(self, result: &AgentResult, used: Arc<UsageRollup>) -> ChildEnd {
        let outcome = match &self.start.companion {
            Some(_) => companions::result_of(&self.start, result),
            None => outcome_of(result),
        };
        let mut finish = ToolFinish::without_run(self.call.id.clone(), outcome);
        finish.child = Some(used);
        let agent = Arc::clone(self.agent.name());
        ChildEnd { call: self.call, session: self.session, agent, finish: Some(Arc::new(finish)) }
    }
}

/// What the turn of a child that ends with its call is to its caller.
fn outcome_of(result: &AgentResult) -> ToolOutcome {
    let message = match (result.status, &result.output, &result.error) {
        (RunStatus::Completed, Some(output), _) => return ToolOutcome::Success(output.clone()),
        (RunStatus::Completed, None, _) => "the sub-agent gave no output".to_owned(),
        (_, _, Some(error)) => format!("the sub-agent failed: {}", error.message),
        (status, _, None) => format!("the sub-agent is {}", status.as_str()),
    };
    ToolOutcome::Error(ErrorRecord::new(ErrorCode::SubAgentFailed, message))
}
