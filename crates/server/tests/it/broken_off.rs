//! Clients that disconnect before the response, and streams that read much and show little.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use axum::body::Body;
use futures_util::{FutureExt as _, StreamExt as _};
use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::AgentExecutor;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{
    Batch, BatchReceipt, ChunkStream, StoredChunk, StreamInfo, StreamManager,
};
use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
use helix_agents_server::{AgentServer, Limits};
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use http::Request;
use http_body_util::BodyExt as _;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Client, Event, agent, token_file};

/// The settings of the streams of a test.
#[derive(Debug, Clone)]
enum Mode {
    /// A stream is deleted only once the gate is open.
    SlowDeletion(Gate),
    /// The state of a stream cannot be read.
    NoInfo,
    /// A reader gets the first chunk, and then copies of it from a child session, and counts them.
    Backlog(Arc<AtomicUsize>),
}

/// The number of chunks in a backlog.
const BACKLOG: usize = 100_000;

#[derive(Debug)]
struct Streams {
    store: MemoryStore,
    mode: Mode,
}

#[async_trait]
impl StreamManager for Streams {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        self.store.write(stream, batch).await
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        let mut chunks = self.store.read(stream, from).await?;
        let Mode::Backlog(count) = self.mode.clone() else { return Ok(chunks) };
        let Some(first) = chunks.next().await.transpose()? else { return Ok(chunks) };
        let (shown, mut chunk) = (first.clone(), (*first.chunk).clone());
        chunk.session = "talk-sub-1.0".into();
        let chunk = Arc::new(chunk);
        let backlog = futures_util::stream::iter((1..=BACKLOG).map(move |index| {
            count.fetch_add(1, Ordering::Relaxed);
            let seq = first.seq + u64::try_from(index).unwrap();
            StoredChunk { seq, attempt: None, chunk: Arc::clone(&chunk) }
        }));
        let all = futures_util::stream::iter([shown]).chain(backlog).map(Ok);
        Ok(all.chain(chunks).boxed())
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        match self.mode {
            Mode::NoInfo => Err(Error::new(ErrorCode::StoreCorrupt, "damaged pages")),
            Mode::SlowDeletion(_) | Mode::Backlog(_) => self.store.info(stream).await,
        }
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.store.reset(stream).await
    }

    async fn forget(&self, stream: &SessionId, seen: &StreamInfo) -> Result<bool> {
        if let Mode::SlowDeletion(gate) = &self.mode {
            gate.pass().await;
        }
        self.store.forget(stream, seen).await
    }
}

/// A served server, whose sessions and streams are in different stores.
struct Setup {
    server: AgentServer,
    address: std::net::SocketAddr,
    streams: MemoryStore,
}

/// Serves `clerk`. The runtime uses the streams of the mode only if `for_runtime` is set.
async fn serve(mode: Mode, for_runtime: bool, limits: Limits) -> Setup {
    let (store, plain) = (MemoryStore::new(), MemoryStore::new());
    let special = Arc::new(Streams { store: plain.clone(), mode });
    let registry = AgentRegistry::default();
    registry.register(&agent()).unwrap();
    let of_runtime: Arc<dyn StreamManager> =
        if for_runtime { Arc::clone(&special) as _ } else { Arc::new(plain.clone()) };
    let runtime = LocalRuntime::builder()
        .state_store(Arc::new(store.clone()))
        .stream_manager(of_runtime)
        .llm(ScriptedLlm::new([Reply::text("Done.")]))
        .registry(registry.clone())
        .build()
        .unwrap();
    let runtime: Arc<dyn AgentExecutor> = Arc::new(runtime);
    let server = AgentServer::builder_with_streams(runtime, registry, Arc::new(store), special);
    let server = server.limits(limits).no_sweep().bearer(token_file()).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = server.clone();
    tokio::spawn(async move { served.serve(listener, std::future::pending()).await });
    Setup { server, address, streams: plain }
}

fn start() -> serde_json::Value {
    json!({ "sessionId": "talk", "agentType": "clerk", "message": "Go!" })
}

#[tokio::test]
async fn a_deletion_is_completed_although_its_client_disconnects() {
    let mut limits = Limits::default();
    // The next connection is served once the previous one has ended.
    (limits.connections, limits.writes) = (1, 1);
    let gate = Gate::new();
    let setup = serve(Mode::SlowDeletion(gate.clone()), true, limits).await;
    let client = Client::new(setup.address, Some("token-ann"));
    client.post("/start", start()).await.expect(202);
    client.events("/sse?sessionId=talk").await.rest().await;

    let mut connection = TcpStream::connect(setup.address).await.unwrap();
    let head = "DELETE /sessions/talk HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer token-ann\r\n\r\n";
    connection.write_all(head.as_bytes()).await.unwrap();
    gate.reached().await;
    drop(connection);
    client.get("/status?sessionId=talk").await.expect_error(404, "session_not_found");
    assert!(!setup.streams.info(&"talk".into()).await.unwrap().is_empty());
    // The request is still in progress, and counts.
    client.post("/start", start()).await.expect_error(429, "rate_limited");
    let mut shutdown = std::pin::pin!(setup.server.shutdown());
    assert!(shutdown.as_mut().now_or_never().is_none());
    gate.open();
    within(shutdown).await;
    assert!(setup.streams.info(&"talk".into()).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_was_read_before_the_check_of_the_end_fails_is_sent() {
    let setup = serve(Mode::NoInfo, false, Limits::default()).await;
    let client = Client::new(setup.address, Some("token-ann"));
    client.post("/start", start()).await.expect(202);
    let mut events = client.events("/sse?sessionId=talk").await;
    events.until("run_ended").await;
    events.next().await.unwrap_err();
    assert!(events.is_broken());
}

#[tokio::test]
async fn a_backlog_of_children_does_not_occupy_the_thread() {
    let count = Arc::new(AtomicUsize::new(0));
    let setup = serve(Mode::Backlog(Arc::clone(&count)), true, Limits::default()).await;
    let client = Client::new(setup.address, Some("token-ann"));
    client.post("/start", start()).await.expect(202);
    let request = Request::builder()
        .uri("/sse?sessionId=talk&children=0")
        .header("host", "localhost")
        .header("authorization", "Bearer token-ann");
    let request = request.body(Body::empty()).unwrap();
    let service = TowerToHyperService::new(setup.server.router());
    let mut body = service.call(request).await.unwrap().into_body();
    let mut frames = Vec::new();
    for _ in 0..2 {
        frames.push(body.frame().await.unwrap().unwrap().into_data().unwrap());
    }
    assert!(frames[1].starts_with(b"id: 1\n"), "{frames:?}");
    assert!(body.frame().now_or_never().is_none(), "nothing else is for this client");
    let read = count.load(Ordering::Relaxed);
    assert!((1..2_000).contains(&read), "{read}");
    // The rest comes after the backlog.
    let events = client.events("/sse?sessionId=talk&children=0").await.rest().await;
    assert_eq!(events.last().map(Event::kind), Some("end"));
}
