//! Weakness 15: a loop was lost with its process. Now it continues from the log.

use std::sync::atomic::Ordering;
use std::time::Duration;

use helix_agents_core::agent::Agent;
use helix_agents_core::executor::{AgentExecutor, ExecuteOptions, ResumeOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::session::{RunStatus, load};
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::StreamManager;
use helix_agents_core::tool::{EffectClass, Tool, ToolContext};
use helix_agents_planner::{PlanOptions, tool_logs};
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_store_sqlite::SqliteStore;
use helix_agents_test::{Gate, PlanningScript, Reply, ScriptedLlm, within};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::support::wall::Wall;
use crate::support::{
    Heard, Word, action_results, execute, infos, planning, respond, script, shout, shouting, teller,
};

/// A simulated process: its tasks are killed with it.
struct Process {
    tasks: Option<Runtime>,
    runtime: LocalRuntime,
}

impl Process {
    fn boot(store: &(impl StateStore + StreamManager + Clone), llm: impl LlmAdapter) -> Self {
        let tasks = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let runtime = LocalRuntime::builder()
            .store(store.clone())
            .llm(llm)
            .lease(Duration::from_millis(300))
            .tasks_on(tasks.handle().clone())
            .build()
            .unwrap();
        Self { tasks: Some(tasks), runtime }
    }

    async fn begin(&self, agent: &Agent) {
        let options = ExecuteOptions::default().session("story");
        self.runtime.execute(agent.erased(), "go".into(), options).await.unwrap();
    }

    async fn resume(&self, agent: &Agent) -> Option<Value> {
        let options = ResumeOptions::default().wait(Duration::from_secs(60));
        let session = SessionId::from("story");
        let handle = self.runtime.resume(agent.erased(), &session, options).await.unwrap();
        let result = within(handle.result()).await.unwrap();
        assert_eq!(result.status, RunStatus::Completed, "{:?}", result.error);
        result.output.map(|output| output.to_value())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(tasks) = self.tasks.take() {
            tasks.shutdown_background();
        }
    }
}

/// A tool that waits at the gate.
fn held(heard: &Heard, gate: &Gate) -> Tool {
    let (heard, gate) = (Heard::clone(heard), gate.clone());
    Tool::function("hold", "Holds a word.", move |input: Word, _: ToolContext| {
        heard.lock().unwrap().push(format!("held {}", input.word));
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok(input.word)
        }
    })
}

fn open() -> Gate {
    let gate = Gate::new();
    gate.open();
    gate
}

