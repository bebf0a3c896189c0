//! Malformed, deep, large, slow and cut-off requests.

use std::time::Duration;

use helix_agents_server::Limits;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{ScriptedLlm, within};
use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{World, WorldBuilder};

const ROUTES: [&str; 7] =
    ["/start", "/resume", "/interrupt", "/abort", "/submit-tool-result", "/messages", "/fork"];

async fn world() -> World {
    World::new(ScriptedLlm::new([])).await
}

/// A world whose limits make a test of slow clients short.
async fn impatient() -> World {
    let mut limits = Limits::default();
    limits.body_timeout = Duration::from_millis(100);
    limits.head_timeout = Duration::from_millis(100);
    WorldBuilder { limits, ..WorldBuilder::new() }
        .serve(MemoryStore::new(), ScriptedLlm::new([]))
        .await
}

#[tokio::test]
async fn malformed_and_deep_bodies_are_refused_by_every_route() {
    let world = world().await;
    let client = world.client("ann");
    let deep = format!("{{\"sessionId\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_state = format!(
        r#"{{"agentType":"clerk","message":"x","state":{{"a":{}{}}}}}"#,
        "[".repeat(120),
        "]".repeat(120)
    );
    let bodies: [&[u8]; 9] = [
        b"",
        b"{",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        br#"{"sessionId":1}"#,
        deep.as_bytes(),
        deep_state.as_bytes(),
    ];
    for path in ROUTES {
        for body in bodies {
            let response = client.send(Method::POST, path, Some(body.to_vec().into())).await;
            assert_eq!(response.status, 400, "{path} {:?}", response.body);
        }
    }
}

#[tokio::test]
async fn no_cut_of_a_valid_body_is_an_error_of_the_server() {
    let world = world().await;
    let client = world.client("ann");
    let body = json!({
        "sessionId": "s", "agentType": "baker", "runId": "r", "state": { "a": [1, 2.5e3, null] },
        "message": { "content": "x", "attachments": [{ "type": "image/png", "url": "https://x" }] },
    });
    let body = body.to_string();
    for end in 0..body.len() {
        let cut = body.as_bytes()[..end].to_vec();
        let response = client.send(Method::POST, "/start", Some(cut.into())).await;
        assert_eq!(response.status, 400, "{end}");
    }
    for position in 0..body.len() {
        let mut changed = body.clone().into_bytes();
        changed[position] ^= 0x15;
        let response = client.send(Method::POST, "/start", Some(changed.into())).await;
        assert!(response.status.is_client_error(), "{position} {:?}", response.body);
        // The limit on starts also protects the test's server.
        if response.status == 429 {
            break;
        }
    }
}

#[tokio::test]
async fn a_large_body_is_refused_whether_or_not_it_says_so() {
    let world = world().await;
    let client = world.client("ann");
    let large = vec![b' '; 1024 * 1024 + 1];
    let response = client.send(Method::POST, "/start", Some(large.into())).await;
    response.expect_error(413, "too_large");
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let head = "POST /start HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer token-ann\r\n\
                content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    // The server answers before it has read all of this, and closes the connection.
    for _ in 0..20 {
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut answer = [0; 12];
    within(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
}

#[tokio::test]
async fn only_json_is_read() {
    let world = world().await;
    let body = || Some(json!({ "sessionId": "s" }).to_string().into());
    for media_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let client = world.client("ann").header("content-type", media_type);
        let response = client.send(Method::POST, "/resume", body()).await;
        response.expect_error(415, "content_type_unsupported");
    }
    let client = world.client("ann").header("content-type", "Application/JSON; charset=utf-8");
    client.send(Method::POST, "/resume", body()).await.expect_error(404, "session_not_found");
}

#[tokio::test]
async fn a_slow_body_is_not_waited_for() {
    let world = impatient().await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let head = "POST /start HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer token-ann\r\n\
                content-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    within(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
}

#[tokio::test]
async fn a_slow_head_is_not_waited_for() {
    let world = impatient().await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(b"GET /health/live HTTP/1.1\r\nhost: loc").await.unwrap();
    let mut rest = Vec::new();
    within(stream.read_to_end(&mut rest)).await.unwrap();
    assert!(!rest.starts_with(b"HTTP/1.1 200"), "{rest:?}");
}
