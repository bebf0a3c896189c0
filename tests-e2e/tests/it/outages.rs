//! Servers that crash and restart while a hundred runs use them: the store's server, the engine's, or a server of both.
//!
//! The process that executes the runs survives, so each call is executed once: appends and stream batches are retried
//! until the server is available. Redis with an append-only file that is flushed on every write keeps whole streams.
//! PostgreSQL does not flush stream batches synchronously, so a crash may lose the last ones; what remains is shown
//! once. An engine that was unavailable assigns a work item again if it does not know its result; then the result is in
//! the log.

mod server;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use helix_agents::agent::{Agent, AgentRegistry};
use helix_agents::event::{Event, ToolOutcome};
use helix_agents::executor::ExecuteOptions;
use helix_agents::id::SessionId;
use helix_agents::session::{Durability, RunStatus, load, load_events};
use helix_agents::store::StateStore;
use helix_agents::store_postgres::PostgresStore;
use helix_agents::store_redis::RedisStore;
use helix_agents::store_sqlite::SqliteStore;
use helix_agents::stream::{ChunkKind, StoredChunk, StreamManager};
use helix_agents::tool::{EffectClass, Tool, ToolContext};
use helix_agents_conformance::normalise;
use helix_agents_test::{Reply, ScriptedLlm, within};
use helix_agents_testkit::trees::Stores;
use helix_agents_tests_e2e::runtimes::{self, Opened, RuntimeConfig};
use helix_agents_tests_e2e::stores::Kind;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::support::{Extent, On, wanted, write_report_on};
use server::Server;

const RUNS: usize = 100;

/// The number of calls of each run.
const CALLS: usize = 5;

/// The lease. Owners keep it while the server is unavailable.
const LEASE: Duration = Duration::from_secs(20);

/// The time that cancelled work may take to stop.
const GRACE: Duration = Duration::from_secs(5);

/// The duration of the outage, in addition to the server's startup.
const OUTAGE: Duration = Duration::from_secs(1);

/// The executed calls by idempotency key.
#[derive(Debug, Default)]
struct Trace {
    calls: Mutex<BTreeMap<String, Vec<String>>>,
    count: watch::Sender<usize>,
}

impl Trace {
    fn note(&self, cx: &ToolContext) {
        let call = format!("{}#{}", cx.session(), cx.call());
        let mut calls = self.calls.lock().unwrap();
        calls.entry(cx.idempotency_key().to_string()).or_default().push(call);
        self.count.send_modify(|count| *count += 1);
    }
}

fn tool(name: &str, trace: &Arc<Trace>) -> Tool {
    let trace = Arc::clone(trace);
    Tool::function(name, "Is noted.", move |_: Value, cx: ToolContext| {
        let trace = Arc::clone(&trace);
        async move {
            trace.note(&cx);
            Ok("done".to_owned())
        }
    })
}

fn agent(trace: &Arc<Trace>) -> Agent {
    let agent = Agent::builder("worker").system_prompt("You work.").model("scripted");
    let pay = tool("pay", trace).effect(EffectClass::AtMostOnce);
    agent.tool(tool("act", trace)).tool(pay).build().unwrap()
}

fn script() -> ScriptedLlm {
    ScriptedLlm::new([
        Reply::tool_call("act", json!({})),
        Reply::calls([("pay", json!({})), ("act", json!({}))]),
        Reply::tool_call("act", json!({})),
        Reply::tool_call("pay", json!({})),
        Reply::text("All is done."),
    ])
}

/// The part of the streams that survives a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Streams {
    /// Everything that was acknowledged.
    Whole,
    /// Everything except the last chunks before the crash.
    LosesLast,
}

/// Returns what a user sees of a session that has completed. The last chunks may be written after the run's end.
async fn shown(streams: &dyn StreamManager, session: &SessionId) -> Vec<String> {
    let mut reader = streams.read(session, 1).await.unwrap();
    let mut chunks: Vec<StoredChunk> = Vec::new();
    while !chunks.last().is_some_and(|last| matches!(last.chunk.kind, ChunkKind::RunEnded { .. })) {
        chunks.push(within(reader.next()).await.unwrap().unwrap());
    }
    normalise::stream(&chunks).lines().map(str::to_owned).collect()
}

