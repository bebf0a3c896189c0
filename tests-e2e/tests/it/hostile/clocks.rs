//! Processes whose clocks differ. Only the store's clock counts.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents::RuntimeBuilder as _;
use helix_agents::agent::{Agent, AgentRegistry};
use helix_agents::clock::{Clock, Timestamp};
use helix_agents::error::ErrorCode;
use helix_agents::executor::{AgentExecutor as _, ExecuteOptions, ResumeOptions};
use helix_agents::id::SessionId;
use helix_agents::runtime_local::{LocalRuntime, TokioClock};
use helix_agents::session::{RunStatus, Submission};
use helix_agents::tool::Tool;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use helix_agents_testkit::trees::Stores;
use helix_agents_tests_e2e::stores::Kind;
use serde_json::{Value, json};

use super::TestStore;
use crate::kill_matrix::logs_text;
use crate::support::logs_of;

const HOUR: i64 = 3_600_000;

/// A clock with an offset in milliseconds.
#[derive(Debug)]
struct OffsetClock(TokioClock, i64);

#[async_trait]
impl Clock for OffsetClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.now().0 + self.1)
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    async fn sleep(&self, duration: Duration) {
        self.0.sleep(duration).await;
    }
}

/// An agent with two client tools: the first call has a deadline of one millisecond, the other of half an hour.
fn agent() -> Agent {
    let ask = |name: &str, time| Tool::client::<Value>(name, "Asks a person.").deadline(time);
    Agent::builder("asker")
        .system_prompt("You ask.")
        .model("scripted")
        .tool(ask("hurry", Duration::from_millis(1)))
        .tool(ask("ask", Duration::from_secs(1800)))
        .build()
        .unwrap()
}

/// A process with a clock offset, whose model waits at the gate before its last reply.
fn process(store: &Stores, by: i64, gate: &Gate) -> LocalRuntime {
    let registry = AgentRegistry::default();
    registry.replace(&agent());
    let replies = [
        Reply::tool_call("hurry", json!({})),
        Reply::tool_call("ask", json!({})),
        Reply::text("So it is.").at_gate(gate),
    ];
    LocalRuntime::builder()
        .state_store(Arc::clone(&store.state))
        .stream_manager(Arc::clone(&store.streams))
        .llm(ScriptedLlm::new(replies))
        .registry(registry)
        .clock(Arc::new(OffsetClock(TokioClock::new(), by)))
        .build()
        .unwrap()
}

/// The logs are the same with all offsets.
pub(super) async fn an_hour_changes_nothing(kind: &Kind) {
    let mut results = Vec::new();
    for offsets in [[0, 0], [-HOUR, HOUR], [HOUR, -HOUR]] {
        let test_store = TestStore::of(kind).await;
        run_story(&test_store.store, offsets).await;
        results.push(logs_text(&logs_of(&*test_store.store.state).await));
    }
    assert_eq!(results[1], results[0]);
    assert_eq!(results[2], results[0]);
}

/// One process starts the session and another one sweeps, in turns.
async fn run_story(store: &Stores, offsets: [i64; 2]) {
    let gate = Gate::new();
    let [one, other] = offsets.map(|by| process(store, by, &gate));
    let (agent, root) = (agent().erased(), SessionId::from("story"));
    let options = ExecuteOptions::default().session(root.clone());
    let started = one.execute(Arc::clone(&agent), "go".into(), options).await.unwrap();
    let suspended = within(started.result()).await.unwrap();
    assert_eq!(suspended.status, RunStatus::SuspendedClientTool);

    // The first deadline has passed by the store's clock, and a sweep finds that.
    let swept = within(async {
        loop {
            let swept = other.sweep().await.unwrap();
            if !swept.is_empty() {
                return swept;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let suspended = within(swept[0].result()).await.unwrap();
    assert_eq!(suspended.status, RunStatus::SuspendedClientTool);

    // The other deadline has not passed, whatever the processes' clocks say.
    for process in [&one, &other] {
        assert!(process.sweep().await.unwrap().is_empty(), "{offsets:?}");
    }
    let pending = other.pending_calls(&root).await.unwrap();
    let answer = Submission::result(pending[0].reference(), &json!("blue")).unwrap();
    other.submit_tool_result(&root, answer.request("answer")).await.unwrap();

    // A live run stays with its owner.
    let resumed = one.resume(Arc::clone(&agent), &root, ResumeOptions::default()).await.unwrap();
    within(gate.reached()).await;
    let refused = other.resume(agent, &root, ResumeOptions::default()).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::AlreadyRunning, "{offsets:?}");
    assert!(other.recover().await.unwrap().is_empty(), "{offsets:?}");
    gate.open();
    assert_eq!(within(resumed.result()).await.unwrap().status, RunStatus::Completed);
}
