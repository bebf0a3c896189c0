//! Where the actions of a step are carried out, and their outcomes recorded.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::Either;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, Stream, StreamExt, stream};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::event::Event;
use helix_agents_core::executor::AgentResult;
use helix_agents_core::step::{Action, CallTask, ChildTask};
use helix_agents_runtime::{Begun, CallEnd, Driver, LeaseKeeper, Stop, Ticket};
use tokio_util::sync::CancellationToken;

/// Carries a run out, from its start to its end.
pub(crate) async fn drive(begun: Begun) -> Result<AgentResult> {
    let Begun { mut driver, mut lease, events, .. } = begun;
    let driven = steps(&mut driver, &mut lease, &events).await;
    driver.end(&lease, driven).await
}

async fn steps(driver: &mut Driver, lease: &mut LeaseKeeper, begun: &[Event]) -> Result<()> {
    driver.open(begun).await?;
    loop {
        match driver.next(lease)? {
            Action::Idle => return Ok(()),
            Action::CallModel { step, force_completion } => {
                driver.call_model(lease, step, force_completion).await?;
            }
            Action::StartTools(tasks) => driver.start_tools(lease, &tasks).await?,
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
    /// What became of a child cannot be found out: the run has to stop.
    Broken(Error),
}

impl Settled {
    fn facts(&self) -> Vec<Event> {
        match self {
            Self::Call(end) => end.facts().collect(),
            Self::Child(end) => vec![end.clone()],
            Self::Broken(_) => Vec::new(),
        }
    }

    fn ticket(&self) -> Option<Ticket> {
        match self {
            Self::Call(end) => Some(end.ticket),
            Self::Child(_) | Self::Broken(_) => None,
        }
    }
}

/// The first that stops the run, if one does.
fn broken(settled: &mut Vec<Settled>) -> Option<Error> {
    let at = settled.iter().position(|it| matches!(it, Settled::Broken(_)))?;
    match settled.swap_remove(at) {
        Settled::Broken(error) => Some(error),
        Settled::Call(_) | Settled::Child(_) => None,
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
    let runs = driver.calls(tasks, &cancel);
    let children = driver.children(children, &cancel);
    let total = runs.len() + children.len();
    let limit = driver.agent().limits().tool_concurrency;
    let calls = runs.into_iter().map(|run| run.carry_out().map(Settled::Call).boxed());
    let children = children.into_iter().map(|run| {
        let wait = run.carry_out();
        wait.map(|end| end.map_or_else(Settled::Broken, Settled::Child)).boxed()
    });
    let calls = stream::iter(calls).buffer_unordered(limit);
    let mut running = if total == tasks.len() {
        Either::Left(calls)
    } else {
        // Children take no place from tools: they may wait for long.
        Either::Right(stream::select(calls, children.collect::<FuturesUnordered<_>>()))
    };
    let mut settled: Vec<Settled> = Vec::with_capacity(total);
    let mut recorded = 0;
    while settled.len() < total {
        let ready = driver.guarded(lease, pin!(ready(&mut running))).await;
        match ready {
            Ok(ready) => settled.extend(ready),
            Err(Stop::Aborted) => {
                cancel.cancel();
                settled.extend(late(driver.parts().grace, running).await);
                return abort_calls(driver, lease, settled, recorded).await;
            }
            Err(stop) => return Err(driver.error(stop)),
        }
        if let Some(error) = broken(&mut settled) {
            return Err(error);
        }
        if settled.len() < total {
            let open = total - settled.len();
            let news = settled.get(recorded..).unwrap_or_default();
            let facts: Vec<_> = news.iter().flat_map(Settled::facts).collect();
            driver.settles(news.iter().filter_map(Settled::ticket));
            recorded = settled.len();
            let more = append_beside(driver, lease, facts, &mut running).await?;
            debug_assert!(more.len() <= open, "more results than calls");
            settled.extend(more);
            if driver.session().abort_request().is_some() {
                // The request came in with the append, and the open calls were answered by it.
                cancel.cancel();
                late(driver.parts().grace, running).await;
                return driver.record(lease, Vec::new()).await;
            }
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
    running: &mut (impl Stream<Item = Settled> + Unpin),
) -> Result<Vec<Settled>> {
    let record = driver.record(lease, facts);
    tokio::pin!(record);
    let mut more = Vec::new();
    loop {
        tokio::select! {
            biased;
            done = &mut record => return done.map(|()| more),
            Some(settled) = running.next() => more.push(settled),
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
    driver.stage(&facts)?;
    driver.catch_up().await?;
    driver.record(lease, Vec::new()).await
}

/// What ends within the grace period; the rest is dropped.
async fn late(grace: Duration, mut running: impl Stream<Item = Settled> + Unpin) -> Vec<Settled> {
    let mut late = Vec::new();
    let collect = async {
        while let Some(settled) = running.next().await {
            late.push(settled);
        }
    };
    if tokio::time::timeout(grace, collect).await.is_err() {
        tracing::warn!("tools were dropped that did not stop when they were cancelled");
    }
    late
}

/// The next result, and all that are ready with it.
async fn ready(running: &mut (impl Stream<Item = Settled> + Unpin)) -> Vec<Settled> {
    let mut ready: Vec<_> = running.next().await.into_iter().collect();
    while let Some(Some(settled)) = running.next().now_or_never() {
        ready.push(settled);
    }
    ready
}
