//! Starts runs. The core crate decides which starts are legal; the journal appends a start
//! under the condition that no other process has the lease (`Guard::LeaseFree`), so exactly one start succeeds.

mod started_by;
mod turn_request;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::AnyAgent;
use helix_agents_core::clock::IdSourceExt as _;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::event::{ChildStart, Event, ParentRef};
use helix_agents_core::executor::{ExecuteOptions, Input, ResumeOptions, RunHandle, StopOptions};
use helix_agents_core::id::{RequestId, RunId, SessionId};
use helix_agents_core::panics::{Panicked, caught};
use helix_agents_core::session::{
    Journal, JournalConfig, MAX_CONFLICTS, Session, StartOutcome, StartRun, abort_events,
    execute_events, has_ready_child, is_already_done, resume_events, rewind_events, root_has_tags,
    terminate_events, too_many_conflicts,
};
use helix_agents_core::step::UndeliveredResults;
use helix_agents_core::store::{Head, NewSession};
use tokio_util::sync::CancellationToken;

use crate::context::RuntimeContext;
use crate::driver::{Driver, HookProgress};
use crate::engine::StartedRun;
use crate::handle::{attach, handle};
use crate::hook_chain::HookChain;
use crate::in_tool::is_in_tool;
use crate::lease_keeper::LeaseKeeper;
use crate::live::LiveRun;
use crate::run_ref::RunRef;
use crate::runtime::Runtime;
use crate::store_clock::StoreClock;
use crate::stream_writer::StreamWriter;
pub(crate) use started_by::StartedBy;
use turn_request::{TurnRequest, TurnTarget};

/// The poll interval while waiting for a lease, which may be released before it expires.
const LEASE_POLL: Duration = Duration::from_millis(200);

/// Added to each wait for a lease to expire, so that it has expired by the store's clock as well.
const CLOCK_MARGIN: Duration = Duration::from_millis(20);

pub(crate) async fn execute(
    runtime: &Runtime,
    agent: AnyAgent,
    input: Input,
    options: ExecuteOptions,
) -> Result<RunHandle> {
    let context = runtime.context();
    let session = match &options.session {
        Some(chosen) => SessionId::validated(chosen.as_str())?,
        None => context.ids.session(),
    };
    let run = match &options.run {
        Some(chosen) => RunId::validated(chosen.as_str())?,
        None => context.ids.run(),
    };
    let target = if options.session.is_some() { TurnTarget::Any } else { TurnTarget::New };
    let hooks = HookChain::new(&HookChain::none(), &agent, &options.hooks);
    let ExecuteOptions { mut tags, required_tags, budget, trace, .. } = options;
    tags.extend(required_tags.clone());
    let (parent, by) = (None, StartedBy::Caller);
    let turn =
        TurnRequest { session, run, target, tags, required_tags, parent, budget, trace, hooks, by };
    start_turn(runtime, agent, &input, turn).await
}

/// Starts a child's session, unless it was started already, and returns the start with the child's allowance.
///
/// # Errors
/// Returns [`ErrorCode::SessionExists`] if another call's session has the id, and the errors of `execute`.
pub(crate) async fn execute_child(
    runtime: &Runtime,
    agent: AnyAgent,
    input: &Input,
    child: ChildStart,
    parent: ParentRef,
    above: &HookChain,
) -> Result<ChildStart> {
    let context = runtime.context();
    let hooks = HookChain::new(above, &agent, &[]);
    let session = &child.session;
    let budget = child.allowance.map(|allowance| allowance.smaller(*agent.budget()));
    if context.store.head(session).await?.is_none() {
        let turn = TurnRequest {
            session: session.clone(),
            run: context.ids.run(),
            target: TurnTarget::New,
            tags: BTreeMap::new(),
            required_tags: BTreeMap::new(),
            parent: Some(parent.clone()),
            budget,
            trace: None,
            hooks,
            by: StartedBy::Parent { cleared: None },
        };
        match start_turn(runtime, agent, input, turn).await {
            Ok(_) => return Ok(ChildStart { allowance: budget, ..child }),
            Err(error) if error.code() == ErrorCode::SessionExists => {}
            Err(error) => return Err(error),
        }
    }
    // The allowance that was taken from the parent's budget at the first start still applies.
    let fold = context.logs().overview(session).await?;
    if fold.parent().is_some_and(|recorded| recorded.is_same_call(&parent)) {
        let allowance = child.allowance.map(|_| *fold.recorded_budget());
        return Ok(ChildStart { allowance, ..child });
    }
    Err(Error::new(ErrorCode::SessionExists, "another call has a session with this id")
        .with_context("session", session))
}