async fn killed_in_a_round(store: impl StateStore + StreamManager + Clone) {
    let (heard, gate) = (Heard::default(), Gate::new());
    let agent = |gate| teller().tool(shout(&heard)).tool(held(&heard, gate)).build().unwrap();
    let hold = json!({ "purpose": "b", "tool_name": "hold", "tool_kwargs": { "word": "h" } });
    let plans = || [execute([shouting("a", "x"), hold.clone()]), respond()];
    let first = script(plans());
    let stuck = agent(&gate);
    let process = Process::boot(&store, planning(&first, &stuck, PlanOptions::default()));
    process.begin(&stuck).await;
    gate.reached().await;
    // The sibling's result is recorded before the process is killed.
    let recorded = async {
        loop {
            let session = load(&store, &SessionId::from("story")).await.unwrap();
            let step = session.open_step();
            if step.is_some_and(|step| step.calls.iter().any(|call| call.finish.is_some())) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    within(recorded).await;
    drop(process);
    let second = script(plans());
    let agent = agent(&open());
    let process = Process::boot(&store, planning(&second, &agent, PlanOptions::default()));
    assert_eq!(process.resume(&agent).await, Some("done".into()));
    assert_eq!(*heard.lock().unwrap(), ["x", "held h", "held h"], "a recorded tool ran again");
    let asked: Vec<_> = second.plans_seen().iter().map(|(round, _)| *round).collect();
    assert_eq!(asked, [1], "the recorded plan was requested again");
    assert_eq!(infos(&second)[0]["done_plans"].as_array().unwrap().len(), 2);
    let results = action_results(&second.answers_seen()[0].messages);
    assert_eq!(results, json!({ "a": "X", "b": "h" }));
}

#[tokio::test]
async fn weakness_15_killed_in_a_round_it_continues_in_memory() {
    killed_in_a_round(MemoryStore::default()).await;
}

#[tokio::test]
async fn weakness_15_killed_in_a_round_it_continues_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    killed_in_a_round(SqliteStore::open(folder.path().join("loop.db")).await.unwrap()).await;
}

#[tokio::test]
async fn killed_before_the_answer_no_plan_is_made_again() {
    let (store, heard, gate) = (MemoryStore::default(), Heard::default(), Gate::new());
    let agent = teller().tool(shout(&heard)).build().unwrap();
    let plans = || [execute([shouting("a", "x")]), respond()];
    let answers = ScriptedLlm::new([Reply::text("never").at_gate(&gate)]);
    let first = PlanningScript::new(plans(), answers);
    let process = Process::boot(&store, planning(&first, &agent, PlanOptions::default()));
    process.begin(&agent).await;
    gate.reached().await;
    drop(process);
    let second = script(plans());
    let process = Process::boot(&store, planning(&second, &agent, PlanOptions::default()));
    assert_eq!(process.resume(&agent).await, Some("done".into()));
    assert!(second.plans_seen().is_empty());
    assert_eq!(heard.lock().unwrap().len(), 1);
}

/// Weakness 14: at-most-once tools were not respected.
#[tokio::test]
async fn weakness_14_at_most_once_calls_are_not_repeated_and_the_planner_learns_of_it() {
    let (store, heard, gate) = (MemoryStore::default(), Heard::default(), Gate::new());
    let agent = |gate| {
        let hold = held(&heard, gate).effect(EffectClass::AtMostOnce);
        teller().tool(hold.timeout(Duration::from_millis(400))).build().unwrap()
    };
    let hold = json!({ "purpose": "b", "tool_name": "hold", "tool_kwargs": { "word": "h" } });
    let plans = || [execute([hold.clone()]), respond()];
    let stuck = agent(&gate);
    let process = Process::boot(&store, planning(&script(plans()), &stuck, PlanOptions::default()));
    process.begin(&stuck).await;
    gate.reached().await;
    drop(process);
    let (model, agent) = (script(plans()), agent(&open()));
    let process = Process::boot(&store, planning(&model, &agent, PlanOptions::default()));
    assert_eq!(process.resume(&agent).await, Some("done".into()));
    assert_eq!(*heard.lock().unwrap(), ["held h"]);
    let record = infos(&model)[0]["last_round_result"][0].clone();
    assert!(record["error"].as_str().unwrap().contains("whether the call took effect"), "{record}");
}

/// The start of the loop is recorded, so its time limit does not start again.
#[tokio::test]
async fn a_timeout_counts_from_the_first_plan_across_processes() {
    let (store, heard, gate) = (MemoryStore::default(), Heard::default(), Gate::new());
    let agent = teller().tool(shout(&heard)).build().unwrap();
    let wall = Wall::default();
    let options = || PlanOptions::default().timeout(Duration::from_secs(60), wall.clone());
    let first = script([execute([shouting("a", "x")]), respond().at_gate(&gate)]);
    let process = Process::boot(&store, planning(&first, &agent, options()));
    process.begin(&agent).await;
    gate.reached().await;
    drop(process);
    wall.now.fetch_add(60_000, Ordering::SeqCst);
    let second = script([]);
    let process = Process::boot(&store, planning(&second, &agent, options()));
    assert_eq!(process.resume(&agent).await, Some("done".into()));
    assert!(second.plans_seen().is_empty());
    let session = load(&store, &SessionId::from("story")).await.unwrap();
    assert_eq!(tool_logs(session.transcript()).len(), 1);
}

/// Results from before an interruption are available in the next turn.
#[tokio::test]
async fn a_message_after_an_interruption_finds_what_was_done() {
    let (store, heard, gate) = (MemoryStore::default(), Heard::default(), Gate::new());
    let agent = teller().tool(held(&heard, &gate)).build().unwrap();
    let hold = json!({ "purpose": "b", "tool_name": "hold", "tool_kwargs": { "word": "h" } });
    let model = script([execute([hold])]).revise(0, respond());
    let process = Process::boot(&store, planning(&model, &agent, PlanOptions::default()));
    let options = ExecuteOptions::default().session("story");
    let handle = process.runtime.execute(agent.erased(), "go".into(), options).await.unwrap();
    gate.reached().await;
    handle.interrupt(None).await.unwrap();
    gate.open();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Interrupted);
    let options = ResumeOptions::default().message("and be quick");
    let session = SessionId::from("story");
    let handle = process.runtime.resume(agent.erased(), &session, options).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    let input = crate::support::inputs(&model).pop().unwrap()["input"].clone();
    assert!(input["history"].to_string().contains("action_results"), "{input}");
    assert_eq!(action_results(&model.answers_seen()[0].messages), json!({ "b": "h" }));
}
