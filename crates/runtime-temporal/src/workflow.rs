//! The workflow, which executes the work items of a run. The commands that it issues depend only on the results of
//! earlier items.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use helix_agents_core::id::CallId;
use helix_agents_runtime::{ChildRef, NextWork, RunRef, WorkItem};
use temporalio_common::RetryPolicy;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_sdk::workflows::join_all;
use temporalio_sdk::{
    ActivityCancellationType, ActivityOptions, ChildWorkflowOptions, ContinueAsNewOptions,
    ParentClosePolicy, WorkflowCancellationToken, WorkflowContext, WorkflowIdReusePolicy,
    WorkflowResult, WorkflowTermination,
};

use crate::activities::Activities;
use crate::failure::{self, Stopped};
use crate::names::{self, Names};
use crate::payloads::{
    CallInput, Continuation, FollowInput, PerformInput, PerformOutput, RunInput, RunLimits,
    RunOutput,
};

#[cfg(test)]
mod tests;

/// The maximum duration of a work item. Its effects have timeouts of their own, and heartbeats detect crashed workers.
const LONGEST_ITEM: Duration = Duration::from_secs(7 * 24 * 3600);

/// The timeout for releasing the run. If the release fails, other processes have to wait until the lease has expired.
const GIVE_UP_LIMIT: Duration = Duration::from_secs(30);

/// The initial wait between two attempts of a work item.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The maximum wait between two attempts of a work item.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

type Context = WorkflowContext<AgentRun>;

/// The workflow of a run.
#[workflow]
#[derive(Debug, Default)]
pub(crate) struct AgentRun;

#[workflow_methods]
impl AgentRun {
    /// Executes the run, one work item at a time.
    #[run(name = "helix-agent-run")]
    pub(crate) async fn run(
        cx: &mut WorkflowContext<Self>,
        input: RunInput,
    ) -> WorkflowResult<RunOutput> {
        drive(cx, input).await
    }
}

/// Executes a run.
async fn drive(cx: &Context, input: RunInput) -> WorkflowResult<RunOutput> {
    let run = RunExecution::new(cx, input);
    match run.run_items().await {
        Ok(Ended::Over(output)) => Ok(output),
        Ok(Ended::Continued(input)) => {
            cx.continue_as_new(*input, ContinueAsNewOptions::default())?;
            Err(WorkflowTermination::cancelled())
        }
        Err(stopped) => {
            run.release_run().await;
            Err(match stopped {
                Stopped::Cancelled => WorkflowTermination::cancelled(),
                Stopped::Failed { code, message } => {
                    failure::workflow_failure(code, message).into()
                }
            })
        }
    }
}

/// The regular end of a history.
enum Ended {
    Over(RunOutput),
    Continued(Box<RunInput>),
}

/// The execution of one workflow.
struct RunExecution<'a> {
    cx: &'a Context,
    input: RunInput,
    names: RefCell<Names>,
    /// The number of work items performed by this execution.
    performed: Cell<u32>,
}

impl<'a> RunExecution<'a> {
    fn new(cx: &'a Context, input: RunInput) -> Self {
        let step = input.continued_from.as_ref().map_or(0, |previous| previous.step);
        Self { cx, input, names: RefCell::new(Names::from_step(step)), performed: Cell::new(0) }
    }

    /// Returns `true` if the run was recovered and this execution has performed at most this many items. An earlier
    /// workflow, which the server no longer knows, may then have started the next item.
    fn in_doubt(&self, performed: u32) -> bool {
        self.input.recovered && self.performed.get() <= performed
    }

    async fn run_items(&self) -> Result<Ended, Stopped> {
        let previous = self.input.continued_from.as_ref();
        let mut next =
            previous.map_or(NextWork::WorkItem(WorkItem::Open), |previous| previous.next.clone());
        let mut status = None;
        let before = previous.map_or(0, |previous| previous.work_items);
        let mut work_items: u64 = 0;
        loop {
            if matches!(next, NextWork::Done) {
                let status = status.unwrap_or_else(|| "unknown".to_owned());
                return Ok(Ended::Over(RunOutput { status, work_items: before + work_items }));
            }
            let full = work_items >= u64::from(self.input.limits.work_items_per_history);
            if work_items > 0 && (full || self.cx.continue_as_new_suggested()) {
                let step = self.names.borrow().step;
                let continued_from =
                    Some(Continuation { next, step, work_items: before + work_items });
                return Ok(Ended::Continued(Box::new(RunInput {
                    continued_from,
                    recovered: self.in_doubt(1),
                    ..self.input.clone()
                })));
            }
            let item = match next {
                NextWork::Done => continue,
                NextWork::WorkItem(item) => item,
                NextWork::Calls { calls, at_once, children, then } => {
                    work_items += (calls.len() + children.len()) as u64;
                    self.run_calls(calls, at_once, children).await?;
                    then
                }
            };
            let performed = self.perform(item).await?;
            work_items += 1;
            self.start(performed.children).await;
            next = performed.next;
            status = performed.status;
        }
    }

