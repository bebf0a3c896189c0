//! Sessions of sub-agents: their owner, their calls and their chunks are those of the root.

use std::sync::Arc;

use helix_agents_core::agent::{Agent, AgentRegistry};
use helix_agents_core::executor::AgentExecutor;
use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
use helix_agents_server::AgentServer;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Reply, RoutingScriptedLlm, ScriptedLlm};
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::{Client, Event, pay, token_file};

/// The session of the sub-agent that the first call of `boss` starts.
const CHILD: &str = "talk-sub-1.0";

/// Serves `boss`, whose sub-agent `teller` pays after an approval.
async fn serve() -> (Client, Client) {
    let teller = Agent::builder("teller")
        .description("Pays bills.")
        .system_prompt("You pay.")
        .model("scripted")
        .tool(pay())
        .output::<String>()
        .build()
        .unwrap();
    let boss = Agent::builder("boss").system_prompt("You delegate.").model("scripted");
    let boss = boss.sub_agent(&teller).build().unwrap();
    let delegate = Reply::tool_call("subagent__teller", json!({ "message": "Pay Bob." }));
    let payment = Reply::tool_call("pay", json!({ "to": "Bob" }));
    let model = RoutingScriptedLlm::new()
        .agent("boss", ScriptedLlm::new([delegate, Reply::text("Bob is paid.")]))
        .agent("teller", ScriptedLlm::new([payment, Reply::finish(json!({ "output": "paid" }))]));
    let registry = AgentRegistry::default();
    registry.register(&boss).unwrap();
    registry.register(&teller).unwrap();
    let store = MemoryStore::new();
    let runtime =
        LocalRuntime::builder().store(store.clone()).llm(model).registry(registry.clone());
    let runtime: Arc<dyn AgentExecutor> = Arc::new(runtime.build().unwrap());
    let server = AgentServer::builder(runtime, registry, store).no_sweep().bearer(token_file());
    let server = server.build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { server.serve(listener, std::future::pending()).await });
    (Client::new(address, Some("token-ann")), Client::new(address, Some("token-bob")))
}

#[tokio::test]
async fn a_child_belongs_to_the_owner_of_its_root() {
    let (ann, bob) = serve().await;
    let request = json!({ "sessionId": "talk", "agentType": "boss", "message": "Go!" });
    ann.post("/start", request).await.expect(202);
    ann.events("/sse?sessionId=talk").await.rest().await;

    let status = ann.get(&format!("/status?sessionId={CHILD}")).await.expect(200);
    assert_eq!(
        (&status["rootSessionId"], &status["agentType"]),
        (&json!("talk"), &json!("teller"))
    );
    ann.get(&format!("/sessions/{CHILD}")).await.expect(200);
    for path in [format!("/status?sessionId={CHILD}"), format!("/sessions/{CHILD}/checkpoints")] {
        bob.get(&path).await.expect_error(404, "session_not_found");
    }
    let answer = json!({ "sessionId": CHILD, "call": "1.0", "approved": true });
    bob.post("/submit-tool-result", answer.clone()).await.expect_error(404, "session_not_found");

    // The stream and the run are those of the root.
    ann.get(&format!("/sse?sessionId={CHILD}")).await.expect_error(400, "not_root");
    ann.post("/resume", json!({ "sessionId": CHILD })).await.expect_error(400, "not_root");
    ann.delete(&format!("/sessions/{CHILD}")).await.expect_error(400, "not_root");
    let listed = ann.get("/sessions").await.expect(200);
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);

    // A fork of the child is a root of the same owner.
    ann.post("/submit-tool-result", answer).await.expect(202);
    let events = ann.events("/sse?sessionId=talk").await.rest().await;
    assert_eq!(events.last().unwrap().data, json!({ "status": "ended" }));
    let fork = json!({ "sessionId": CHILD, "newSessionId": "copy" });
    ann.post("/fork", fork).await.expect(201);
    ann.get("/sessions/copy").await.expect(200);
    bob.get("/sessions/copy").await.expect_error(404, "session_not_found");
}

#[tokio::test]
async fn a_stream_leaves_out_children_on_request() {
    let (ann, _) = serve().await;
    let request = json!({ "sessionId": "talk", "agentType": "boss", "message": "Go!" });
    ann.post("/start", request).await.expect(202);
    let with = ann.events("/sse?sessionId=talk").await.rest().await;
    let without = ann.events("/sse?sessionId=talk&children=0").await.rest().await;
    let is_childs = |event: &&Event| event.data["session"] == CHILD;
    assert!(with.iter().filter(is_childs).count() > 2);
    let own: Vec<_> = with.iter().filter(|event| !is_childs(event)).cloned().collect();
    assert_eq!(without, own);
}
