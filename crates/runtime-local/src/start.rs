//! Starting runs: what is legal is core's to say; that exactly one starts is the store's.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::AnyAgent;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::event::Event;
use helix_agents_core::executor::{ExecuteOptions, Input, ResumeOptions, RunHandle};
use helix_agents_core::hooks::AgentHooks;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::session::{
    BeginRun, Journal, JournalParts, Session, StartOutcome, abort_events, execute_events, load,
    resume_events,
};
use helix_agents_core::store::{Head, NewSession};

use crate::driver::Driver;
use crate::feed::Feed;
use crate::handle::{attach, handle};
use crate::hooks::Hooks;
use crate::lease::LeaseKeeper;
use crate::live::LiveRun;
use crate::parts::{Parts, RUNTIME};
use crate::runtime::LocalRuntime;

/// How often a start is tried on a session that others change at the same time.
const MAX_TRIES: u32 = 32;

/// Added to the wait for a lease, so that it has run out by the store's clock too.
const MARGIN: Duration = Duration::from_millis(20);

pub(crate) async fn execute(
    runtime: &LocalRuntime,
    agent: AnyAgent,
    input: Input,
    options: ExecuteOptions,
) -> Result<RunHandle> {
    let parts = runtime.parts();
    parts.llm.check(agent.llm())?;
    let session = match &options.session {
        Some(chosen) => SessionId::chosen(chosen.as_str())?,
        None => parts.ids.session(),
    };
    let run = match &options.run {
        Some(chosen) => RunId::chosen(chosen.as_str())?,
        None => parts.ids.run(),
    };
    let known = options.session.is_some();
    for _ in 0..MAX_TRIES {
        let head = if known { parts.store.head(&session).await? } else { None };
        let mut fold = match &head {
            Some(_) => load(&*parts.store, &session).await?,
            None => Session::new(session.clone()),
        };
        if let Some(head) = &head {
            fold.observe(head.read_at);
        }
        if head.as_ref().is_some_and(|head| head.position != *fold.position()) {
            // They are of two moments, and would be taken for a run whose owner is gone.
            continue;
        }
        if let Some(record) = fold.run(&run) {
            return Ok(attach(parts, &session, record, runtime.live(&session)));
        }
        let begin = begin(parts, run.clone(), head.as_ref()).await?;
        let alive = head.as_ref().is_some_and(Head::is_leased);
        let events = execute_events(&fold, &agent, &begin, &input, &options.tags, alive)?;
        let mut journal = journal(parts, &agent, fold, &run);
        let started = match head {
            Some(_) => journal.start(events.clone()).await?,
            None => create(&mut journal, &agent, &session, &options, events.clone()).await?,
        };
        match started {
            StartOutcome::Started => {
                return Ok(spawn(runtime, agent, journal, &options.hooks, events));
            }
            StartOutcome::Changed => {}
            StartOutcome::Leased { .. } => return Err(running(&session)),
        }
    }
    Err(busy(&session))
}

async fn create(
    journal: &mut Journal,
    agent: &AnyAgent,
    session: &SessionId,
    options: &ExecuteOptions,
    events: Vec<Event>,
) -> Result<StartOutcome> {
    let new = NewSession {
        agent: Arc::clone(agent.name()),
        root: session.clone(),
        parent: None,
        tags: options.tags.clone(),
    };
    match journal.create(new, events).await {
        Ok(()) => Ok(StartOutcome::Started),
        Err(error) if error.code() == ErrorCode::SessionExists && options.session.is_some() => {
            Ok(StartOutcome::Changed)
        }
        Err(error) => Err(error),
    }
}

pub(crate) async fn resume(
    runtime: &LocalRuntime,
    agent: AnyAgent,
    session: &SessionId,
    options: ResumeOptions,
) -> Result<RunHandle> {
    let parts = runtime.parts();
    parts.llm.check(agent.llm())?;
    let run = parts.ids.run();
    let mut after = options.after.clone();
    let mut waited = Duration::ZERO;
    for _ in 0..MAX_TRIES {
        let mut fold = load(&*parts.store, session).await?;
        if after.is_none() {
            after = fold.last_run().map(|run| run.id.clone());
        }
        let head = parts.store.head(session).await?;
        if let Some(head) = &head {
            fold.observe(head.read_at);
        }
        let begin = begin(parts, run.clone(), head.as_ref()).await?;
        let message = options.message.as_ref();
        let events = match resume_events(&fold, &agent, &begin, after.as_ref(), message) {
            Ok(events) => events,
            Err(error) => {
                parts.align_ended(session).await?;
                return Err(error);
            }
        };
        let mut journal = journal(parts, &agent, fold, &run);
        match journal.start(events.clone()).await? {
            StartOutcome::Started => {
                return Ok(spawn(runtime, agent, journal, &options.hooks, events));
            }
            StartOutcome::Changed => {}
            StartOutcome::Leased { until, now } => {
                let wait = until.since(now) + MARGIN;
                waited += wait;
                if waited > options.wait {
                    return Err(running(session).with_context("lease_until", until));
                }
                parts.clock.sleep(wait).await;
                let head = parts.store.head(session).await?;
                let renewed = head.and_then(|head| head.lease_until).is_some_and(|new| new > until);
                let same = load(&*parts.store, session).await?;
                if renewed && same.last_run().map(|run| &run.id) == after.as_ref() {
                    return Err(running(session));
                }
            }
        }
    }
    Err(busy(session))
}