    async fn perform(&self, item: WorkItem) -> Result<PerformOutput, Stopped> {
        let (id, is_first) = self.names.borrow_mut().item(&item);
        // A call that is scheduled again counts as a retry. Other items find their effects in the log.
        let is_first = (is_first || !matches!(item, WorkItem::Call(_))) && !self.in_doubt(0);
        self.performed.set(self.performed.get().saturating_add(1));
        let input = PerformInput { run_ref: self.input.run_ref.clone(), item, is_first };
        let options = self.options(id, LONGEST_ITEM, None);
        let done = self.cx.execute_activity(Activities::perform, input, options).await;
        done.map_err(|error| failure::stopped(&error))
    }

    /// Executes calls and waits for children, all to completion. Calls have a concurrency limit; all children are
    /// followed at once, because only the activity that follows a child passes an abort on to it.
    async fn run_calls(
        &self,
        calls: Vec<CallId>,
        at_once: usize,
        children: Vec<ChildRef>,
    ) -> Result<(), Stopped> {
        let lanes = at_once.clamp(1, calls.len().max(1));
        let waiting = RefCell::new(VecDeque::from(calls));
        // Each lane takes the next call when its current one is done.
        let lane = || async {
            loop {
                let next = waiting.borrow_mut().pop_front();
                let Some(call) = next else { return Ok(()) };
                self.call(call).await?;
            }
        };
        let calls = join_all((0..lanes).map(|_| lane()));
        let children = join_all(children.into_iter().map(|child| self.follow(child.call)));
        let (calls, children) = temporalio_sdk::workflows::join!(calls, children);
        calls.into_iter().chain(children).collect()
    }

    async fn call(&self, call: CallId) -> Result<(), Stopped> {
        let (id, _) = self.names.borrow_mut().call(&call);
        let input = CallInput { run_ref: self.input.run_ref.clone(), call };
        let options = self.options(id, LONGEST_ITEM, None);
        let done = self.cx.execute_activity(Activities::call, input, options).await;
        done.map_err(|error| failure::stopped(&error))
    }

    async fn follow(&self, call: CallId) -> Result<(), Stopped> {
        let id = self.names.borrow_mut().follow(&call);
        let limit_ms = self.input.limits.follow_ms;
        let input = FollowInput { run_ref: self.input.run_ref.clone(), call, limit_ms };
        let options = self.options(id, LONGEST_ITEM, None);
        let done = self.cx.execute_activity(Activities::follow, input, options).await;
        done.map_err(|error| failure::stopped(&error))
    }

    /// Starts the workflows of child runs that a work item started. They may outlive this workflow. It is not an error
    /// if a workflow was already started. If a workflow cannot be started, a sweep finds its run.
    async fn start(&self, children: Vec<RunRef>) {
        let RunInput { limits, prefix, .. } = &self.input;
        let starts = children.into_iter().map(|run_ref| {
            let options = ChildWorkflowOptions::builder()
                .workflow_id(run_ref.workflow_id(prefix))
                .static_summary(names::summary(&run_ref))
                .parent_close_policy(ParentClosePolicy::Abandon)
                .id_reuse_policy(WorkflowIdReusePolicy::AllowDuplicate)
                .cancellation_token(WorkflowCancellationToken::new())
                .maybe_execution_timeout(limits.execution())
                .build();
            let prefix = prefix.clone();
            let input = RunInput {
                run_ref,
                limits: *limits,
                prefix,
                recovered: false,
                continued_from: None,
            };
            self.cx.start_child_workflow(AgentRun::run, input, options)
        });
        drop(join_all(starts).await);
    }

    /// Releases the run, so that another process can take over immediately. This also runs if the workflow was
    /// cancelled.
    async fn release_run(&self) {
        let detached = Some(WorkflowCancellationToken::new());
        let options = self.options("give-up".to_owned(), GIVE_UP_LIMIT, detached);
        let run_ref = self.input.run_ref.clone();
        // If this fails, other processes wait until the lease has expired.
        drop(self.cx.execute_activity(Activities::release_run, run_ref, options).await);
    }

    fn options(
        &self,
        id: String,
        limit: Duration,
        token: Option<WorkflowCancellationToken>,
    ) -> ActivityOptions {
        let RunLimits { attempts, .. } = self.input.limits;
        let retry = RetryPolicy::builder()
            .initial_interval(FIRST_WAIT)
            .backoff_coefficient(2.0)
            .maximum_interval(LONGEST_WAIT)
            .maximum_attempts(attempts)
            .build();
        ActivityOptions::with_start_to_close_timeout(limit)
            .heartbeat_timeout(self.input.limits.heartbeat())
            // The work of a cancelled item ends before another process can take over.
            .cancellation_type(ActivityCancellationType::WaitCancellationCompleted)
            .summary(id.clone())
            .activity_id(id)
            .retry_policy(retry)
            .maybe_cancellation_token(token)
            .build()
    }
}
