//! One run, part by part, as a workflow: what is scheduled here follows from what came of earlier parts, and from nothing else.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use helix_agents_core::id::CallId;
use helix_agents_runtime::{ChildRef, Next, RunRef, WorkItem};
use temporalio_common::RetryPolicy;
use temporalio_sdk::workflows::join_all;
use temporalio_sdk::{
    ActivityCancellationType, ActivityOptions, ChildWorkflowOptions, ContinueAsNewOptions,
    ParentClosePolicy, WorkflowCancellationToken, WorkflowContext, WorkflowIdReusePolicy,
    WorkflowResult, WorkflowTermination,
};

use crate::activities::{Activities, CallInput, FollowInput};
use crate::failure::{self, Stopped};
use crate::names::{self, Names};
use crate::workflow::{AgentRun, Left, PerformInput, Performed, RunInput, RunLimits, RunOutput};

#[cfg(test)]
mod tests;

/// How long a part may take at most. What it does has limits of its own, and heartbeats find workers that died.
const LONGEST_PART: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long giving up may take: without it others have to wait for the lease.
const GIVING_UP: Duration = Duration::from_secs(30);

/// Between two tries of a part.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

type Context = WorkflowContext<AgentRun>;

/// Carries a run out.
pub(crate) async fn drive(cx: &Context, input: RunInput) -> WorkflowResult<RunOutput> {
    let run = Site::new(cx, input);
    match run.go().await {
        Ok(Ended::Over(output)) => Ok(output),
        Ok(Ended::Continued(input)) => {
            cx.continue_as_new(*input, ContinueAsNewOptions::default())?;
            Err(WorkflowTermination::cancelled())
        }
        Err(stopped) => {
            run.give_up().await;
            Err(match stopped {
                Stopped::Cancelled => WorkflowTermination::cancelled(),
                Stopped::Failed { code, message } => failure::of_workflow(code, message).into(),
            })
        }
    }
}

/// How a history ends that nothing stopped.
enum Ended {
    Over(RunOutput),
    Continued(Box<RunInput>),
}

/// Where one workflow is.
struct Site<'a> {
    cx: &'a Context,
    input: RunInput,
    names: RefCell<Names>,
    /// How many parts it had performed.
    performed: Cell<u32>,
}

impl<'a> Site<'a> {
    fn new(cx: &'a Context, input: RunInput) -> Self {
        let step = input.left.as_ref().map_or(0, |left| left.step);
        Self { cx, input, names: RefCell::new(Names::from_step(step)), performed: Cell::new(0) }
    }

    /// Whether somebody may have begun what comes after so many parts: one that the server has forgotten.
    fn in_doubt(&self, performed: u32) -> bool {
        self.input.recovered && self.performed.get() <= performed
    }

    async fn go(&self) -> Result<Ended, Stopped> {
        let left = self.input.left.as_ref();
        let mut next = left.map_or(Next::WorkItem(WorkItem::Open), |left| left.next.clone());
        let mut status = None;
        let before = left.map_or(0, |left| left.context);
        let mut context: u64 = 0;
        loop {
            if matches!(next, Next::Over) {
                let status = status.unwrap_or_else(|| "unknown".to_owned());
                return Ok(Ended::Over(RunOutput { status, context: before + context }));
            }
            let full = context >= u64::from(self.input.terms.parts_per_history);
            if context > 0 && (full || self.cx.continue_as_new_suggested()) {
                let step = self.names.borrow().step;
                let left = Some(Left { next, step, context: before + context });
                return Ok(Ended::Continued(Box::new(RunInput {
                    left,
                    recovered: self.in_doubt(1),
                    ..self.input.clone()
                })));
            }
            let part = match next {
                Next::Over => continue,
                Next::WorkItem(part) => part,
                Next::Calls { calls, at_once, children, then } => {
                    context += (calls.len() + children.len()) as u64;
                    self.side_by_side(calls, at_once, children).await?;
                    then
                }
            };
            let performed = self.perform(part).await?;
            context += 1;
            self.start(performed.children).await;
            next = performed.next;
            status = performed.status;
        }
    }

