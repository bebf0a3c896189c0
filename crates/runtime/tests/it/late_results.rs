//! Results that a worker records after another run took over: their stream chunks and hooks.

use std::sync::Arc;

use futures_util::StreamExt as _;
use helix_agents_conformance::faults::{Fault, FaultStore};
use helix_agents_core::agent::{Agent, AgentRegistry, AnyAgent};
use helix_agents_core::event::Event;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions, ResumeOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{RunStatus, load, load_events};
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::{ChunkKind, StreamManager as _};
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_runtime::{NextWork, RunRef, Runtime, Settings, WorkItem};
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use helix_agents_testkit::trees::Redelivery;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::by_hand::{ByHand, S};
use crate::in_work_items;
use crate::result_hooks::RecordingHooks;

/// A process with a runtime whose engine leaves runs to the test.
struct Process {
    runtime: Runtime,
    engine: Arc<ByHand>,
}

impl Process {
    fn new(
        store: impl StateStore + 'static,
        memory: &MemoryStore,
        agent: &AnyAgent,
        calls: usize,
    ) -> Self {
        let registry = AgentRegistry::default();
        registry.replace_erased(Arc::clone(agent));
        let calls = Reply::calls(std::iter::repeat_n(("work", json!({})), calls));
        let settings = Settings {
            store: Some(Arc::new(store)),
            streams: Some(Arc::new(memory.clone())),
            llm: Some(Arc::new(ScriptedLlm::new([calls, Reply::text("Done.")]))),
            registry,
            ..Settings::default()
        };
        let engine = Arc::new(ByHand::default());
        let runtime = Runtime::new(settings.context().unwrap(), Arc::clone(&engine)).erased();
        Self { runtime, engine }
    }

    fn started(&self) -> RunRef {
        self.engine.started.borrow().last().cloned().unwrap()
    }
}

fn agent() -> AnyAgent {
    agent_with(None)
}

fn agent_with(hooks: Option<RecordingHooks>) -> AnyAgent {
    let work = |_: Value, _: ToolContext| async { Ok::<_, ToolError>(json!("done")) };
    let work = Tool::dynamic("work", "Works.", json!({"type": "object"}), work);
    let agent = Agent::builder("worker").system_prompt("You work.").model("scripted");
    let agent = agent.tool(work);
    let agent = match hooks {
        Some(hooks) => agent.hooks(hooks),
        None => agent,
    };
    agent.build().unwrap().erased()
}

/// Returns the starts and ends of calls in the stream, as a late reader sees them.
async fn shown_calls(memory: &MemoryStore) -> Vec<String> {
    let stream = SessionId::from(S);
    let last = memory.info(&stream).await.unwrap().last_seq;
    let mut reader = memory.read(&stream, 1).await.unwrap();
    let mut shown = Vec::new();
    loop {
        let stored = within(reader.next()).await.unwrap().unwrap();
        match &stored.chunk.kind {
            ChunkKind::ToolStart { call, .. } => shown.push(format!("start {call}")),
            ChunkKind::ToolEnd { call, success, .. } => {
                assert!(success);
                shown.push(format!("end {call}"));
            }
            _ => {}
        }
        if stored.seq == last {
            shown.sort();
            return shown;
        }
    }
}

/// Starts a run with this number of calls in a process that pauses at the gate before it appends the result of the
/// first call, and loses its lease. Returns the task of that process.
async fn record_late(
    memory: &MemoryStore,
    agent: &AnyAgent,
    gate: &Gate,
    calls: usize,
) -> JoinHandle<()> {
    let faulty = FaultStore::new(Arc::new(memory.clone()));
    faulty.inject(r#""tool_finished":{"call":"1.0""#, Fault::HoldBefore(gate.clone()));
    let stalled = Process::new(faulty, memory, agent, calls);
    let options = ExecuteOptions::default().session(S);
    stalled.runtime.execute(Arc::clone(agent), "go".into(), options).await.unwrap();
    let (runtime, run_ref) = (stalled.runtime.clone(), stalled.started());
    let late = tokio::spawn(async move {
        drop(in_work_items::drive(&runtime, &run_ref, Redelivery::Never).await);
    });
    gate.reached().await;
    stalled.runtime.release_run(&stalled.started()).await;
    late
}

/// A worker pauses before it appends a result. Another worker takes over and, if `opens` is set, executes its first
/// work item. Then the first worker continues and records the result between two work items of its successor.
async fn record_a_result_between_work_items(opens: bool) {
    let (agent, memory, gate) = (agent(), MemoryStore::new(), Gate::new());
    let late = record_late(&memory, &agent, &gate, 2).await;
    let next = Process::new(memory.clone(), &memory, &agent, 2);

    let session = SessionId::from(S);
    next.runtime.resume(agent, &session, ResumeOptions::default()).await.unwrap();
    let run_ref = next.started();
    if opens {
        next.runtime.perform(&run_ref, &WorkItem::Open, true).await.unwrap();
    }
    gate.open();
    within(late).await.unwrap();
    let log = load_events(&memory, &session, 0).await.unwrap();
    assert!(
        matches!(log.last().unwrap().event, Event::ToolFinished(_)),
        "no late result was recorded"
    );

    within(in_work_items::drive(&next.runtime, &run_ref, Redelivery::Never)).await.unwrap();
    let fold = load(&memory, &session).await.unwrap();
    assert_eq!(fold.last_run().unwrap().status, RunStatus::Completed);
    assert_eq!(shown_calls(&memory).await, ["end 1.0", "end 1.1", "start 1.0", "start 1.1"]);
}

#[tokio::test(start_paused = true)]
async fn a_late_result_before_the_first_work_item_is_shown_once() {
    record_a_result_between_work_items(false).await;
}

#[tokio::test(start_paused = true)]
async fn a_late_result_between_two_work_items_is_shown_once() {
    record_a_result_between_work_items(true).await;
}

/// The result of the only call is recorded before the work item of the call starts.
#[tokio::test(start_paused = true)]
async fn hooks_receive_a_late_result_of_a_call_that_is_about_to_run() {
    let (memory, gate, noted) = (MemoryStore::new(), Gate::new(), RecordingHooks::default());
    let late = record_late(&memory, &agent(), &gate, 1).await;
    let with_hooks = agent_with(Some(noted.clone()));
    let next = Process::new(memory.clone(), &memory, &with_hooks, 1);
    next.runtime.resume(with_hooks, &S.into(), ResumeOptions::default()).await.unwrap();
    let run_ref = next.started();
    let call = WorkItem::Call("1.0".into());
    let work = next.runtime.perform(&run_ref, &WorkItem::Open, true).await.unwrap();
    assert_eq!(work, NextWork::WorkItem(call.clone()));
    gate.open();
    within(late).await.unwrap();
    next.runtime.perform(&run_ref, &call, true).await.unwrap();
    assert_eq!(*noted.0.lock().unwrap(), ["1.0 work"]);
}