/// Compares a stream with the expected one. Returns the difference, if there is one.
fn compare(is: &[String], expected: &[String], streams: Streams) -> Result<(), String> {
    let mut rest = expected.to_vec();
    let is_once = is.iter().all(|line| {
        let found = rest.iter().position(|candidate| candidate == line);
        found.map(|index| rest.remove(index)).is_some()
    });
    let is_whole = is == expected;
    if is_whole || streams == Streams::LosesLast && is_once && is.last() == expected.last() {
        return Ok(());
    }
    Err(format!("{}\n--- not\n{}", is.join("\n"), expected.join("\n")))
}

/// The runtime and store of a hundred runs.
struct Setting {
    /// The runtime's URL.
    runtime: String,
    store: Stores,
    streams: Streams,
}

impl Setting {
    fn on<S: StateStore + StreamManager + Clone>(
        runtime: String,
        store: S,
        streams: Streams,
    ) -> Self {
        let store = Stores { state: Arc::new(store.clone()), streams: Arc::new(store) };
        Self { runtime, store, streams }
    }

    /// Opens the runtime with this agent.
    async fn open(&self, agent: &Agent) -> Opened {
        let registry = AgentRegistry::default();
        registry.replace(agent);
        let config = RuntimeConfig {
            store: self.store.clone(),
            llm: Arc::new(script()),
            registry,
            durability: Durability::PerEffect,
            lease: LEASE,
            grace: GRACE,
            observers: Vec::new(),
        };
        runtimes::open(&self.runtime, config).await.unwrap()
    }
}

/// Crashes the server after `crash_at` executed calls and checks the runs. Returns the problem, if there is one.
async fn problem(server: &mut Server, setting: &Setting, crash_at: usize) -> Result<(), String> {
    let trace = Arc::new(Trace::default());
    let agent = agent(&trace);
    let opened = setting.open(&agent).await;
    let agent = agent.erased();
    let mut runs = JoinSet::new();
    let run = |session: SessionId| {
        let (runtime, agent) = (Arc::clone(&opened.executor), Arc::clone(&agent));
        async move {
            let options = ExecuteOptions::default().session(session.clone());
            let outcome =
                async { runtime.execute(agent, "go".into(), options).await?.result().await };
            match outcome.await {
                Ok(result) if result.status == RunStatus::Completed => Ok(()),
                Ok(result) => Err(format!("{session} {:?}: {:?}", result.status, result.error)),
                Err(error) => Err(format!("{session}: {error:?}")),
            }
        }
    };
    let session = |number: usize| SessionId::from(format!("{crash_at}-{number}").as_str());
    for number in 0..RUNS {
        runs.spawn(run(session(number)));
    }
    let mut count = trace.count.subscribe();
    count.wait_for(|count| *count >= crash_at).await.unwrap();
    tokio::task::block_in_place(|| server.crash());
    let before = *count.borrow();
    assert!(before < RUNS * CALLS, "all calls were done before the server crashed");
    tokio::time::sleep(OUTAGE).await;
    tokio::task::block_in_place(|| server.restart());
    let ended = runs.join_all().await;
    let wrong: Vec<_> = ended.into_iter().filter_map(Result::err).collect();
    if !wrong.is_empty() {
        return Err(format!("{} runs did not complete:\n{}", wrong.len(), wrong.join("\n")));
    }

    // A run without an outage.
    run(session(RUNS)).await?;
    let (state, streams) = (&*setting.store.state, &*setting.store.streams);
    let undisturbed = load_events(state, &session(RUNS), 0).await.unwrap();
    let expected = normalise::log(&undisturbed);
    let expected_stream = shown(streams, &session(RUNS)).await;
    let mut executed = trace.calls.lock().unwrap().clone();
    for number in 0..=RUNS {
        let session = session(number);
        // Folding the log checks that it is legal.
        load(state, &session).await.map_err(|error| format!("{session}: {error:?}"))?;
        let log = load_events(state, &session, 0).await.unwrap();
        let is = normalise::log(&log);
        if is != expected {
            return Err(format!("{session} differs:\n{is}\n--- not\n{expected}"));
        }
        let shown = shown(streams, &session).await;
        compare(&shown, &expected_stream, setting.streams)
            .map_err(|text| format!("{session} shows\n{text}"))?;
        for recorded in log {
            let Event::ToolFinished(finish) = recorded.event else { continue };
            let call = format!("{session}#{}", finish.call);
            let times: Vec<_> = executed.extract_if(.., |_, calls| calls.contains(&call)).collect();
            let is_success = matches!(finish.outcome, ToolOutcome::Success(_));
            if !is_success || times.len() != 1 || times.iter().any(|(_, calls)| calls.len() != 1) {
                return Err(format!(
                    "the outcome of {call} is {:?}, and it ran: {times:?}",
                    finish.outcome
                ));
            }
        }
    }
    executed.is_empty().then_some(()).ok_or_else(|| format!("not on record: {executed:?}"))
}