    async fn perform(&self, part: WorkItem) -> Result<Performed, Stopped> {
        let (id, is_first) = self.names.borrow_mut().part(&part);
        // A call is begun once; whether another part is done once more, it finds out by itself.
        let is_first = (is_first || !matches!(part, WorkItem::Call(_))) && !self.in_doubt(0);
        self.performed.set(self.performed.get().saturating_add(1));
        let input = PerformInput { of: self.input.of.clone(), part, is_first };
        let options = self.options(id, LONGEST_PART, None);
        let done = self.cx.execute_activity(Activities::perform, input, options).await;
        done.map_err(|error| failure::stopped(&error))
    }

    /// Calls and children, all of them to their end. As many calls at once as may be, and every child: while it is waited
    /// for, nobody may ask it to stop but whoever waits.
    async fn side_by_side(
        &self,
        calls: Vec<CallId>,
        at_once: usize,
        children: Vec<ChildRef>,
    ) -> Result<(), Stopped> {
        let lanes = at_once.clamp(1, calls.len().max(1));
        let waiting = RefCell::new(VecDeque::from(calls));
        // Each lane takes the next call when its last one is done, so the first call that is done makes room for another.
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
        let input = CallInput { of: self.input.of.clone(), call };
        let options = self.options(id, LONGEST_PART, None);
        let done = self.cx.execute_activity(Activities::call, input, options).await;
        done.map_err(|error| failure::stopped(&error))
    }

    async fn follow(&self, call: CallId) -> Result<(), Stopped> {
        let id = self.names.borrow_mut().follow(&call);
        let limit_ms = self.input.terms.follow_ms;
        let input = FollowInput { of: self.input.of.clone(), call, limit_ms };
        let options = self.options(id, LONGEST_PART, None);
        let done = self.cx.execute_activity(Activities::follow, input, options).await;
        done.map_err(|error| failure::stopped(&error))
    }

    /// Starts the workflows of children whose runs began in a part. They outlive this one: their logs say what becomes of
    /// them. One that was started already is what was wanted; one that could not be is found by a sweep.
    async fn start(&self, children: Vec<RunRef>) {
        let RunInput { terms, prefix, .. } = &self.input;
        let starts = children.into_iter().map(|of| {
            let options = ChildWorkflowOptions::builder()
                .workflow_id(of.workflow_id(prefix))
                .static_summary(names::summary(&of))
                .parent_close_policy(ParentClosePolicy::Abandon)
                .id_reuse_policy(WorkflowIdReusePolicy::AllowDuplicate)
                .cancellation_token(WorkflowCancellationToken::new())
                .maybe_execution_timeout(terms.execution())
                .build();
            let prefix = prefix.clone();
            let input = RunInput { of, terms: *terms, prefix, recovered: false, left: None };
            self.cx.start_child_workflow(AgentRun::run, input, options)
        });
        drop(join_all(starts).await);
    }

    /// Lets others go on at once. That the workflow was cancelled does not keep it from that.
    async fn give_up(&self) {
        let detached = Some(WorkflowCancellationToken::new());
        let options = self.options("give-up".to_owned(), GIVING_UP, detached);
        let of = self.input.of.clone();
        // If it fails, others wait for the lease.
        drop(self.cx.execute_activity(Activities::give_up, of, options).await);
    }

    fn options(
        &self,
        id: String,
        limit: Duration,
        token: Option<WorkflowCancellationToken>,
    ) -> ActivityOptions {
        let RunLimits { attempts, .. } = self.input.terms;
        let retry = RetryPolicy::builder()
            .initial_interval(FIRST_WAIT)
            .backoff_coefficient(2.0)
            .maximum_interval(LONGEST_WAIT)
            .maximum_attempts(attempts)
            .build();
        ActivityOptions::with_start_to_close_timeout(limit)
            .heartbeat_timeout(self.input.terms.heartbeat())
            // What a cancelled part was at is over before others go on.
            .cancellation_type(ActivityCancellationType::WaitCancellationCompleted)
            .summary(id.clone())
            .activity_id(id)
            .retry_policy(retry)
            .maybe_cancellation_token(token)
            .build()
    }
}
