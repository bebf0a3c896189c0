//! Where the actions of a step are carried out, and their outcomes recorded.

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
    AttemptHandle, CallEnd, CancelReason, ChildRun, Driver, LeaseKeeper, Ownership, Start,
    StartedRun, Starts,
};
use tokio_util::sync::CancellationToken;

/// Carries a run out, from its start to its end.
pub(crate) async fn drive(begun: StartedRun) -> Result<AgentResult> {
    let StartedRun { mut driver, mut lease, events, .. } = begun;
    let driven = steps(&mut driver, &mut lease, &events).await;
    driver.end(&lease, driven).await
}

async fn steps(driver: &mut Driver, lease: &mut LeaseKeeper, begun: &[Event]) -> Result<()> {
    driver.open(lease, begun).await?;
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

/// A call of a phase that is done with, one way or another.
#[derive(Debug)]
enum Settled {
    /// A tool's.
    Call(CallEnd),
    /// That of a call's child, as the log tells it; it may be that it waits.
    Child(Event),
    /// A tool's that did not run.
    NotRun,
    /// What became of a child cannot be found out: the run has to stop.
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

    fn ticket(&self) -> Option<AttemptHandle> {
        match self {
            Self::Call(end) => Some(end.ticket),
            Self::Child(_) | Self::NotRun | Self::Broken(_) => None,
        }
    }
}

/// Calls and children under way. Children take no place from tools: they may wait for long.
struct Running<C> {
    calls: C,
    children: FuturesUnordered<BoxFuture<'static, Settled>>,
}

impl<C> Running<C> {
    /// Waits for these children, too.
    fn follow(&mut self, children: Vec<ChildRun>) {
        self.children.extend(children.into_iter().map(|run| {
            let wait = run.drive();
            wait.map(|end| end.map_or_else(Settled::Broken, Settled::Child)).boxed()
        }));
    }
}

impl<C: Stream<Item = Settled> + Unpin> Stream for Running<C> {
    type Item = Settled;

    /// Ends for as long as nothing is under way.
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Settled>> {
        let calls = self.calls.poll_next_unpin(cx);
        if matches!(calls, Poll::Ready(Some(_))) {
            return calls;
        }
        match self.children.poll_next_unpin(cx) {
            Poll::Ready(None) => calls,
            children => children,
        }
    }
}

/// The first that stops the run, if one does.
fn broken(settled: &mut Vec<Settled>) -> Option<Error> {
    let at = settled.iter().position(|it| matches!(it, Settled::Broken(_)))?;
    match settled.swap_remove(at) {
        Settled::Broken(error) => Some(error),
        Settled::Call(_) | Settled::Child(_) | Settled::NotRun => None,
    }
}

/// Runs calls side by side and records their results: those that are ready together in one
/// append, while the others go on.
async fn run_calls(
    driver: &mut Driver,
    lease: &mut LeaseKeeper,
    tasks: &[CallTask],
    children: &[ChildTask],
) -> Result<()> {
    driver.meet_interrupt(lease).await;
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
    let mut running = Running { calls, children: FuturesUnordered::new() };
    running.follow(children);
    let mut settled: Vec<Settled> = Vec::with_capacity(total);
    let mut recorded = 0;
    while settled.len() < total {
        let ready = driver.guarded(lease, pin!(ready(&mut running, &starts))).await;
        let asked = match ready {
            Ok((ready, asked)) => {
                settled.extend(ready);
                asked
            }
            Err(CancelReason::Aborted) => {
                cancel.cancel();
                settled.extend(late(driver, lease, running).await?);
                return abort_calls(driver, lease, settled, recorded).await;
            }
            Err(stop) => return Err(driver.error(stop)),
        };
        if let Some(error) = broken(&mut settled) {
            return Err(error);
        }
        if settled.len() < total {
            let open = total - settled.len();
            let news = settled.get(recorded..).unwrap_or_default();
            let starts = asked.iter().map(|start| start.event().clone());
            let facts = news.iter().flat_map(Settled::facts).chain(starts).collect();
            driver.settles(news.iter().filter_map(Settled::ticket));
            recorded = settled.len();
            let more = append_beside(driver, lease, facts, &mut running).await?;
            debug_assert!(more.len() <= open, "more results than calls");
            settled.extend(more);
            if driver.session().abort_request().is_some() {
                // The request came in with the append, and the open calls were answered by it.
                cancel.cancel();
                late(driver, lease, running).await?;
                return driver.record(lease, Vec::new()).await;
            }
            // One that has its result from elsewhere meanwhile does not run.
            asked
                .into_iter()
                .filter(|start| driver.is_started(start.call()))
                .for_each(Start::grant);
            let (begun, more) = start_more(driver, lease, &cancel, &mut running).await?;
            total += begun;
            settled.extend(more);
        }
    }
    let news = settled.get(recorded..).unwrap_or_default();
    let facts: Vec<_> = news.iter().flat_map(Settled::facts).collect();
    driver.settles(news.iter().filter_map(Settled::ticket));
    driver.record(lease, facts).await
}

/// Appends results while the other calls go on; returns those that ended meanwhile.
async fn append_beside(
    driver: &mut Driver,
    lease: &mut LeaseKeeper,
    facts: Vec<Event>,
    running: &mut (impl Stream<Item = Settled> + Unpin + Send),
) -> Result<Vec<Settled>> {
    let ownership = lease.ownership().clone();
    beside(&ownership, driver.record_beside(lease, facts), running).await
}

/// Starts children in the place of those that have ended or wait, while the other calls go on. Returns how
/// many it started, and what ended meanwhile.
async fn start_more<C: Stream<Item = Settled> + Unpin + Send>(
    driver: &mut Driver,
    lease: &mut LeaseKeeper,
    cancel: &CancellationToken,
    running: &mut Running<C>,
) -> Result<(usize, Vec<Settled>)> {
    // A runtime that shuts down starts none.
    let Ok(Action::StartChildren(tasks)) = driver.next() else { return Ok((0, Vec::new())) };
    let ownership = lease.ownership().clone();
    let started = Box::pin(driver.start_children_beside(lease, &tasks));
    let ended = beside(&ownership, started, running).await?;
    let children = driver.children(&tasks, cancel);
    let begun = children.len();
    running.follow(children);
    Ok((begun, ended))
}

/// Does something while calls go on; returns those that ended meanwhile.
async fn beside(
    ownership: &Ownership,
    work: impl Future<Output = Result<()>>,
    running: &mut (impl Stream<Item = Settled> + Unpin + Send),
) -> Result<Vec<Settled>> {
    let mut work = pin!(work);
    let mut more = Vec::new();
    loop {
        // An append is what renews the lease meanwhile.
        let mut next = running.next();
        let next = ownership.while_owned(Pin::new(&mut next));
        tokio::select! {
            biased;
            done = &mut work => return done.map(|()| more),
            Some(settled) = next => more.push(settled),
        }
    }
}

/// Records what ended in time, and lets the request answer the rest.
async fn abort_calls(
    driver: &mut Driver,
    lease: &mut LeaseKeeper,
    settled: Vec<Settled>,
    recorded: usize,
) -> Result<()> {
    let news = settled.get(recorded..).unwrap_or_default();
    let facts: Vec<_> = news.iter().flat_map(Settled::facts).collect();
    driver.settles(news.iter().filter_map(Settled::ticket));
    // A child that waits is answered like any other open call.
    let facts: Vec<_> =
        facts.into_iter().filter(|it| !matches!(it, Event::ChildWaiting { .. })).collect();
    // The results first: they are legal only while the calls are open.
    driver.take_results(lease, &facts).await?;
    driver.catch_up().await?;
    driver.record(lease, Vec::new()).await
}

/// What ends within the grace period; the rest is dropped.
async fn late(
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
        tracing::warn!("tools were dropped that did not stop when they were cancelled");
    }
    Ok(late)
}

/// The next results, and the calls that wait for their starts to be recorded: all that are ready
/// together.
async fn ready(
    running: &mut (impl Stream<Item = Settled> + Unpin + Send),
    starts: &Starts,
) -> (Vec<Settled>, Vec<Start>) {
    let (mut ready, mut asked) = (Vec::new(), Vec::new());
    tokio::select! {
        biased;
        settled = running.next() => ready.extend(settled),
        starts = starts.next() => asked = starts,
    }
    while let Some(Some(settled)) = running.next().now_or_never() {
        ready.push(settled);
    }
    asked.extend(starts.take());
    (ready, asked)
}
