//! Servers that crash and come back while a hundred runs are under way on them.
//!
//! The process that carries out the runs lives on, so each of their calls is carried out once: what
//! an append was to record is asked again until the server has it. So are the batches of the streams.
//! A Redis that confirms what is on its disk shows each stream whole. PostgreSQL is not waited for with
//! batches, so a crash may take back the last of them; what is there is there once.

mod server;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use helix_agents::agent::{Agent, AnyAgent};
use helix_agents::event::{Event, ToolOutcome};
use helix_agents::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents::id::SessionId;
use helix_agents::runtime_local::LocalRuntime;
use helix_agents::session::{RunStatus, load, load_events};
use helix_agents::store::StateStore;
use helix_agents::store_postgres::PostgresStore;
use helix_agents::store_redis::RedisStore;
use helix_agents::stream::{StoredChunk, StreamManager};
use helix_agents::tool::{EffectClass, Tool, ToolContext};
use helix_agents_testkit::gate::within;
use helix_agents_testkit::normalise;
use helix_agents_testkit::scripted::{Reply, ScriptedLlm};
use helix_agents_tests_e2e::stores::Kind;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::support::{Extent, On, wanted, write_report};
use server::Server;

const RUNS: usize = 100;

/// Those of each run.
const CALLS: usize = 5;

/// How long the server is away, beside the time that it takes to start.
const AWAY: Duration = Duration::from_secs(1);

/// What was carried out: the calls by idempotency key, each time.
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

fn agent(trace: &Arc<Trace>) -> AnyAgent {
    let agent = Agent::builder("worker").system_prompt("You work.").model("scripted");
    let pay = tool("pay", trace).effect(EffectClass::AtMostOnce);
    agent.tool(tool("act", trace)).tool(pay).build().unwrap().erased()
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

/// What a crash leaves of the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Streams {
    /// All that was acknowledged.
    Whole,
    /// All but the last moments before it.
    Lately,
}

/// What a person sees of a session that has ended.
async fn shown(streams: &dyn StreamManager, session: &SessionId) -> Vec<String> {
    let last = streams.info(session).await.unwrap().last_seq;
    let mut reader = streams.read(session, 1).await.unwrap();
    let mut chunks: Vec<StoredChunk> = Vec::new();
    while chunks.last().is_none_or(|it| it.seq < last) {
        chunks.push(within(reader.next()).await.unwrap().unwrap());
    }
    normalise::stream(&chunks).lines().map(str::to_owned).collect()
}

/// What is wrong with what is shown, if anything.
fn compare(is: &[String], expected: &[String], streams: Streams) -> Result<(), String> {
    let mut rest = expected.to_vec();
    let is_once = is.iter().all(|line| {
        let found = rest.iter().position(|it| it == line);
        found.map(|index| rest.remove(index)).is_some()
    });
    let is_whole = is == expected;
    if is_whole || streams == Streams::Lately && is_once && is.last() == expected.last() {
        return Ok(());
    }
    Err(format!("{}\n--- not\n{}", is.join("\n"), expected.join("\n")))
}

/// What is wrong with the runs if the server crashes once so many calls were carried out, if anything.
async fn problem<S: StateStore + StreamManager + Clone>(
    server: &mut Server,
    store: S,
    streams: Streams,
    crash_at: usize,
) -> Result<(), String> {
    let trace = Arc::new(Trace::default());
    let runtime = LocalRuntime::builder().store(store.clone()).llm(script()).build().unwrap();
    let agent = agent(&trace);
    let mut runs = JoinSet::new();
    let run = |session: SessionId| {
        let (runtime, agent) = (runtime.clone(), Arc::clone(&agent));
        async move {
            let options = ExecuteOptions::default().session(session.clone());
            let told = async { runtime.execute(agent, "go".into(), options).await?.result().await };
            match told.await {
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
    assert!(before < RUNS * CALLS, "all was done when the server crashed");
    tokio::time::sleep(AWAY).await;
    tokio::task::block_in_place(|| server.go_on());
    let ended = runs.join_all().await;
    let wrong: Vec<_> = ended.into_iter().filter_map(Result::err).collect();
    if !wrong.is_empty() {
        return Err(format!("{} runs did not complete:\n{}", wrong.len(), wrong.join("\n")));
    }

    // One that nothing happened to.
    run(session(RUNS)).await?;
    let undisturbed = load_events(&store, &session(RUNS), 0).await.unwrap();
    let expected = normalise::log(&undisturbed);
    let expected_stream = shown(&store, &session(RUNS)).await;
    let mut executed = trace.calls.lock().unwrap().clone();
    for number in 0..=RUNS {
        let session = session(number);
        // Folding it shows that it is legal.
        load(&store, &session).await.map_err(|error| format!("{session}: {error:?}"))?;
        let log = load_events(&store, &session, 0).await.unwrap();
        let is = normalise::log(&log);
        if is != expected {
            return Err(format!("{session} is another:\n{is}\n--- not\n{expected}"));
        }
        let shown = shown(&store, &session).await;
        compare(&shown, &expected_stream, streams)
            .map_err(|text| format!("{session} shows\n{text}"))?;
        for recorded in log {
            let Event::ToolFinished(finish) = recorded.event else { continue };
            let call = format!("{session}#{}", finish.call);
            let times: Vec<_> = executed.extract_if(.., |_, calls| calls.contains(&call)).collect();
            let is_success = matches!(finish.outcome, ToolOutcome::Success(_));
            if !is_success || times.len() != 1 || times.iter().any(|(_, calls)| calls.len() != 1) {
                return Err(format!("{call} came to {:?} and ran: {times:?}", finish.outcome));
            }
        }
    }
    executed.is_empty().then_some(()).ok_or_else(|| format!("not on record: {executed:?}"))
}

/// Crashes in the middle; with `HELIX_FULL=1` also near the beginning and the end.
async fn outages<S: StateStore + StreamManager + Clone>(
    kind: &Kind,
    mut server: Server,
    store: S,
    streams: Streams,
) {
    let full = Extent::on(kind) == Extent::Full;
    let moments: &[usize] = if full { &[1, 100, 200, 300, 400] } else { &[200] };
    let mut report = Vec::new();
    let mut problems = Vec::new();
    for crash_at in moments {
        let outcome = problem(&mut server, store.clone(), streams, *crash_at).await;
        report.push(json!({ "name": "server crashes", "ok": outcome.is_ok() }));
        problems.extend(outcome.err().map(|text| format!("at call {crash_at}: {text}")));
    }
    write_report(kind, ["outage of the server", "100 runs", "per_effect"], &report);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_runs_outlive_a_crash_of_postgres() {
    let Some(kind) = wanted("postgres", On::Everywhere) else { return };
    let server = Server::postgres();
    let store = PostgresStore::open(&server.url).await.unwrap();
    outages(kind, server, store, Streams::Lately).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_runs_outlive_a_crash_of_redis() {
    let Some(kind) = wanted("redis", On::Everywhere) else { return };
    let server = Server::redis();
    let store = RedisStore::open(&server.url).await.unwrap();
    outages(kind, server, store, Streams::Whole).await;
}
