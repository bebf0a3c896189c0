//! Clients that do not read, and streams without chunks.

use std::time::Duration;

use axum::body::Body;
use helix_agents_server::Limits;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::time::Instant;

use crate::support::{World, WorldBuilder};

async fn world(model: ScriptedLlm, stall: Duration) -> World {
    let mut limits = Limits::default();
    limits.stall_timeout = stall;
    limits.streams = 1;
    WorldBuilder { limits, ..WorldBuilder::new() }.serve(MemoryStore::new(), model).await
}

/// Opens the stream without a socket, so that the test can pause the clock.
async fn open(world: &World) -> Response<Body> {
    let request = Request::builder()
        .uri("/sse?sessionId=talk")
        .header("host", "localhost")
        .header("authorization", "Bearer token-ann");
    let request = request.body(Body::empty()).unwrap();
    TowerToHyperService::new(world.server.router()).call(request).await.unwrap()
}

async fn start(world: &World) {
    let request = json!({ "sessionId": "talk", "agentType": "clerk", "message": "Go!" });
    world.client("ann").post("/start", request).await.expect(202);
}

#[tokio::test]
async fn an_idle_stream_is_kept_alive_every_fifteen_seconds() {
    let gate = Gate::new();
    let world =
        world(ScriptedLlm::new([Reply::text("x").at_gate(&gate)]), Duration::from_secs(60)).await;
    start(&world).await;
    gate.reached().await;
    let mut body = open(&world).await.into_body();
    tokio::time::pause();
    let mut frames = Vec::new();
    let started = Instant::now();
    while frames.len() < 5 {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let seconds = started.elapsed().as_secs();
        frames.push((seconds, String::from_utf8(frame.to_vec()).unwrap()));
    }
    assert_eq!(frames[0], (0, ": open\n\n".to_owned()));
    assert!(frames[1].1.starts_with("id: 1\n"), "{frames:?}");
    for (index, frame) in frames[2..].iter().enumerate() {
        assert_eq!(*frame, (15 * (index as u64 + 1), ": keep-alive\n\n".to_owned()));
    }
    gate.open();
}

#[tokio::test]
async fn a_reader_that_stalls_is_released_and_its_stream_breaks() {
    let gate = Gate::new();
    let world =
        world(ScriptedLlm::new([Reply::text("x").at_gate(&gate)]), Duration::from_secs(60)).await;
    start(&world).await;
    gate.reached().await;
    let mut body = open(&world).await.into_body();
    body.frame().await.unwrap().unwrap();
    assert_eq!(open(&world).await.status(), 429);
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(open(&world).await.status(), 429);
    tokio::time::sleep(Duration::from_secs(2)).await;
    tokio::time::resume();
    // The reader is released although nothing polls the body.
    assert_eq!(open(&world).await.status(), 200);
    body.frame().await.unwrap().unwrap_err();
    gate.open();
    world.client("ann").events("/sse?sessionId=talk").await.rest().await;
}

#[tokio::test]
async fn a_client_that_never_reads_is_cut_and_the_run_completes() {
    // More than the buffers of both sockets hold.
    let replies =
        (0..15).map(|_| Reply::more_text("x".repeat(1 << 20))).chain([Reply::text("Done.")]);
    let model = ScriptedLlm::new(replies).chunk_size(1 << 16);
    let world = world(model, Duration::from_millis(300)).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut client = socket.connect(world.address).await.unwrap();
    start(&world).await;
    let head = "GET /sse?sessionId=talk HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer token-ann\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    within(client.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    let ann = world.client("ann");
    let ended = async {
        loop {
            let status = ann.get("/status?sessionId=talk").await.expect(200);
            if status["run"]["status"] == "completed" {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert_eq!(within(ended).await["run"]["output"], "Done.");
    // The only permit for a stream comes back, and what the client reads now ends early.
    let freed = async {
        while open(&world).await.status() == 429 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within(freed).await;
    let mut rest = Vec::new();
    let cut = within(client.read_to_end(&mut rest)).await;
    assert!(cut.is_err() || !rest.ends_with(b"0\r\n\r\n"), "the stream ended cleanly");
}