/// Starts another turn of a child's session.
pub(crate) async fn continue_child(
    runtime: &Runtime,
    agent: AnyAgent,
    input: &Input,
    session: &SessionId,
    run: &RunId,
    above: &HookChain,
) -> Result<RunHandle> {
    let turn = TurnRequest {
        session: session.clone(),
        run: run.clone(),
        target: TurnTarget::Existing,
        tags: BTreeMap::new(),
        required_tags: BTreeMap::new(),
        parent: None,
        budget: None,
        trace: None,
        hooks: HookChain::new(above, &agent, &[]),
        by: StartedBy::Parent { cleared: None },
    };
    start_turn(runtime, agent, input, turn).await
}

async fn start_turn(
    runtime: &Runtime,
    agent: AnyAgent,
    input: &Input,
    turn: TurnRequest,
) -> Result<RunHandle> {
    let context = runtime.context();
    check_model(context, &agent)?;
    let TurnRequest { session, run, target, tags, required_tags, parent, budget, trace, hooks, by } =
        turn;
    let may_exist = target != TurnTarget::New;
    for _ in 0..MAX_CONFLICTS {
        let found = if may_exist { context.logs().find(&session).await? } else { None };
        let (head, fold) = match found {
            Some((head, fold)) => (Some(head), fold),
            // The session of a child may have been deleted with its tree.
            None if target == TurnTarget::Existing => return Err(not_found(&session)),
            None => (None, Session::new(session.clone())),
        };
        if head.as_ref().is_some_and(|head| !head.created.has_tags(&required_tags)) {
            return Err(not_found(&session));
        }
        // A chosen id may have belonged to an earlier session.
        if may_exist && head.is_none() && parent.is_none() {
            context.clear_stream(&session).await;
        }
        // A caller that sends a message again may not know that it was queued.
        let is_queued = fold.knows_message(&RequestId::from(run.as_str()));
        if let Some(record) = fold.run(&run).or_else(|| fold.last_run().filter(|_| is_queued)) {
            let run_ref = RunRef::new(&fold, record);
            return Ok(attach(runtime, run_ref, &fold, record, runtime.live(&session)));
        }
        let mut start = prepare_start(runtime, run.clone(), &fold, parent.as_ref()).await?;
        start.parent.clone_from(&parent);
        start.budget = budget;
        start.trace = trace;
        start.clears = by.clears(&fold);
        let alive = head.as_ref().is_some_and(Head::is_leased);
        let events = execute_events(&fold, &agent, &start, input, &tags, alive)?;
        let new = head.is_none().then(|| NewSession {
            agent: Arc::clone(agent.name()),
            root: parent.as_ref().map_or(&session, |parent| &parent.root).clone(),
            parent: parent.as_ref().map(|parent| parent.session.clone()),
            tags: tags.clone(),
        });
        let journal = journal(context, &agent, fold, &run);
        let (agent, hooks) = (Arc::clone(&agent), hooks.clone());
        let launch = Launch { runtime: runtime.clone(), agent, journal, hooks, events, new };
        match launch.launch().await {
            Ok(Launched::Started(handle)) => return Ok(handle),
            Ok(Launched::Changed) => {}
            Ok(Launched::Leased { .. }) => return Err(running(&session)),
            Err(error) if error.code() == ErrorCode::SessionExists && may_exist => {}
            Err(error) if may_be_replaced(&error, &required_tags) => {}
            Err(error) => return Err(error),
        }
    }
    Err(too_many_conflicts(&session))
}