/// Ends a session as aborted that has no live run.
pub(crate) async fn abort(
    runtime: &LocalRuntime,
    agent: AnyAgent,
    session: &SessionId,
    reason: Option<String>,
) -> Result<()> {
    let parts = runtime.parts();
    let run = parts.ids.run();
    for _ in 0..MAX_TRIES {
        let fold = load(&*parts.store, session).await?;
        let head = parts.store.head(session).await?;
        let begin = begin(parts, run.clone(), head.as_ref()).await?;
        let events = abort_events(&fold, &begin, parts.ids.request(), reason.clone())?;
        let mut journal = journal(parts, &agent, fold, &run);
        match journal.start(events.clone()).await? {
            StartOutcome::Started => {
                let driver = driver(runtime, agent, journal, &[]);
                let lease = lease(runtime, &driver);
                return driver.drive(lease, &events).await.map(drop);
            }
            StartOutcome::Changed => {}
            StartOutcome::Leased { .. } => return Err(running(session)),
        }
    }
    Err(busy(session))
}

async fn begin(parts: &Parts, run: RunId, head: Option<&Head>) -> Result<BeginRun> {
    let stream_from = match head {
        Some(head) => parts.streams.info(&head.session).await?.last_seq,
        None => 0,
    };
    Ok(BeginRun { run, runtime: RUNTIME.into(), stream_from })
}

fn journal(parts: &Parts, agent: &AnyAgent, session: Session, run: &RunId) -> Journal {
    let journal = JournalParts {
        store: Arc::clone(&parts.store),
        ids: Arc::clone(&parts.ids),
        clock: Arc::clone(&parts.clock),
        lease: parts.lease,
        durability: parts.durability,
    };
    Journal::new(journal, Arc::clone(agent), session, run.clone())
}

fn driver(
    runtime: &LocalRuntime,
    agent: AnyAgent,
    journal: Journal,
    execution: &[Arc<dyn AgentHooks>],
) -> Box<Driver> {
    let parts = runtime.parts();
    let session = journal.session().id().clone();
    let run = journal.session().last_run().map(|run| run.id.clone());
    let run = run.unwrap_or_else(|| RunId::from(""));
    let feed = Feed::new(
        Arc::clone(&parts.streams),
        Arc::clone(&parts.clock),
        Arc::clone(agent.name()),
        session.clone(),
        run.clone(),
    );
    Box::new(Driver {
        parts: Arc::clone(parts),
        hooks: Hooks::new(&agent, execution),
        agent,
        journal,
        feed,
        live: LiveRun::new(session, run),
        unsettled: Vec::new(),
        drain: runtime.drain().clone(),
    })
}

fn lease(runtime: &LocalRuntime, driver: &Driver) -> LeaseKeeper {
    let parts = runtime.parts();
    LeaseKeeper::new(
        Arc::clone(&parts.store),
        Arc::clone(&parts.clock),
        parts.lease,
        Arc::clone(&driver.live),
        runtime.shutdown_token().clone(),
    )
}

/// Carries the run out on a task of its own.
fn spawn(
    runtime: &LocalRuntime,
    agent: AnyAgent,
    journal: Journal,
    execution: &[Arc<dyn AgentHooks>],
    events: Vec<Event>,
) -> RunHandle {
    let driver = driver(runtime, agent, journal, execution);
    let lease = lease(runtime, &driver);
    let live = Arc::clone(&driver.live);
    let handle = handle(runtime.parts(), &live, driver.stream_from());
    runtime.spawn(live, Box::pin(async move { driver.drive(lease, &events).await }));
    handle
}

fn running(session: &SessionId) -> Error {
    Error::new(ErrorCode::AlreadyRunning, "the session has a live run")
        .with_context("session", session)
}

fn busy(session: &SessionId) -> Error {
    Error::new(ErrorCode::StoreBusy, "others change the session without pause")
        .with_context("session", session)
}
