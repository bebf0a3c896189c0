//! Credentials and owners: each route without credentials, with too few, and for another owner's session.

use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_test::{Reply, ScriptedLlm};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Client, World, agent};

/// Every route of the server, as its OpenAPI document lists them: method, path and operation.
async fn routes(world: &World) -> Vec<(Method, String, Value)> {
    let document = world.client("ann").get("/openapi.json").await.expect(200);
    let mut routes = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let method = method.to_uppercase().parse().unwrap();
            routes.push((method, path.clone(), operation.clone()));
        }
    }
    assert!(routes.len() >= 28, "{}", routes.len());
    routes
}

/// The path and the body of a valid request about a session.
fn request_of(path: &str, method: &Method, session: &str) -> (String, Option<Value>) {
    let body = match path {
        "/start" => json!({ "sessionId": session, "agentType": "clerk", "message": "x" }),
        "/submit-tool-result" => json!({ "sessionId": session, "call": "1.0", "result": 1 }),
        "/chat/{id}/submit-tool-result" => json!({ "call": "1.0", "result": 1 }),
        "/chat/{id}/interrupt" | "/chat/{id}/abort" => json!({}),
        "/chat" | "/agents/{agent}/chat" => json!({
            "id": session,
            "messages": [{ "id": "m", "role": "user", "parts": [{ "type": "text", "text": "x" }] }],
        }),
        "/agui/{agent}" | "/agui/{agent}/connect" => json!({
            "threadId": session, "runId": "r", "messages": [{ "id": "m", "role": "user", "content": "x" }],
        }),
        "/messages" => json!({ "sessionId": session, "message": "x" }),
        "/resume" | "/interrupt" | "/abort" | "/fork" => json!({ "sessionId": session }),
        "/sse" | "/status" => return (format!("{path}?sessionId={session}"), None),
        _ => {
            assert_ne!(method, Method::POST, "{path} has no body in this test");
            return (named(path, session), None);
        }
    };
    (named(path, session), Some(body))
}

/// Puts the session and the agent into a path.
fn named(path: &str, session: &str) -> String {
    path.replace("{id}", session).replace("{agent}", "clerk")
}

/// The routes that create a session with an unknown id.
const CREATING: &[&str] = &["/start", "/chat", "/agents/{agent}/chat", "/agui/{agent}"];

async fn send(
    client: &Client,
    method: &Method,
    path: &str,
    session: &str,
) -> crate::support::Response {
    let (path, body) = request_of(path, method, session);
    client.send(method.clone(), &path, body.map(|body| body.to_string().into())).await
}

async fn world_with_session() -> World {
    let world = World::new(ScriptedLlm::new([Reply::text("One."), Reply::text("Two.")])).await;
    let client = world.client("ann");
    let request = json!({ "sessionId": "talk", "agentType": "clerk", "message": "Hello!" });
    client.post("/start", request).await.expect(202);
    client.events("/sse?sessionId=talk").await.rest().await;
    world
}

#[tokio::test]
async fn every_route_without_credentials_is_401() {
    let world = world_with_session().await;
    let clients = [
        world.stranger(),
        Client::new(world.address, Some("wrong")),
        world.stranger().header("authorization", "Basic YW5uOmFubg=="),
        world.stranger().header("cookie", "token=token-ann"),
    ];
    let mut open = Vec::new();
    for (method, path, _) in routes(&world).await {
        for client in &clients {
            let response = send(client, &method, &path, "talk").await;
            if response.status == 200 {
                open.push(path.clone());
            } else if response.status != 403 {
                // A request with a cookie and without an origin is refused before.
                response.expect_error(401, "unauthenticated");
                assert_eq!(response.header("www-authenticate"), Some("Bearer"));
            } else {
                response.expect_error(403, "origin_refused");
            }
        }
    }
    assert_eq!(open, ["/health/live"; 4]);
    world.stranger().get("/nothing").await.expect_error(401, "unauthenticated");
    world.stranger().get("/start").await.expect_error(401, "unauthenticated");
    world.stranger().get("/agents?token=token-ann").await.expect_error(401, "unauthenticated");
}

