//! `Host`, `Origin` and CORS over HTTP.

use std::sync::Arc;

use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::executor::AgentExecutor;
use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
use helix_agents_server::AgentServer;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::ScriptedLlm;
use http::Method;
use tokio::net::TcpListener;

use crate::support::{Client, World, WorldBuilder};

const PAGE: &str = "https://app.example.com";

async fn world() -> World {
    let builder = WorldBuilder { origin: Some(PAGE), ..WorldBuilder::new() };
    builder.serve(MemoryStore::new(), ScriptedLlm::new([])).await
}

async fn preflight(client: &Client, origin: &str) -> crate::support::Response {
    let client = client.clone().header("origin", origin);
    let client = client.header("access-control-request-method", "POST");
    client
        .header("access-control-request-headers", "authorization")
        .send(Method::OPTIONS, "/start", None)
        .await
}

#[tokio::test]
async fn a_listed_page_may_call_the_server_and_read_the_ids() {
    let world = world().await;
    let asked = preflight(&world.stranger(), PAGE).await;
    assert_eq!(asked.status, 200);
    assert_eq!(asked.header("access-control-allow-origin"), Some(PAGE));
    assert!(asked.header("access-control-allow-headers").unwrap().contains("authorization"));
    assert_eq!(asked.header("access-control-allow-credentials"), None);
    let read = world.client("ann").header("origin", PAGE).get("/agents").await;
    read.expect(200);
    assert_eq!(read.header("access-control-allow-origin"), Some(PAGE));
    assert!(read.header("access-control-expose-headers").unwrap().contains("x-session-id"));
}

#[tokio::test]
async fn any_other_page_may_not() {
    let world = world().await;
    let asked = preflight(&world.stranger(), "https://evil.example").await;
    assert_eq!(asked.header("access-control-allow-origin"), None);
    let read = world.client("ann").header("origin", "https://evil.example").get("/agents").await;
    read.expect_error(403, "origin_refused");
    let closed = World::new(ScriptedLlm::new([])).await;
    let asked = preflight(&closed.client("ann"), PAGE).await;
    assert_eq!(asked.header("access-control-allow-origin"), None);
    closed
        .client("ann")
        .header("origin", PAGE)
        .get("/agents")
        .await
        .expect_error(403, "origin_refused");
}

#[tokio::test]
async fn a_name_that_is_not_the_servers_is_refused() {
    let world = world().await;
    let named = |host| world.client("ann").header("host", host);
    named("evil.example").get("/agents").await.expect_error(403, "origin_refused");
    named("localhost:1").get("/agents").await.expect(200);
    // The probe of an orchestrator uses an address.
    named("10.0.0.7").get("/health/live").await.expect(200);
}

#[tokio::test]
async fn a_page_of_another_site_cannot_embed_responses_of_an_open_server() {
    let store = MemoryStore::new();
    let runtime = LocalRuntime::builder().store(store.clone()).llm(ScriptedLlm::new([]));
    let runtime: Arc<dyn AgentExecutor> = Arc::new(runtime.build().unwrap());
    let server = AgentServer::builder(runtime, AgentRegistry::default(), store);
    let server = server.no_sweep().allow_unauthenticated().build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(listener.local_addr().unwrap(), None);
    tokio::spawn(async move { server.serve(listener, std::future::pending()).await });
    client.get("/sessions").await.expect(200);
    for site in ["cross-site", "same-site"] {
        let embedded = client.clone().header("sec-fetch-site", site).get("/sessions").await;
        embedded.expect_error(403, "origin_refused");
    }
}