/// Crashes the server in the middle, and with `HELIX_FULL=1` also near the start and the end.
async fn outages(holds: &str, kind: &Kind, mut server: Server, setting: Setting) {
    let full = Extent::on(kind) == Extent::Full;
    let moments: &[usize] = if full { &[1, 100, 200, 300, 400] } else { &[200] };
    let mut report = Vec::new();
    let mut problems = Vec::new();
    for crash_at in moments {
        let outcome = problem(&mut server, &setting, *crash_at).await;
        report.push(json!({ "name": "server crashes", "ok": outcome.is_ok() }));
        problems.extend(outcome.err().map(|text| format!("at call {crash_at}: {text}")));
    }
    let (runtime, _) = setting.runtime.split_once(':').unwrap();
    write_report_on(runtime, kind, [holds, "100 runs", "per_effect"], &report);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The URL of the runtime that has no server.
const LOCAL: &str = "local:";

/// The checked properties: an outage of the store's server, and of the engine's.
const OF_STORE: &str = "outage of the server";
const OF_ENGINE: &str = "outage of the engine";

/// Crashes the store's server, which may also be the engine's.
async fn crash_of_postgres(runtime: impl FnOnce(&Server) -> String) {
    let Some(kind) = wanted("postgres", On::Everywhere) else { return };
    let server = Server::postgres();
    let store = PostgresStore::open(&server.url).await.unwrap();
    let setting = Setting::on(runtime(&server), store, Streams::LosesLast);
    outages(OF_STORE, kind, server, setting).await;
}

/// Crashes the server that only the runtime's engine uses.
async fn crash_of_the_engine(runtime: &str, server: Server) {
    let Some(kind) = wanted("sqlite", On::Everywhere) else { return };
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("runs.db")).await.unwrap();
    let setting = Setting::on(engine(runtime, &server), store, Streams::Whole);
    outages(OF_ENGINE, kind, server, setting).await;
}

/// Returns the URL of a runtime whose engine uses this server.
fn engine(runtime: &str, server: &Server) -> String {
    runtimes::Kind::named(runtime).unwrap().place_on(&server.url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_runs_survive_a_crash_of_postgres() {
    crash_of_postgres(|_| LOCAL.to_owned()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_runs_survive_a_crash_of_redis() {
    let Some(kind) = wanted("redis", On::Everywhere) else { return };
    let server = Server::redis();
    let store = RedisStore::open(&server.url).await.unwrap();
    let setting = Setting::on(LOCAL.to_owned(), store, Streams::Whole);
    outages(OF_STORE, kind, server, setting).await;
}

mod durable {
    use super::*;

    /// DBOS's tables are on the same server as the store.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_hundred_runs_survive_a_crash_of_postgres() {
        crash_of_postgres(|server| engine("durable", server)).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_hundred_runs_survive_a_crash_of_the_engine() {
        crash_of_the_engine("durable", Server::postgres()).await;
    }
}

mod temporal {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_hundred_runs_survive_a_crash_of_postgres() {
        crash_of_postgres(|_| runtimes::Kind::named("temporal").unwrap().place()).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_hundred_runs_survive_a_crash_of_the_engine() {
        crash_of_the_engine("temporal", Server::temporal()).await;
    }
}
