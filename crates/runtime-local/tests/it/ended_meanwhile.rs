//! Requests and messages for children whose state changes while they are delivered.

use std::sync::Arc;

use helix_agents_conformance::faults::{Fault, FaultStore};
use helix_agents_core::agent::{Agent, CompanionMode, SubAgent};
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{RunStatus, Session, load};
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, RoutingScriptedLlm, ScriptedLlm, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The output of the children.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Paid {
    amount: u32,
}

fn paid(amount: u32) -> Reply {
    Reply::finish(json!({ "amount": amount }))
}

/// Returns a child whose tool waits at the gate.
fn payer(name: &str, gate: &Gate) -> Agent<Paid> {
    let gate = gate.clone();
    let pay = move |_: Value, _: ToolContext| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok::<_, ToolError>(json!("paid"))
        }
    };
    Agent::builder(name)
        .description("Pays.")
        .system_prompt("You pay.")
        .model("scripted")
        .output::<Paid>()
        .tool(Tool::dynamic("pay", "Pays.", json!({"type": "object"}), pay))
        .build()
        .unwrap()
}

/// Waits until a condition holds for the session.
async fn until(memory: &MemoryStore, session: &str, is: impl Fn(&Session) -> bool) {
    let session = SessionId::from(session);
    within(async {
        loop {
            if load(memory, &session).await.is_ok_and(|session| is(&session)) {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// A companion's turn ends after its parent has seen it working and before the message is queued. The message starts
/// another turn.
#[tokio::test]
async fn a_message_to_a_companion_that_ends_meanwhile_starts_another_turn() {
    let (memory, model, append) = (MemoryStore::new(), Gate::new(), Gate::new());
    let store = FaultStore::new(Arc::new(memory.clone()))
        .with_fault("message_queued", Fault::HoldBefore(append.clone()));
    let rex = payer("payer", &Gate::opened());
    let boss = Agent::builder("boss")
        .system_prompt("You delegate.")
        .model("scripted")
        .companion(&rex, CompanionMode::NonBlocking)
        .build()
        .unwrap();
    let spawn = json!({"agent": "payer", "message": "Pay.", "name": "rex"});
    let message = json!({"name": "rex", "message": "Pay again."});
    let of_boss = [
        Reply::tool_call("companion__spawnAgent", spawn),
        Reply::tool_call("companion__sendMessage", message),
        Reply::text("Good."),
        Reply::text("Good."),
        Reply::text("Good."),
    ];
    let llm = RoutingScriptedLlm::new()
        .agent("boss", ScriptedLlm::new(of_boss))
        .agent("payer", ScriptedLlm::new([paid(1).at_gate(&model), paid(2)]));
    let runtime = LocalRuntime::builder().state_store(Arc::new(store)).llm(llm);
    let runtime = runtime.stream_manager(Arc::new(memory.clone())).build().unwrap();
    let options = ExecuteOptions::default().session("s");
    let run = runtime.execute(boss.erased(), "go".into(), options).await.unwrap();
    append.reached().await;
    model.open();
    until(&memory, "s-agent-rex", |rex| rex.current_run().is_none()).await;
    append.open();
    assert_eq!(within(run.result()).await.unwrap().status, RunStatus::Completed);
    until(&memory, "s-agent-rex", |rex| rex.turn() == 2 && rex.current_run().is_none()).await;
}

/// A sub-agent starts when another one has been interrupted, while a third one still works.
#[tokio::test]
async fn an_interrupt_reaches_a_sub_agent_that_starts_after_it() {
    let (memory, quick, slow, queued) = (MemoryStore::new(), Gate::new(), Gate::new(), Gate::new());
    let agent = Agent::builder("boss")
        .system_prompt("You delegate.")
        .model("scripted")
        .tool_concurrency(2)
        .sub_agent(SubAgent::new(&payer("quick", &quick)))
        .sub_agent(SubAgent::new(&payer("slow", &slow)))
        .sub_agent(SubAgent::new(&payer("queued", &queued)))
        .build()
        .unwrap();
    let task = || json!({"message": "Pay."});
    let calls = Reply::calls([
        ("subagent__quick", task()),
        ("subagent__slow", task()),
        ("subagent__queued", task()),
    ]);
    let works = || ScriptedLlm::new([Reply::tool_call("pay", json!({})), paid(1)]);
    let llm = RoutingScriptedLlm::new()
        .agent("boss", ScriptedLlm::new([calls]))
        .agent("quick", works())
        .agent("slow", works())
        .agent("queued", works());
    let runtime = LocalRuntime::builder().store(memory.clone()).llm(llm).build().unwrap();
    let options = ExecuteOptions::default().session("s");
    let run = runtime.execute(agent.erased(), "go".into(), options).await.unwrap();
    quick.reached().await;
    slow.reached().await;
    runtime.interrupt(&SessionId::from("s"), None).await.unwrap();
    quick.open();
    queued.reached().await;
    until(&memory, "s-sub-1.2", |queued| queued.interrupt_request().is_some()).await;
    queued.open();
    slow.open();
    assert_eq!(within(run.result()).await.unwrap().status, RunStatus::Interrupted);
}
