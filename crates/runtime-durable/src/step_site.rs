//! Where the parts of a run are carried out, each as a step of its workflow.
//!
//! DBOS finds a step again by its place among all that the body builds, and checks its name. So what is
//! built here, and in which order, may depend on nothing but what earlier steps came to; whoever changes
//! that gives the body a new number (`workflow::BODY`).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use dbos::{PendingStep, StepOptions};
use futures_util::future::{join, join_all};
use futures_util::{StreamExt as _, stream};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::CallId;
use helix_agents_runtime::{ChildRef, Next, RunRef, Runtime, WorkItem};
use tokio::sync::SemaphorePermit;

use crate::failure::{Failure, Stopped};
use crate::name;
use crate::turns::ConcurrencyLimiter;

/// How often a part is tried that a store, or something else that may pass, kept from its end.
const TRIES: u32 = 6;

/// How long to wait before the second try; twice as long before each further one.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The longest wait before another try, also if whoever refused asks for more.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// How long one step waits for a child. Then there is another one: nothing depends on it, but a step that
/// ends shows that somebody is alive.
const FOLLOW: Duration = Duration::from_secs(10 * 60);

/// One execution of a run's workflow.
#[derive(Debug)]
pub(crate) struct Site<'a> {
    runtime: &'a Runtime,
    of: &'a RunRef,
    workflow: &'a str,
    /// None if the run needs no turns.
    turns: Option<&'a ConcurrencyLimiter>,
    /// Whether this execution, and none before, carried out what came last, so that nobody has begun
    /// what comes now. It is so from the first step on that was not on record.
    is_first: AtomicBool,
}

impl<'a> Site<'a> {
    /// `is_new` says that there was no execution before.
    pub(crate) fn new(
        runtime: &'a Runtime,
        of: &'a RunRef,
        workflow: &'a str,
        turns: Option<&'a ConcurrencyLimiter>,
        is_new: bool,
    ) -> Self {
        Self { runtime, of, workflow, turns, is_first: AtomicBool::new(is_new) }
    }

    /// Carries the run out, from its start to its end.
    ///
    /// # Errors
    /// Why it stopped before.
    pub(crate) async fn drive(&self) -> Result<(), Stopped> {
        let mut part = WorkItem::Open;
        loop {
            part = match self.part(&part).await? {
                Next::Over => return Ok(()),
                Next::WorkItem(part) => part,
                Next::Calls { calls, at_once, children, then } => {
                    self.side_by_side(&calls, at_once, &children).await?;
                    then
                }
            };
        }
    }

    async fn part(&self, part: &WorkItem) -> Result<Next, Stopped> {
        // Companions may be waited for, and need turns themselves then.
        let _turn = match part {
            WorkItem::Companions => None,
            _ => self.turn().await,
        };
        let is_long = matches!(part, WorkItem::Model(_) | WorkItem::Companions | WorkItem::Call(_));
        let is_first = self.first_try();
        let step = dbos::step_with(&name::step(part), options(is_long), || {
            self.tried(self.runtime.perform(self.of, part, is_first()))
        });
        step.await
    }

    async fn turn(&self) -> Option<SemaphorePermit<'a>> {
        match self.turns {
            Some(turns) => turns.wait(self.runtime, self.of).await,
            None => None,
        }
    }

    /// Carries out calls, so many at once, and waits for children beside them.
    async fn side_by_side(
        &self,
        calls: &[CallId],
        at_once: usize,
        children: &[ChildRef],
    ) -> Result<(), Stopped> {
        let at_once = at_once.max(1);
        // Calls start in their order. An execution that died had therefore started no more than the first
        // `at_once` of those without a result.
        let tried = if self.is_first.load(Ordering::Relaxed) { 0 } else { at_once };
        let tried = &AtomicUsize::new(tried);
        // All are built before any starts: their places are those in which they are built.
        let calls: Vec<_> = calls.iter().map(|call| self.call(call, tried)).collect();
        let children: Vec<_> = children.iter().map(|child| self.follow(&child.call)).collect();
        let calls = async {
            if calls.is_empty() {
                return Vec::new();
            }
            let _turn = self.turn().await;
            stream::iter(calls).buffer_unordered(at_once).collect().await
        };
        let (calls, children) = join(calls, join_all(children)).await;
        calls.into_iter().chain(children).collect()
    }

    /// A call. `tried` counts down the calls that an execution before this one may have started.
    fn call<'s>(
        &'s self,
        call: &'s CallId,
        tried: &'s AtomicUsize,
    ) -> PendingStep<'s, (), Failure> {
        let is_tried_here = AtomicBool::new(false);
        dbos::step_with(&name::call(call), options(true), move || {
            let one_less = |count: usize| count.checked_sub(1);
            let is_again = is_tried_here.swap(true, Ordering::Relaxed)
                || tried.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok();
            self.tried(async move {
                match is_again {
                    true => self.runtime.perform_call_again(self.of, call).await,
                    false => self.runtime.perform_call(self.of, call).await,
                }
            })
        })
    }

    fn follow(&'a self, call: &'a CallId) -> PendingStep<'a, (), Failure> {
        dbos::step_with(&format!("follow/{call}"), options(true), move || {
            self.tried(self.runtime.follow_child(self.of, call, FOLLOW))
        })
    }

    /// Answers once whether nobody has begun before what is built now, and then that somebody has.
    fn first_try(&self) -> impl Fn() -> bool + use<> {
        let is_first = AtomicBool::new(self.is_first.load(Ordering::Relaxed));
        move || is_first.swap(false, Ordering::Relaxed)
    }

    /// One try at a part, in DBOS's words.
    async fn tried<T>(&self, part: impl Future<Output = Result<T>>) -> Result<T, Stopped> {
        // Boxed: what DBOS wraps around it would lay it out once more for each layer.
        let error = match Box::pin(part).await {
            Ok(done) => {
                self.is_first.store(true, Ordering::Relaxed);
                return Ok(done);
            }
            Err(error) => error,
        };
        if self.is_shut_down(&error) {
            // Nothing is recorded then, and whoever goes on carries the part out.
            return Err(Stopped::Interrupted { workflow_id: self.workflow.to_owned() });
        }
        if error.is_retryable()
            && let Some(wait) = error.retry_after()
        {
            self.runtime.context().clock.sleep(wait.min(LONGEST_WAIT)).await;
        }
        Err(Failure::from(&error).into())
    }

    fn is_shut_down(&self, error: &Error) -> bool {
        error.code() == ErrorCode::Closed && self.runtime.context().tasks.drain.is_cancelled()
    }
}

/// How a step is tried. One that may take long is dropped in the middle once its workflow is cancelled.
fn options(is_long: bool) -> StepOptions<Failure> {
    let options = StepOptions {
        max_attempts: TRIES,
        interval: FIRST_WAIT,
        max_interval: LONGEST_WAIT,
        preemptible: is_long,
        ..StepOptions::default()
    };
    options.should_retry(
        |error| matches!(error, Stopped::Application(failure) if failure.is_retryable()),
    )
}
