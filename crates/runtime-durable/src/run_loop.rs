//! Executes the work items of a run, each as a step of its workflow.
//!
//! DBOS identifies a step by its position among all steps that the body builds, and checks its name. The steps built
//! here and their order may therefore depend only on the results of earlier steps. A change of the steps or of their
//! order requires a new version of the body (`workflow::BODY`).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use dbos::{PendingStep, StepOptions};
use futures_util::future::{join, join_all};
use futures_util::{StreamExt as _, stream};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::CallId;
use helix_agents_runtime::{ChildRef, NextWork, RunRef, Runtime, WorkItem};
use tokio::sync::SemaphorePermit;

use crate::failure::{Failure, Stopped};
use crate::limiter::ConcurrencyLimiter;
use crate::name;

/// The maximum number of attempts for a work item that fails with a retryable error.
const MAX_ATTEMPTS: u32 = 6;

/// The wait before the first retry. It doubles with each further retry.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The maximum of each of the two waits before a retry: the one that the error requests, and then DBOS's own, which
/// doubles.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// The maximum time that one step waits for a child before another step continues the wait. A completed step shows
/// that the workflow is alive.
const FOLLOW_LIMIT: Duration = Duration::from_secs(10 * 60);

/// One execution of a run's workflow.
#[derive(Debug)]
pub(crate) struct RunExecution<'a> {
    runtime: &'a Runtime,
    run_ref: &'a RunRef,
    workflow: &'a str,
    /// The limit on concurrent runs. `None` if the run needs no permits.
    limiter: Option<&'a ConcurrencyLimiter>,
    /// `true` if no earlier execution can have started the next step: this is the first execution, or it has completed
    /// a step itself. While a later execution replays recorded steps, this is `false`.
    is_first: AtomicBool,
}

impl<'a> RunExecution<'a> {
    /// Creates the execution. `is_new` is `true` if there was no earlier execution.
    pub(crate) fn new(
        runtime: &'a Runtime,
        run_ref: &'a RunRef,
        workflow: &'a str,
        limiter: Option<&'a ConcurrencyLimiter>,
        is_new: bool,
    ) -> Self {
        Self { runtime, run_ref, workflow, limiter, is_first: AtomicBool::new(is_new) }
    }

    /// Executes the run from its start to its end.
    ///
    /// # Errors
    /// Returns the reason if the run stopped before its end.
    pub(crate) async fn drive(&self) -> Result<(), Stopped> {
        let mut item = WorkItem::Open;
        loop {
            item = match self.item(&item).await? {
                NextWork::Done => return Ok(()),
                NextWork::WorkItem(item) => item,
                NextWork::Calls { calls, at_once, children, then } => {
                    self.run_calls(&calls, at_once, &children).await?;
                    then
                }
            };
        }
    }

    async fn item(&self, item: &WorkItem) -> Result<NextWork, Stopped> {
        // A companion call may wait for another run, which needs a permit as well.
        let _permit = match item {
            WorkItem::Companions => None,
            _ => self.permit().await,
        };
        let is_long = matches!(item, WorkItem::Model(_) | WorkItem::Companions | WorkItem::Call(_));
        let is_first = self.first_try();
        let step = dbos::step_with(&name::step(item), options(is_long), || {
            self.run_step(self.runtime.perform(self.run_ref, item, is_first()))
        });
        step.await
    }