pub(crate) async fn resume(
    runtime: &Runtime,
    agent: AnyAgent,
    session: &SessionId,
    options: ResumeOptions,
    above: &HookChain,
    by: &StartedBy,
) -> Result<RunHandle> {
    let context = runtime.context();
    check_model(context, &agent)?;
    let run = context.ids.run();
    let hooks = HookChain::new(above, &agent, &options.hooks);
    let mut after = options.after.clone();
    let mut waited = Duration::ZERO;
    let mut cleared = None;
    for _ in 0..MAX_CONFLICTS {
        let (head, fold) = context.logs().find(session).await?.ok_or_else(|| not_found(session))?;
        if !root_has_tags(&*context.store, &head, &options.required_tags).await? {
            return Err(not_found(session));
        }
        // An interrupt that is requested while this function waits for the lease is not cleared.
        let cleared = cleared.get_or_insert_with(|| by.clears(&fold));
        if after.is_none() {
            after = fold.last_run().map(|run| run.id.clone());
        }
        let mut start = prepare_start(runtime, run.clone(), &fold, None).await?;
        start.budget = options.budget;
        start.trace = options.trace;
        start.clears.clone_from(cleared);
        let message = options.message.as_ref();
        let events = by.check(&fold).and_then(|()| match options.checkpoint {
            Some(to) => rewind_events(&fold, &agent, &start, after.as_ref(), to, message),
            None => resume_events(&fold, &agent, &start, after.as_ref(), message),
        });
        let events = match events {
            Ok(events) => events,
            Err(error) => {
                context.show_end(session).await;
                return Err(error);
            }
        };
        let journal = journal(context, &agent, fold, &run);
        let (agent, hooks) = (Arc::clone(&agent), hooks.clone());
        let launch = Launch { runtime: runtime.clone(), agent, journal, hooks, events, new: None };
        match launch.launch().await {
            Err(error) if may_be_replaced(&error, &options.required_tags) => {}
            Err(error) => return Err(error),
            Ok(Launched::Started(handle)) => return Ok(handle),
            Ok(Launched::Changed) => {}
            Ok(Launched::Leased { until, now }) => {
                let wait = until.since(now) + CLOCK_MARGIN;
                waited += wait;
                if waited > options.wait {
                    return Err(running(session).with_context("lease_until", until));
                }
                let renewed = wait_for_lease(context, session, wait, until).await?;
                let same = context.logs().overview(session).await?;
                if renewed && same.last_run().map(|run| &run.id) == after.as_ref() {
                    return Err(running(session));
                }
            }
        }
    }
    Err(too_many_conflicts(session))
}

