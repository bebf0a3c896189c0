//! Sessions that are deleted during a request, and whose id another owner then uses.

use std::sync::Arc;

use axum::body::Body;
use helix_agents_conformance::faults::{Fault, FaultStore, HEAD};
use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::executor::AgentExecutor;
use helix_agents_core::stream::StreamManager;
use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
use helix_agents_server::AgentServer;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{Client, Event, World, WorldBuilder, agent, token_file};

fn asks() -> ScriptedLlm {
    ScriptedLlm::new([
        Reply::more_text("One."),
        Reply::tool_call("ask", json!({ "question": "Why?" })),
        Reply::text("I see."),
    ])
}

/// Starts a run of the session `talk` that ends with a question.
async fn talk(client: &Client) {
    let request = json!({ "sessionId": "talk", "agentType": "clerk", "message": "Go!" });
    client.post("/start", request).await.expect(202);
    client.events("/sse?sessionId=talk").await.rest().await;
}

/// Deletes the session of Ann, and lets Bob create one with the same id. Returns the log.
async fn replace(world: &World) -> Value {
    world.client("ann").delete("/sessions/talk").await.expect(204);
    talk(&world.client("bob")).await;
    world.client("eve").get("/sessions/talk/log").await.expect(200)
}

/// Serves the store of another server, whose next head is held at a gate after it was read.
async fn slow_server(store: &MemoryStore, gate: &Gate) -> std::net::SocketAddr {
    let registry = AgentRegistry::default();
    registry.register(&agent()).unwrap();
    let runtime = LocalRuntime::builder().store(store.clone()).llm(asks());
    let runtime = runtime.registry(registry.clone()).build().unwrap();
    let runtime: Arc<dyn AgentExecutor> = Arc::new(runtime);
    let slow = FaultStore::new(Arc::new(store.clone()));
    let slow = Arc::new(slow.with_fault(HEAD, Fault::HoldAfter(gate.clone())));
    let streams: Arc<dyn StreamManager> = Arc::new(store.clone());
    let server = AgentServer::builder_with_streams(runtime, registry, slow, streams);
    let server = server.no_sweep().bearer(token_file()).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { server.serve(listener, std::future::pending()).await });
    address
}

#[tokio::test]
async fn no_route_reaches_the_session_of_another_owner_that_has_the_id_now() {
    let post = |path: &str, body: Value| (Method::POST, path.to_owned(), Some(body));
    let get = |path: &str| (Method::GET, path.to_owned(), None);
    let session = json!({ "sessionId": "talk" });
    let requests = [
        post("/start", json!({ "sessionId": "talk", "agentType": "clerk", "message": "x" })),
        post("/resume", json!({ "sessionId": "talk", "checkpoint": 4 })),
        post("/interrupt", session.clone()),
        post("/abort", session.clone()),
        post("/messages", json!({ "sessionId": "talk", "message": "x" })),
        post("/fork", json!({ "sessionId": "talk", "newSessionId": "copy" })),
        post("/submit-tool-result", json!({ "sessionId": "talk", "call": "2.0", "result": 1 })),
        (Method::DELETE, "/sessions/talk".to_owned(), None),
        get("/status?sessionId=talk"),
        get("/sessions/talk"),
        get("/sessions/talk/checkpoints"),
        get("/sessions/talk/log"),
    ];
    for (method, path, body) in requests {
        let (store, gate) = (MemoryStore::new(), Gate::new());
        let world = WorldBuilder::new().serve(store.clone(), asks()).await;
        talk(&world.client("ann")).await;
        let address = slow_server(&store, &gate).await;
        let sender = if path.ends_with("/log") { "token-eve" } else { "token-ann" };
        let client = Client::new(address, Some(sender));
        let body = body.map(|body| body.to_string().into());
        let request = client.send(method.clone(), &path, body);
        let replacing = async {
            gate.reached().await;
            let log = replace(&world).await;
            gate.open();
            log
        };
        let (response, log) = within(async { tokio::join!(request, replacing) }).await;
        assert_eq!(response.status, 404, "{method} {path}: {response:?}");
        response.expect_error(404, "session_not_found");
        let after = world.client("eve").get("/sessions/talk/log").await.expect(200);
        assert_eq!(after, log, "{method} {path}");
        world.client("ann").get("/status?sessionId=copy").await.expect(404);
    }
}

/// Starts a run of the session `talk`, whose model waits at the gate.
async fn start_at_gate(gate: &Gate) -> World {
    let world = World::new(ScriptedLlm::new([Reply::text("One.").at_gate(gate)])).await;
    let request = json!({ "sessionId": "talk", "agentType": "clerk", "message": "Go!" });
    world.client("ann").post("/start", request).await.expect(202);
    gate.reached().await;
    world
}

/// Deletes the session of Ann, and lets Bob run a turn in a session with the same id.
async fn replace_at_gate(world: &World, gate: &Gate) {
    world.client("ann").delete("/sessions/talk").await.expect(204);
    gate.open();
    talk(&world.client("bob")).await;
}

#[tokio::test]
async fn a_stream_ends_when_its_session_is_deleted_and_shows_nothing_of_the_next_one() {
    let gate = Gate::new();
    let world = start_at_gate(&gate).await;
    let mut events = world.client("ann").events("/sse?sessionId=talk").await;
    events.until("run_started").await;
    replace_at_gate(&world, &gate).await;
    let rest = events.rest().await;
    let kinds: Vec<_> = rest.iter().map(Event::kind).collect();
    assert_eq!(kinds, ["end"], "{rest:?}");
    assert_eq!(rest[0].data, json!({ "status": "deleted" }));
}

#[tokio::test]
async fn a_stream_that_was_not_read_yet_shows_nothing_of_the_next_session_either() {
    let gate = Gate::new();
    let world = start_at_gate(&gate).await;
    let open = |from: u64| {
        let request = Request::builder()
            .uri(format!("/sse?sessionId=talk&from={from}"))
            .header("host", "localhost")
            .header("authorization", "Bearer token-ann");
        let request = request.body(Body::empty()).unwrap();
        TowerToHyperService::new(world.server.router()).call(request)
    };
    let streams = [open(1).await.unwrap(), open(3).await.unwrap()];
    replace_at_gate(&world, &gate).await;
    for stream in streams {
        let body = within(stream.into_body().collect()).await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).unwrap();
        assert_eq!(text, ": open\n\nevent: end\ndata: {\"status\":\"deleted\"}\n\n");
    }
}
