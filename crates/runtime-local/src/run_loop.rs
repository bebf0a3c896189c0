//! Executes the actions of a run and records their outcomes.

use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, Stream, StreamExt, stream};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::event::Event;
use helix_agents_core::executor::AgentResult;
use helix_agents_core::step::{Action, CallTask, ChildTask};
use helix_agents_runtime::{
    AttemptHandle, CallEnd, CancelReason, ChildWait, Driver, LeaseKeeper, LeaseView, StartQueue,
    StartTicket, StartedRun,
};
use tokio_util::sync::CancellationToken;

/// Executes a run from its start to its end.
pub(crate) async fn drive(started: StartedRun) -> Result<AgentResult> {
    let StartedRun { mut driver, mut lease, events, .. } = started;
    let driven = steps(&mut driver, &mut lease, &events).await;
    driver.end(&mut lease, driven).await
}

async fn steps(driver: &mut Driver, lease: &mut LeaseKeeper, start_events: &[Event]) -> Result<()> {
    driver.open(lease, start_events).await?;
    loop {
        match driver.next()? {
            Action::Idle => return Ok(()),
            Action::CallModel { step, force_completion } => {
                driver.call_model(lease, step, force_completion).await?;
            }
            Action::RunCompanions(tasks) => Box::pin(driver.run_companions(lease, &tasks)).await?,
            Action::StartChildren(tasks) => Box::pin(driver.start_children(lease, &tasks)).await?,
            Action::RunTools { calls, children } => {
                run_calls(driver, lease, &calls, &children).await?;
            }
            Action::RunFinishTool(task) => run_calls(driver, lease, &[task], &[]).await?,
            decision if decision.is_decision() => driver.record(lease, Vec::new()).await?,
            other => {
                let message = format!("this runtime does not know the action {other:?}");
                return Err(Error::new(ErrorCode::Internal, message));
            }
        }
    }
}

/// The end of one of the calls of `run_calls`.
#[derive(Debug)]
enum Settled {
    /// A tool call with its result.
    Call(CallEnd),
    /// The event of a sub-agent call. The child has ended or is suspended.
    Child(Event),
    /// A tool call that did not run.
    NotRun,
    /// An error that stops the run: the state of a child cannot be determined.
    Broken(Error),
}

impl Settled {
    fn facts(&self) -> Vec<Event> {
        match self {
            Self::Call(end) => end.facts().collect(),
            Self::Child(end) => vec![end.clone()],
            Self::NotRun | Self::Broken(_) => Vec::new(),
        }
    }

    fn attempt(&self) -> Option<AttemptHandle> {
        match self {
            Self::Call(end) => Some(end.attempt),
            Self::Child(_) | Self::NotRun | Self::Broken(_) => None,
        }
    }
}

/// Running calls and children. Children do not count towards the concurrency limit of tools, because they may wait
/// for a long time.
struct Running<C> {
    calls: C,
    /// `None` until children are added: most steps have none.
    children: Option<FuturesUnordered<BoxFuture<'static, Settled>>>,
}

impl<C> Running<C> {
    /// Adds children to wait for.
    fn follow(&mut self, children: Vec<ChildWait>) {
        if children.is_empty() {
            return;
        }
        self.children.get_or_insert_default().extend(children.into_iter().map(|run| {
            let wait = run.drive();
            wait.map(|end| end.map_or_else(Settled::Broken, Settled::Child)).boxed()
        }));
    }
}

impl<C: Stream<Item = Settled> + Unpin> Stream for Running<C> {
    type Item = Settled;

    /// Returns `None` while nothing is running. The stream can yield items again after children were added.
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Settled>> {
        let calls = self.calls.poll_next_unpin(cx);
        if matches!(calls, Poll::Ready(Some(_))) {
            return calls;
        }
        let Some(running) = &mut self.children else { return calls };
        match running.poll_next_unpin(cx) {
            Poll::Ready(None) => calls,
            children => children,
        }
    }
}