/// Resumes a session like [`resume`], but returns `None` if another process resumed it first. Pending stop requests
/// stay in effect, except that a run started by the parent ignores an interrupt that was cleared for the parent.
pub(crate) async fn resume_if_first(
    runtime: &Runtime,
    agent: AnyAgent,
    session: &SessionId,
    options: ResumeOptions,
    above: &HookChain,
    by: &StartedBy,
) -> Result<Option<RunHandle>> {
    match resume(runtime, agent, session, options, above, by).await {
        Ok(handle) => Ok(Some(handle)),
        Err(error) if is_already_done(&error) => {
            tracing::debug!(%session, %error, "another process was first");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Waits until a lease has expired, was released or was renewed. Returns `true` if it was renewed.
async fn wait_for_lease(
    context: &RuntimeContext,
    session: &SessionId,
    wait: Duration,
    until: Timestamp,
) -> Result<bool> {
    let mut left = wait;
    while !left.is_zero() {
        let pause = left.min(LEASE_POLL);
        context.clock.sleep(pause).await;
        left -= pause;
        let head = context.store.head(session).await?;
        match head.and_then(|head| head.lease_until) {
            Some(same) if same == until => {}
            other => return Ok(other.is_some_and(|new| new > until)),
        }
    }
    Ok(false)
}

/// Marks a session without an active run as aborted. With `permanently`, a completed session is aborted, too, so that
/// it accepts no further messages. `above` contains the hooks of the ancestor sessions.
pub(crate) async fn abort(
    runtime: &Runtime,
    agent: AnyAgent,
    session: &SessionId,
    options: &StopOptions,
    permanently: bool,
    above: &HookChain,
) -> Result<()> {
    let context = runtime.context();
    let mut run = context.ids.run();
    let mut progress = HookProgress::default();
    for _ in 0..MAX_CONFLICTS {
        let (head, fold) = context.logs().find(session).await?.ok_or_else(|| not_found(session))?;
        if !root_has_tags(&*context.store, &head, &options.required_tags).await? {
            return Err(not_found(session));
        }
        let is_last = |run: &RunId| fold.last_run().is_some_and(|last| last.id == *run);
        if !options.run.as_ref().is_none_or(is_last) {
            let message = "another run has started since; there is nothing to stop";
            return Err(
                Error::new(ErrorCode::NothingToStop, message).with_context("session", session)
            );
        }
        if head.is_leased() {
            return Err(running(session));
        }
        if progress.reset_after(fold.last_run().map(|run| &run.id)) {
            run = context.ids.run();
        }
        let start = prepare_start(runtime, run.clone(), &fold, None).await?;
        let has_crashed = fold.current_run().is_some();
        let (request, reason) = (context.ids.request(), options.reason.clone());
        let events = if permanently {
            terminate_events(&fold, &start, request, reason)
        } else {
            abort_events(&fold, &start, request, reason)?
        };
        let mut journal = journal(context, &agent, fold, &run);
        journal.apply_facts(&events)?;
        let hooks = HookChain::new(above, &agent, &[]);
        let mut driver = driver(runtime, Arc::clone(&agent), journal, hooks);
        driver.answer_aborted(&mut progress, has_crashed).await?;
        match context.tasks.detach(Box::pin(start_and_end(driver))).await {
            Err(error) if may_be_replaced(&error, &options.required_tags) => {}
            Err(error) => return Err(error),
            Ok(StartOutcome::Started) => return Ok(()),
            Ok(StartOutcome::Changed) => {}
            Ok(StartOutcome::Leased { .. }) => return Err(running(session)),
        }
    }
    Err(too_many_conflicts(session))
}

/// Returns `true` if the session was replaced by another one with its id, which may lack the required tags. The caller
/// then checks them again. Without required tags, a replaced session is an error.
fn may_be_replaced(error: &Error, required_tags: &BTreeMap<String, String>) -> bool {
    error.code() == ErrorCode::HistoryLost && !required_tags.is_empty()
}

async fn prepare_start(
    runtime: &Runtime,
    run: RunId,
    fold: &Session,
    parent: Option<&ParentRef>,
) -> Result<StartRun> {
    let context = runtime.context();
    let exists = fold.position().version > 0;
    let root = parent.map_or(fold.root(), |parent| &parent.root);
    let known = match exists || parent.is_some() {
        true => context.stream_info(root).await,
        false => None,
    };
    let stream_from = match known {
        Some(known) => {
            let in_line =
                known.watermark_version(fold.id(), fold.created_at()) >= fold.position().version;
            let ended = exists && fold.current_run().is_none();
            if ended && (!in_line || !fold.children_to_show().is_empty()) {
                // Missing chunks of the previous run must not appear as part of this run.
                context.show_end(fold.id()).await;
                let known = context.stream_info(root).await.unwrap_or(known);
                known.last_seq
            } else {
                known.last_seq
            }
        }
        // An unavailable stream does not prevent a start. Use the last known position.
        None => fold.last_run().map_or(0, |run| run.stream_from),
    };
    let has_ready_child = has_ready_child(context.logs(), fold).await?;
    Ok(StartRun { has_ready_child, ..StartRun::new(run, runtime.engine().kind(), stream_from) })
}

pub(crate) fn journal(
    context: &RuntimeContext,
    agent: &AnyAgent,
    session: Session,
    run: &RunId,
) -> Journal {
    let journal = JournalConfig {
        store: Arc::clone(&context.store),
        ids: Arc::clone(&context.ids),
        lease: context.lease,
        durability: context.durability,
        observers: context.observers.clone(),
    };
    Journal::new(journal, Arc::clone(agent), session, run.clone())
}

/// Checks that the adapter supports the agent's model.
fn check_model(context: &RuntimeContext, agent: &AnyAgent) -> Result<()> {
    let adapter = agent.adapter().unwrap_or(&context.llm);
    let check = || adapter.check(agent.llm());
    caught("the model adapter", check).map_err(Panicked::into_error)?
}

pub(crate) fn driver(
    runtime: &Runtime,
    agent: AnyAgent,
    journal: Journal,
    hooks: HookChain,
) -> Box<Driver> {
    let context = runtime.context();
    let session = journal.session().id().clone();
    let run = journal.session().last_run().map(|run| run.id.clone());
    let run = run.unwrap_or_else(|| RunId::from(""));
    let stream_writer = stream_writer(context, &agent, journal.session(), run.clone());
    let opened_at = journal.session().position().version;
    let store_clock = StoreClock::read(journal.session().clock(), context.clock.monotonic());
    let mut driver = Box::new(Driver {
        context: Arc::clone(context),
        runtime: runtime.clone(),
        inherited_hooks: hooks.clone(),
        hooks,
        agent,
        journal,
        stream_writer,
        live: LiveRun::new(session, run),
        unsettled: Vec::new(),
        late_calls: Vec::new(),
        opened_at,
        store_clock,
        results: UndeliveredResults::default(),
        in_work_items: false,
        interrupt: CancellationToken::new(),
    });
    driver.drop_hooks_after_max_takeovers();
    driver
}

/// Creates the stream writer for the last run of a session.
fn stream_writer(
    context: &RuntimeContext,
    agent: &AnyAgent,
    session: &Session,
    run: RunId,
) -> StreamWriter {
    let (root, agent) = (session.root().clone(), Arc::clone(agent.name()));
    StreamWriter::new(context, root, agent, session.stream_writer(), run)
}

/// Creates the lease keeper of a run that was started by an append sent at this time.
fn lease(driver: &Driver, sent: Duration) -> LeaseKeeper {
    let (LiveRun { session, run, .. }, context) = (&*driver.live, &driver.context);
    LeaseKeeper::new(context, session.clone(), run.clone(), sent.saturating_add(context.lease))
}

/// Starts and completes a run whose first append also contains its end.
async fn start_and_end(mut driver: Box<Driver>) -> Result<StartOutcome> {
    let start_events = driver.journal.staged().to_vec();
    let sent = driver.context.clock.monotonic();
    let started = driver.journal.start(Vec::new()).await?;
    if matches!(started, StartOutcome::Started) {
        let (context, run) = (Arc::clone(&driver.context), driver.live.run.clone());
        // The fencing token is known only after the run has started.
        driver.stream_writer =
            stream_writer(&context, &driver.agent, driver.journal.session(), run);
        let mut lease = lease(&driver, sent);
        let opened = driver.open(&mut lease, &start_events).await;
        driver.end(&mut lease, opened).await?;
    }
    Ok(started)
}

/// A run that is about to start.
struct Launch {
    runtime: Runtime,
    agent: AnyAgent,
    journal: Journal,
    hooks: HookChain,
    events: Vec<Event>,
    /// The session to create with the run, if it is new.
    new: Option<NewSession>,
}

/// The result of a launch.
enum Launched {
    /// The run has started.
    Started(RunHandle),
    /// The log was modified concurrently.
    Changed,
    /// The session has an owner.
    Leased { until: Timestamp, now: Timestamp },
}

impl Launch {
    /// Records the run in the log and hands it to the engine, in a detached task. Otherwise a caller that drops its
    /// future between these two steps would leave a recorded run without a worker until the lease expires.
    async fn launch(self) -> Result<Launched> {
        let (runtime, in_tool) = (self.runtime.clone(), is_in_tool());
        runtime.context().tasks.detach(Box::pin(self.drive(in_tool))).await
    }

    async fn drive(self, in_tool: bool) -> Result<Launched> {
        let Self { runtime, agent, mut journal, hooks, events, new } = self;
        let superseded =
            journal.session().current_run().map(|run| RunRef::new(journal.session(), run));
        // The task is registered, so a shutdown that starts later waits for it. If the shutdown has already started,
        // this check fails.
        runtime.context().check_open()?;
        let sent = runtime.context().clock.monotonic();
        let started = match new {
            Some(new) => {
                journal.create(new, events.clone()).await?;
                StartOutcome::Started
            }
            None => journal.start(events.clone()).await?,
        };
        match started {
            StartOutcome::Started => {}
            StartOutcome::Changed => return Ok(Launched::Changed),
            StartOutcome::Leased { until, now } => return Ok(Launched::Leased { until, now }),
        }
        let driver = driver(&runtime, agent, journal, hooks);
        let lease = lease(&driver, sent);
        let run_ref = driver.run_ref();
        let (root, from) = (driver.journal.session().root().clone(), driver.stream_from());
        if let Some(superseded) = &superseded {
            runtime.context().local_runs().remove(&superseded.run);
        }
        let started = StartedRun { driver, lease, events, superseded, in_tool };
        match runtime.engine().start(started).await {
            Ok(live) => Ok(Launched::Started(handle(&runtime, run_ref, root, from, live))),
            Err(error) => {
                // The run is in the log; another process can take it over immediately.
                runtime.release_run(&run_ref).await;
                Err(error)
            }
        }
    }
}

fn running(session: &SessionId) -> Error {
    Error::new(ErrorCode::AlreadyRunning, "the session has an active run")
        .with_context("session", session)
}

fn not_found(session: &SessionId) -> Error {
    Error::new(ErrorCode::SessionNotFound, "there is no session with this id")
        .with_context("session", session)
}

#[cfg(test)]
mod tests;
