//! Recovery of runs after process crashes.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use helix_agents_core::agent::Agent;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions, ResumeOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::message::Message;
use helix_agents_core::session::{RunStatus, load};
use helix_agents_core::tool::{EffectClass, Tool, ToolContext};
use helix_agents_runtime_durable::DurableRuntimeBuilder;
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_sqlite::SqliteStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use serde_json::json;

use crate::support::{
    Count, Process, TestApp, Word, act, acts_once, counting, registry, scratch, teller,
};

fn in_session(id: &str) -> ExecuteOptions {
    ExecuteOptions::default().session(SessionId::from(id))
}

/// A lease that does not expire during a test.
const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn runs_of_a_process_continue_when_its_executor_id_connects_again() {
    let (store, _folder) = scratch().await;
    let (test_app, gate, count) = (TestApp::new(), Gate::new(), Count::default());
    let agent = teller().tool(counting(&count)).build().unwrap();
    let builder = |llm| {
        let builder = test_app.builder().store(store.clone()).registry(registry(&agent));
        builder.lease(LONG).executor_id("slot-1").llm(llm)
    };
    let llm = ScriptedLlm::new([act(), Reply::text("never").at_gate(&gate)]);
    let first = Process::boot(builder(llm)).await;
    let handle = first.runtime.execute(agent.erased(), "go".into(), in_session("s")).await.unwrap();
    gate.reached().await;
    first.kill().await;

    let llm = acts_once();
    let second = Process::boot(builder(llm.clone())).await;
    let same = second.runtime.handle(handle.session()).await.unwrap();
    assert_eq!(same.run(), handle.run());
    assert_eq!(within(same.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(count.get(), 1, "its step is recorded in DBOS, and its result in the log");
    assert_eq!(llm.calls(), 1, "only the interrupted model call is repeated");
    test_app.wait_for_statuses(&[("teller__s", "SUCCESS")]).await;
    let steps = test_app.steps("teller__s").await;
    assert_eq!(steps, ["open", "model/1", "call/1.0", "model/2"]);
    within(second.runtime.shutdown()).await;
}

/// The recorded steps are missing, for example after the store was copied without DBOS's tables.
#[tokio::test]
async fn repeated_steps_find_their_effects_in_the_log() {
    let (store, _folder) = scratch().await;
    let (test_app, gate, count) = (TestApp::new(), Gate::new(), Count::default());
    let agent = teller().tool(counting(&count)).build().unwrap();
    let builder = |llm| {
        let builder = test_app.builder().store(store.clone()).registry(registry(&agent));
        builder.lease(LONG).executor_id("slot-1").llm(llm)
    };
    let llm = ScriptedLlm::new([act(), act(), Reply::text("never").at_gate(&gate)]);
    let first = Process::boot(builder(llm)).await;
    let handle = first.runtime.execute(agent.erased(), "go".into(), in_session("s")).await.unwrap();
    gate.reached().await;
    first.kill().await;
    assert_eq!(count.get(), 2);
    test_app.forget_steps().await;

    let llm = ScriptedLlm::new([act(), act(), Reply::text("done")]);
    let second = Process::boot(builder(llm.clone())).await;
    let same = second.runtime.handle(handle.session()).await.unwrap();
    assert_eq!(within(same.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!((count.get(), llm.calls()), (2, 1));
    within(second.runtime.shutdown()).await;
}

#[tokio::test]
async fn two_runtimes_take_over_from_each_other() {
    let (store, _folder) = scratch().await;
    let (test_app, count) = (TestApp::new(), Count::default());
    let agent = teller().tool(counting(&count)).build().unwrap();
    let builder = || {
        let builder = test_app.builder().store(store.clone()).registry(registry(&agent));
        builder.lease(Duration::from_secs(1))
    };
    let replies =
        |last: Reply, before: usize| ScriptedLlm::new((0..before).map(|_| act()).chain([last]));
    let gate = Gate::new();
    let first = Process::boot(builder().llm(replies(Reply::text("never").at_gate(&gate), 1))).await;
    let handle = first.runtime.execute(agent.erased(), "go".into(), in_session("s")).await.unwrap();
    gate.reached().await;
    first.kill().await;
    for number in 1..4 {
        let gate = Gate::new();
        let next = replies(Reply::text("never").at_gate(&gate), number + 1);
        let next = Process::boot(builder().llm(next)).await;
        let options = ResumeOptions::default().wait(Duration::from_secs(30));
        within(next.runtime.resume(agent.erased(), handle.session(), options)).await.unwrap();
        gate.reached().await;
        assert_eq!(count.get(), number + 1);
        next.kill().await;
    }
    let last = Process::boot(builder().llm(replies(Reply::text("done"), 4))).await;
    let options = ResumeOptions::default().wait(Duration::from_secs(30));
    let resumed = within(last.runtime.resume(agent.erased(), handle.session(), options)).await;
    let result = within(resumed.unwrap().result()).await.unwrap();
    assert_eq!((result.status, count.get()), (RunStatus::Completed, 4));
    let ends = ["CANCELLED", "CANCELLED", "CANCELLED", "CANCELLED", "SUCCESS"];
    let ids = ["", "__resume-1", "__resume-2", "__resume-3", "__resume-4"];
    let ids = ids.map(|end| format!("teller__s{end}"));
    let statuses: Vec<_> = ids.iter().map(String::as_str).zip(ends).collect();
    test_app.wait_for_statuses(&statuses).await;
    within(last.runtime.shutdown()).await;
}

/// The local runtime does not know about workflows, so it leaves an orphaned one.
#[tokio::test]
async fn another_runtime_continues_and_orphaned_workflows_are_removed() {
    let (store, _folder) = scratch().await;
    let (test_app, gate, count) = (TestApp::new(), Gate::new(), Count::default());
    let agent = teller().tool(counting(&count)).build().unwrap();
    let llm = ScriptedLlm::new([act(), Reply::text("never").at_gate(&gate)]);
    let builder = test_app.builder().store(store.clone()).lease(Duration::from_secs(1)).llm(llm);
    let first = Process::boot(builder).await;
    let handle = first.runtime.execute(agent.erased(), "go".into(), in_session("s")).await.unwrap();
    gate.reached().await;
    first.kill().await;

    let local = LocalRuntime::builder().store(store.clone()).llm(acts_once()).build().unwrap();
    let options = ResumeOptions::default().wait(Duration::from_secs(30));
    let resumed = within(local.resume(agent.erased(), handle.session(), options)).await.unwrap();
    assert_eq!(within(resumed.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(count.get(), 1);
    test_app.wait_for_statuses(&[("teller__s", "PENDING")]).await;

    let builder = test_app.builder().store(store).llm(acts_once());
    let tidy = builder.keep_history(Duration::from_millis(1)).connect().await.unwrap();
    test_app.wait_for_statuses(&[]).await;
    within(tidy.shutdown()).await;
}

/// Returns the agent of both processes, with an at-most-once tool and a repeatable tool.
fn risky(acts: impl Fn(&str) + Clone + Send + Sync + 'static) -> Agent {
    let tool = |name: &'static str, hangs: bool| {
        let acts = acts.clone();
        Tool::function(name, "Acts.", move |_: Word, _: ToolContext| {
            acts(name);
            async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                Ok("acted")
            }
        })
    };
    // The next owner waits for this timeout, because the earlier one could be slow but alive.
    let once = tool("once", true).effect(EffectClass::AtMostOnce).timeout(Duration::from_secs(2));
    teller().tool(tool("quick", false)).tool(once).build().unwrap()
}

fn risky_calls() -> Reply {
    Reply::calls([("quick", json!({ "word": "a" })), ("once", json!({ "word": "b" }))])
}

fn slot(test_app: &TestApp, store: SqliteStore, agent: &Agent) -> DurableRuntimeBuilder {
    let builder = test_app.builder().store(store).registry(registry(agent)).lease(LONG);
    let llm = ScriptedLlm::new([risky_calls(), Reply::text("done")]);
    builder.executor_id("slot-1").llm(llm)
}

/// The main function of the process that is killed. Does nothing in a normal test run.
#[tokio::test]
async fn other_process() {
    let Ok(app) = std::env::var("HELIX_TEST_APP") else { return };
    let file = std::env::var("HELIX_TEST_FILE").unwrap();
    let test_app = TestApp::of(app);
    let store = SqliteStore::open(Path::new(&file)).await.unwrap();
    let agent = risky(|name| println!("acts: {name}"));
    let runtime = slot(&test_app, store, &agent).connect().await.unwrap();
    let handle = runtime.execute(agent.erased(), "go".into(), in_session("s")).await.unwrap();
    drop(handle.result().await);
}

/// Starts the process and kills it once both of its tools are running.
fn kill_once_both_act(app: &str, file: &Path) {
    let mut child: Child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "recovery::other_process", "--nocapture", "--test-threads=1"])
        .env("HELIX_TEST_APP", app)
        .env("HELIX_TEST_FILE", file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acting = BTreeSet::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        // The test harness prints other lines, sometimes without a line break.
        let Some((_, name)) = line.split_once("acts: ") else { continue };
        assert!(acting.insert(name.to_owned()));
        if acting.len() == 2 {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(acting.len(), 2);
}

#[tokio::test]
async fn kill_in_the_middle_of_a_call_that_must_not_run_twice() {
    let (store, folder) = scratch().await;
    let test_app = TestApp::new();
    let (app, file) = (test_app.app.clone(), folder.path().join("test.db"));
    let killed = move || kill_once_both_act(&app, &file);
    within(tokio::task::spawn_blocking(killed)).await.unwrap();

    let count = Count::default();
    let counted = count.clone();
    let agent = risky(move |name| {
        assert_eq!(name, "quick", "a tool that may have acted is not called again");
        counted.increment();
    });
    let second = Process::boot(slot(&test_app, store.clone(), &agent)).await;
    let same = second.runtime.handle(&SessionId::from("s")).await.unwrap();
    assert_eq!(within(same.result()).await.unwrap().status, RunStatus::Completed);
    let session = load(&store, same.session()).await.unwrap();
    assert_eq!(session.runs().count(), 1, "the same run in another process");
    let results: Vec<_> = session
        .transcript()
        .iter()
        .filter_map(|message| match &**message {
            Message::Tool(result) => Some(result.content.to_string()),
            _ => None,
        })
        .collect();
    assert!(results[1].contains("it was not run again"), "{results:?}");
    assert!(count.get() <= 1, "it may run again while its result is not recorded");
    within(second.runtime.shutdown()).await;
}

/// Each process with this executor id repeats the same calls in the same run, and the last one ends the run.
#[tokio::test]
async fn a_call_that_crashes_every_process_of_an_executor_id_ends_the_run() {
    let (store, _folder) = scratch().await;
    let (test_app, gate) = (TestApp::new(), Gate::new());
    let closed = gate.clone();
    let tool = Tool::function("die", "Dies.", move |_: Word, _: ToolContext| {
        let gate = closed.clone();
        async move {
            gate.pass().await;
            Ok("alive")
        }
    });
    let agent = teller().tool(tool).max_takeovers(2).build().unwrap();
    let builder = || {
        let builder = test_app.builder().store(store.clone()).registry(registry(&agent));
        let call = Reply::calls([("die", json!({ "word": "a" })), ("die", json!({ "word": "b" }))]);
        builder.lease(LONG).executor_id("slot-1").llm(ScriptedLlm::new([call]))
    };
    let first = Process::boot(builder()).await;
    let options = in_session("s");
    let handle = first.runtime.execute(agent.erased(), "go".into(), options).await.unwrap();
    gate.reached_by(2).await;
    first.kill().await;
    let second = Process::boot(builder()).await;
    gate.reached_by(4).await;
    second.kill().await;

    let last = Process::boot(builder()).await;
    let same = last.runtime.handle(handle.session()).await.unwrap();
    let failed = within(same.result()).await.unwrap();
    let error = failed.error.unwrap();
    assert!(error.is(ErrorCode::CrashLoop), "{error}");
    assert!(error.message.contains("1.0 (`die`), 1.1 (`die`)"), "{error}");
    let session = load(&store, handle.session()).await.unwrap();
    assert_eq!(session.runs().count(), 1, "no other run took over");
    within(last.runtime.shutdown()).await;
}