/// Removes and returns the first error that stops the run, if there is one.
fn take_broken(settled: &mut Vec<Settled>) -> Option<Error> {
    let at = settled.iter().position(|settled| matches!(settled, Settled::Broken(_)))?;
    match settled.swap_remove(at) {
        Settled::Broken(error) => Some(error),
        Settled::Call(_) | Settled::Child(_) | Settled::NotRun => None,
    }
}

/// Runs calls concurrently and records their results. Results that are ready together are recorded in one append
/// while the other calls continue.
async fn run_calls(
    driver: &mut Driver,
    lease: &mut LeaseKeeper,
    tasks: &[CallTask],
    children: &[ChildTask],
) -> Result<()> {
    driver.forward_interrupt(lease).await;
    let cancel = CancellationToken::new();
    let (runs, starts) = driver.calls(lease, tasks, &cancel);
    let children = driver.children(children, &cancel);
    let mut total = runs.len() + children.len();
    let limit = driver.agent().limits().tool_concurrency;
    let calls = runs.into_iter().map(|run| {
        let end = run.drive();
        end.map(|end| end.map_or(Settled::NotRun, Settled::Call)).boxed()
    });
    let calls = stream::iter(calls).buffer_unordered(limit);
    let mut running = Running { calls, children: None };
    running.follow(children);
    let mut settled: Vec<Settled> = Vec::with_capacity(total);
    let mut recorded = 0;
    while settled.len() < total {
        let ready = driver.guarded(lease, pin!(next_ready(&mut running, &starts))).await;
        let requested = match ready {
            Ok((ready, requested)) => {
                settled.extend(ready);
                requested
            }
            Err(CancelReason::Aborted) => {
                cancel.cancel();
                settled.extend(Box::pin(collect_late(driver, lease, running)).await?);
                return Box::pin(abort_calls(driver, lease, settled, recorded)).await;
            }
            Err(reason) => return Err(driver.error(reason)),
        };
        if let Some(error) = take_broken(&mut settled) {
            return Err(error);
        }
        if settled.len() < total {
            let open = total - settled.len();
            let unrecorded = settled.get(recorded..).unwrap_or_default();
            let starts = requested.iter().map(|start| start.event().clone());
            let facts = unrecorded.iter().flat_map(Settled::facts).chain(starts).collect();
            driver.register_outcomes(unrecorded.iter().filter_map(Settled::attempt));
            recorded = settled.len();
            let more = Box::pin(record_while_running(driver, lease, facts, &mut running)).await?;
            debug_assert!(more.len() <= open, "more results than calls");
            settled.extend(more);
            if !is_aborted(driver) {
                // A call whose result was recorded by another process in the meantime does not run.
                requested
                    .into_iter()
                    .filter(|start| driver.is_started(start.call()))
                    .for_each(StartTicket::grant);
                let (started, more) = start_more(driver, lease, &cancel, &mut running).await?;
                total += started;
                settled.extend(more);
            }
            if is_aborted(driver) {
                // An append read an abort request.
                cancel.cancel();
                settled.extend(Box::pin(collect_late(driver, lease, running)).await?);
                return Box::pin(abort_calls(driver, lease, settled, recorded)).await;
            }
        }
    }
    let unrecorded = settled.get(recorded..).unwrap_or_default();
    let facts: Vec<_> = unrecorded.iter().flat_map(Settled::facts).collect();
    driver.register_outcomes(unrecorded.iter().filter_map(Settled::attempt));
    driver.record(lease, facts).await
}

/// Returns `true` if the run has read an abort request.
fn is_aborted(driver: &Driver) -> bool {
    driver.session().abort_request().is_some()
}

/// Appends results while the other calls continue. Returns the calls that completed in the meantime.
async fn record_while_running(
    driver: &mut Driver,
    lease: &mut LeaseKeeper,
    facts: Vec<Event>,
    running: &mut (impl Stream<Item = Settled> + Unpin + Send),
) -> Result<Vec<Settled>> {
    let lease_view = lease.view().clone();
    let record = pin!(driver.record_concurrently(lease, facts));
    while_running(&lease_view, record, running).await
}