    async fn permit(&self) -> Option<SemaphorePermit<'a>> {
        match self.limiter {
            Some(limiter) => limiter.wait(self.runtime, self.run_ref).await,
            None => None,
        }
    }

    /// Executes calls with a concurrency limit, and waits for children concurrently.
    async fn run_calls(
        &self,
        calls: &[CallId],
        at_once: usize,
        children: &[ChildRef],
    ) -> Result<(), Stopped> {
        let at_once = at_once.max(1);
        // Calls start in order. A crashed execution had therefore started at most the first `at_once` calls whose DBOS
        // step has no result.
        let previously_started = if self.is_first.load(Ordering::Relaxed) { 0 } else { at_once };
        let previously_started = &AtomicUsize::new(previously_started);
        // All steps are built before any starts, because the build order determines their positions.
        let calls: Vec<_> = calls.iter().map(|call| self.call(call, previously_started)).collect();
        let children: Vec<_> = children.iter().map(|child| self.follow(&child.call)).collect();
        let calls = async {
            if calls.is_empty() {
                return Vec::new();
            }
            let _permit = self.permit().await;
            stream::iter(calls).buffer_unordered(at_once).collect().await
        };
        let (calls, children) = join(calls, join_all(children)).await;
        calls.into_iter().chain(children).collect()
    }

    /// Builds the step of a call. `previously_started` counts down the calls that an earlier execution may have
    /// started.
    fn call<'s>(
        &'s self,
        call: &'s CallId,
        previously_started: &'s AtomicUsize,
    ) -> PendingStep<'s, (), Failure> {
        let is_tried_here = AtomicBool::new(false);
        dbos::step_with(&name::call(call), options(true), move || {
            let one_less = |count: usize| count.checked_sub(1);
            let is_again = is_tried_here.swap(true, Ordering::Relaxed)
                || previously_started
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
                    .is_ok();
            self.run_step(async move {
                match is_again {
                    true => self.runtime.retry_call(self.run_ref, call).await,
                    false => self.runtime.perform_call(self.run_ref, call).await,
                }
            })
        })
    }

    fn follow(&'a self, call: &'a CallId) -> PendingStep<'a, (), Failure> {
        dbos::step_with(&format!("follow/{call}"), options(true), move || {
            self.run_step(self.runtime.follow_child(self.run_ref, call, FOLLOW_LIMIT))
        })
    }

    /// Returns a function whose first call returns `true` if no earlier execution can have started the step. Every
    /// later call returns `false`.
    fn first_try(&self) -> impl Fn() -> bool + use<> {
        let is_first = AtomicBool::new(self.is_first.load(Ordering::Relaxed));
        move || is_first.swap(false, Ordering::Relaxed)
    }

    /// Makes one attempt of a work item and converts its error for DBOS.
    fn run_step<T>(
        &self,
        item: impl Future<Output = Result<T>> + Send,
    ) -> impl Future<Output = Result<T, Stopped>> + Send {
        // Boxed here and not by the returned future, because each wrapper of DBOS would otherwise copy the item.
        let item = Box::pin(item);
        async move {
            let error = match item.await {
                Ok(done) => {
                    self.is_first.store(true, Ordering::Relaxed);
                    return Ok(done);
                }
                Err(error) => error,
            };
            if self.is_shut_down(&error) {
                // DBOS records no result for this step, so the process that continues the run executes the item.
                return Err(Stopped::Interrupted { workflow_id: self.workflow.to_owned() });
            }
            if error.is_retryable()
                && let Some(wait) = error.retry_after()
            {
                self.runtime.context().clock.sleep(wait.min(LONGEST_WAIT)).await;
            }
            Err(Failure::from(&error).into())
        }
    }

    fn is_shut_down(&self, error: &Error) -> bool {
        error.code() == ErrorCode::Closed && self.runtime.context().tasks.drain.is_cancelled()
    }
}

/// Returns the retry options of a step. If its workflow is cancelled, a long step is stopped while it runs; a short one
/// finishes.
fn options(is_long: bool) -> StepOptions<Failure> {
    let options = StepOptions {
        max_attempts: MAX_ATTEMPTS,
        interval: FIRST_WAIT,
        max_interval: LONGEST_WAIT,
        preemptible: is_long,
        ..StepOptions::default()
    };
    options.should_retry(
        |error| matches!(error, Stopped::Application(failure) if failure.is_retryable()),
    )
}
