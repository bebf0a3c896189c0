//! Where the actions of a step are carried out, and their outcomes recorded.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::Either;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, Stream, StreamExt, stream};
use helix_agents_core::error::{Error, Result};
use helix_agents_core::event::{Event, ModelReply};
use helix_agents_core::hooks::{HookContext, changed};
use helix_agents_core::json::Json;
use helix_agents_core::message::Message;
use helix_agents_core::session::OpenStep;
use helix_agents_core::step::{CallTask, ChildTask};
use helix_agents_core::stream::Effect;
use tokio_util::sync::CancellationToken;

use crate::children::ChildRun;
use crate::driver::Driver;
use crate::family;
use crate::feed::Ticket;
use crate::lease::{LeaseKeeper, News};
use crate::model;
use crate::stop::Stop;
use crate::tools::{CallEnd, CallRun, millis};

/// A call of a phase that is done with, one way or another.
#[derive(Debug)]
pub(crate) enum Settled {
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

/// Makes the model call of a step and records the reply.
pub(crate) async fn call_model(
    driver: &mut Driver,
    lease: &mut LeaseKeeper,
    step: u32,
    force_completion: bool,
) -> Result<()> {
    let ticket = driver.feed.begin(step, Effect::Model { step });
    let state = Arc::clone(driver.journal.session().state());
    let cx = HookContext::new(&driver.place(step), "llm_call", state);
    let begun = lease.now();
    let known = driver.journal.acknowledged();
    let ended = {
        let call = pin!(model::call(driver, step, force_completion, ticket, &cx));
        guarded(driver, lease, known, call).await
    };
    let (response, price) = match ended {
        Ok(response) => response?,
        Err(Stop::Aborted) => return driver.journal.catch_up().await,
        Err(stop) => return Err(stop.into_error(&driver.live.session, &driver.live.run)),
    };
    if model::was_cancelled(&response) {
        return driver.journal.catch_up().await;
    }
    let took = millis(lease.now().saturating_sub(begun));
    let mut reply = ModelReply::from_response(step, response, took);
    reply.cost = price.map(|price| price.of(&reply.usage));
    if let Some(message) = &reply.message {
        driver.hooks.message(&cx, &Message::Assistant(Arc::clone(message))).await;
    }
    let mut facts: Vec<_> = changed(&cx, "llm_call").into_iter().collect();
    facts.push(reply.into());
    driver.unsettled.push(ticket);
    driver.record(lease, facts).await
}

/// Records that at-most-once calls are about to run.
pub(crate) async fn start_tools(
    driver: &mut Driver,
    lease: &mut LeaseKeeper,
    tasks: &[CallTask],
) -> Result<()> {
    let step = driver.journal.session().open_step();
    let facts = tasks
        .iter()
        .map(|task| Event::ToolStarted {
            call: task.call.clone(),
            attempt: task.attempt,
            timeout_ms: step.map(|step| millis(timeout(driver, step, task))),
        })
        .collect();
    driver.record(lease, facts).await
}

/// Runs calls side by side and records their results: those that are ready together in one
/// append, while the others go on.
pub(crate) async fn run_calls(
    driver: &mut Driver,
    lease: &mut LeaseKeeper,
    tasks: &[CallTask],
    children: &[ChildTask],
) -> Result<()> {
    if let Some(request) = driver.journal.session().interrupt_request() {
        lease.heard(request);
        Box::pin(family::interrupt_below(&driver.parts, driver.journal.session(), request)).await;
    }
    let cancel = CancellationToken::new();
    let runs = prepare(driver, tasks, &cancel);
    let children: Vec<_> =
        children.iter().filter_map(|task| ChildRun::new(driver, task, &cancel)).collect();
    let total = runs.len() + children.len();
    let limit = driver.agent.limits().tool_concurrency;
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
        let known = driver.journal.acknowledged();
        let ready = guarded(driver, lease, known, pin!(ready(&mut running))).await;
        match ready {
            Ok(ready) => settled.extend(ready),
            Err(Stop::Aborted) => {
                cancel.cancel();
                settled.extend(late(driver.parts.grace, running).await);
                return abort_calls(driver, lease, settled, recorded).await;
            }
            Err(stop) => return Err(stop.into_error(&driver.live.session, &driver.live.run)),
        }
        if let Some(error) = broken(&mut settled) {
            return Err(error);
        }
        if settled.len() < total {
            let open = total - settled.len();
            let news = settled.get(recorded..).unwrap_or_default();
            let facts: Vec<_> = news.iter().flat_map(Settled::facts).collect();
            driver.unsettled.extend(news.iter().filter_map(Settled::ticket));
            recorded = settled.len();
            let more = append_beside(driver, lease, facts, &mut running).await?;
            debug_assert!(more.len() <= open, "more results than calls");
            settled.extend(more);
            if driver.journal.session().abort_request().is_some() {
                // The request came in with the append, and the open calls were answered by it.
                cancel.cancel();
                late(driver.parts.grace, running).await;
                return driver.record(lease, Vec::new()).await;
            }
        }
    }
    let news = settled.get(recorded..).unwrap_or_default();
    let facts: Vec<_> = news.iter().flat_map(Settled::facts).collect();
    driver.unsettled.extend(news.iter().filter_map(Settled::ticket));
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
    driver.unsettled.extend(news.iter().filter_map(Settled::ticket));
    // A child that waits is answered like any other open call.
    let facts: Vec<_> =
        facts.into_iter().filter(|it| !matches!(it, Event::ChildWaiting { .. })).collect();
    // The results first: they are legal only while the calls are open.
    driver.stage(&facts)?;
    driver.journal.catch_up().await?;
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

fn prepare(driver: &Driver, tasks: &[CallTask], cancel: &CancellationToken) -> Vec<CallRun> {
    let session = driver.journal.session();
    let Some(step) = session.open_step() else { return Vec::new() };
    let place = driver.place(step.reply.step);
    let state = session.step_state();
    let mut runs = Vec::with_capacity(tasks.len());
    runs.extend(tasks.iter().filter_map(|task| {
        let call = step.tool_call(&task.call)?.clone();
        let tool = Arc::clone(driver.agent.tool(&call.name)?);
        let input = step.input(&call.id).unwrap_or_else(Json::empty_object);
        Some(CallRun {
            agent: Arc::clone(&driver.agent),
            tool,
            call,
            input,
            task: task.clone(),
            place: place.clone(),
            state: Arc::clone(&state),
            feed: driver.feed.clone(),
            hooks: driver.hooks.clone(),
            clock: Arc::clone(&driver.parts.clock),
            ids: Arc::clone(&driver.parts.ids),
            cancel: cancel.clone(),
            timeout: timeout(driver, step, task),
            doubt: doubt(driver, step, task),
        })
    }));
    runs
}

fn timeout(driver: &Driver, step: &OpenStep, task: &CallTask) -> Duration {
    let tool = step.tool_call(&task.call).and_then(|call| driver.agent.tool(&call.name));
    let own = tool.and_then(|tool| tool.own_timeout());
    own.unwrap_or(driver.agent.limits().tool_timeout)
}

/// How long the owner that started a call in doubt may still be at it: its timeout, counted from
/// the recorded start by the store's clock, less what had passed when this run began.
fn doubt(driver: &Driver, step: &OpenStep, task: &CallTask) -> Duration {
    if !task.in_doubt {
        return Duration::ZERO;
    }
    let started = step.call(&task.call).and_then(|state| state.started.as_ref());
    let Some(started) = started else { return Duration::ZERO };
    let limit = Duration::from_millis(started.timeout_ms.unwrap_or(0));
    let here = driver.journal.session().current_run().and_then(|run| run.started);
    match (started.at, here) {
        (Some(then), Some(here)) => limit.saturating_sub(here.since(then)),
        _ => limit,
    }
}

/// Waits for an effect, shows what it shows, and breaks it off if there is reason to. The effect
/// comes pinned: a future that is handed on by value is laid out once more in every future that
/// takes it, and each waiting run pays for that.
async fn guarded<T>(
    driver: &Driver,
    lease: &mut LeaseKeeper,
    known: u64,
    mut effect: Pin<&mut (impl Future<Output = T> + Send)>,
) -> Result<T, Stop> {
    let watched = pin!(async {
        loop {
            let news = tokio::select! {
                biased;
                done = effect.as_mut() => return Ok(done),
                news = lease.watch(known) => news,
            };
            match news {
                News::Stop(stop) => return Err(stop),
                // The run meets it at the step's end; children that it waits for have ends too.
                News::Interrupt(request) => {
                    let session = driver.journal.session();
                    Box::pin(family::interrupt_below(&driver.parts, session, &request)).await;
                }
            }
        }
    });
    driver.feed.while_pumping(watched).await
}