/// Starts queued children after others have ended or were suspended, while the other calls continue. Returns the
/// number of started children and the calls that completed in the meantime.
async fn start_more<C: Stream<Item = Settled> + Unpin + Send>(
    driver: &mut Driver,
    lease: &mut LeaseKeeper,
    cancel: &CancellationToken,
    running: &mut Running<C>,
) -> Result<(usize, Vec<Settled>)> {
    // A runtime that is shutting down starts no children.
    let Ok(Action::StartChildren(tasks)) = driver.next() else { return Ok((0, Vec::new())) };
    let lease_view = lease.view().clone();
    let mut start = Box::pin(async {
        driver.start_children_concurrently(lease, &tasks).await?;
        // The owner may have read the request after it was passed on to the other children.
        driver.forward_interrupt(lease).await;
        Ok(())
    });
    let ended = while_running(&lease_view, start.as_mut(), running).await?;
    drop(start);
    let children = driver.children(&tasks, cancel);
    let count = children.len();
    running.follow(children);
    Ok((count, ended))
}

/// Runs work while calls continue. Returns the calls that completed in the meantime.
async fn while_running(
    lease_view: &LeaseView,
    mut work: Pin<&mut impl Future<Output = Result<()>>>,
    running: &mut (impl Stream<Item = Settled> + Unpin + Send),
) -> Result<Vec<Settled>> {
    let mut more = Vec::new();
    loop {
        // While `work` runs, only `work` renews the lease.
        let mut next = running.next();
        let next = lease_view.while_owned(Pin::new(&mut next));
        tokio::select! {
            biased;
            done = &mut work => return done.map(|()| more),
            Some(settled) = next => more.push(settled),
        }
    }
}

/// Records the results of the calls that completed in time. The abort gives the others an error as their result.
async fn abort_calls(
    driver: &mut Driver,
    lease: &mut LeaseKeeper,
    settled: Vec<Settled>,
    recorded: usize,
) -> Result<()> {
    let unrecorded = settled.get(recorded..).unwrap_or_default();
    let facts: Vec<_> = unrecorded.iter().flat_map(Settled::facts).collect();
    driver.register_outcomes(unrecorded.iter().filter_map(Settled::attempt));
    // A suspended child is answered like any other open call.
    let facts: Vec<_> =
        facts.into_iter().filter(|event| !matches!(event, Event::ChildWaiting { .. })).collect();
    // Record the results first: they are legal only while the calls are open.
    driver.take_results(lease, &facts).await?;
    driver.catch_up().await?;
    driver.record(lease, Vec::new()).await
}

/// Returns the calls that complete within the grace period. The others are dropped.
async fn collect_late(
    driver: &Driver,
    lease: &mut LeaseKeeper,
    mut running: impl Stream<Item = Settled> + Unpin + Send,
) -> Result<Vec<Settled>> {
    let mut late = Vec::new();
    let collect = async {
        while let Some(settled) = running.next().await {
            late.push(settled);
        }
    };
    let collect = pin!(tokio::time::timeout(driver.context().grace, collect));
    if driver.under_lease(lease, collect).await?.is_err() {
        tracing::warn!("tools that did not stop after cancellation were dropped");
    }
    Ok(late)
}

/// Waits until a result arrives or a call requests the recording of its start. Returns all that are ready together.
async fn next_ready(
    running: &mut (impl Stream<Item = Settled> + Unpin + Send),
    starts: &StartQueue,
) -> (Vec<Settled>, Vec<StartTicket>) {
    let (mut ready, mut requested) = (Vec::new(), Vec::new());
    tokio::select! {
        biased;
        settled = running.next() => ready.extend(settled),
        starts = starts.next() => requested = starts,
    }
    while let Some(Some(settled)) = running.next().now_or_never() {
        ready.push(settled);
    }
    requested.extend(starts.take());
    (ready, requested)
}