#[tokio::test]
async fn every_route_hides_the_session_of_another_owner() {
    let world = world_with_session().await;
    let before = world.client("eve").get("/sessions/talk/log").await.expect(200);
    let mut hidden = 0;
    for (method, path, _) in routes(&world).await {
        let foreign = send(&world.client("bob"), &method, &path, "talk").await;
        let is_about_session =
            request_of(&path, &method, "talk") != request_of(&path, &method, "none");
        if !is_about_session {
            assert_eq!(foreign.status, 200, "{path}");
            assert!(!String::from_utf8_lossy(&foreign.body).contains("talk"), "{path}");
            continue;
        }
        if path == "/chat/{id}/stream" {
            // A page resumes a chat that does not exist yet, too.
            assert_eq!(foreign.status, StatusCode::NO_CONTENT);
        } else if path.ends_with("/log") {
            // Only operators read logs.
            foreign.expect_error(403, "forbidden");
        } else {
            foreign.expect_error(404, "session_not_found");
        }
        hidden += 1;
        if !CREATING.contains(&&*path) {
            // The response is that for a session that does not exist.
            let missing = send(&world.client("bob"), &method, &path, "none").await;
            assert_eq!((foreign.status, &foreign.body), (missing.status, &missing.body), "{path}");
        }
    }
    assert_eq!(hidden, 22);
    assert_eq!(world.client("eve").get("/sessions/talk/log").await.expect(200), before);
}

#[tokio::test]
async fn a_token_that_reads_changes_nothing() {
    let world = world_with_session().await;
    let reader = Client::new(world.address, Some("token-ann-reads"));
    for (method, path, operation) in routes(&world).await {
        let response = send(&reader, &method, &path, "talk").await;
        let reads = method == Method::GET || path == "/agui/{agent}/connect";
        let is_refused = !reads || path.ends_with("/log");
        assert_eq!(response.status == 403, is_refused, "{path} {operation}");
        if is_refused {
            response.expect_error(403, "forbidden");
        }
    }
    assert_eq!(world.model.calls(), 1);
}

#[tokio::test]
async fn a_session_without_an_owner_is_only_for_operators() {
    let world = world_with_session().await;
    let options = ExecuteOptions::default().session("library");
    let handle = world.runtime.execute(agent().erased(), "Hello!".into(), options).await.unwrap();
    handle.result().await.unwrap();
    for user in ["ann", "bob"] {
        let client = world.client(user);
        client.get("/status?sessionId=library").await.expect_error(404, "session_not_found");
        let request = json!({ "sessionId": "library", "agentType": "clerk", "message": "x" });
        client.post("/start", request).await.expect_error(404, "session_not_found");
    }
    let eve = world.client("eve");
    assert_eq!(eve.get("/status?sessionId=library").await.expect(200)["status"], "completed");
    // The operator continues sessions of others, which stay theirs.
    let request = json!({ "sessionId": "talk", "agentType": "clerk", "message": "x" });
    eve.post("/start", request).await.expect(202);
    world.client("ann").get("/status?sessionId=talk").await.expect(200);
}

#[tokio::test]
async fn of_two_owners_who_choose_one_id_at_once_one_gets_the_session() {
    let world = World::new(ScriptedLlm::new([Reply::text("One."), Reply::text("Two.")])).await;
    for round in 0..20 {
        let session = format!("race{round}");
        let request = json!({ "sessionId": session, "agentType": "clerk", "message": "x" });
        let (ann, bob) = (world.client("ann"), world.client("bob"));
        let (first, second) =
            tokio::join!(ann.post("/start", request.clone()), bob.post("/start", request.clone()));
        let winners = [&first, &second].into_iter().filter(|response| response.status == 202);
        assert_eq!(winners.count(), 1, "{first:?} {second:?}");
        let loser = if first.status == 202 { &second } else { &first };
        loser.expect_error(404, "session_not_found");
    }
}
