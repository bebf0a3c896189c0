//! A store that fails under a reader.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::AgentExecutor;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{Batch, BatchReceipt, ChunkStream, StreamInfo, StreamManager};
use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
use helix_agents_server::AgentServer;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::{Client, agent, token_file};

/// Streams whose readers fail after two chunks.
#[derive(Debug)]
struct Breaking(MemoryStore);

#[async_trait]
impl StreamManager for Breaking {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        self.0.write(stream, batch).await
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        let chunks = self.0.read(stream, from).await?;
        let broken = Err(Error::new(ErrorCode::StoreCorrupt, "10.0.0.7 has damaged pages"));
        Ok(chunks.take(2).chain(futures_util::stream::iter([broken])).boxed())
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        self.0.info(stream).await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.0.reset(stream).await
    }

    async fn forget(&self, stream: &SessionId, seen: &StreamInfo) -> Result<bool> {
        self.0.forget(stream, seen).await
    }
}

#[tokio::test]
async fn a_store_that_fails_under_a_reader_breaks_the_connection() {
    let (store, gate) = (MemoryStore::new(), Gate::opened());
    let streams = Arc::new(Breaking(store.clone()));
    let model = ScriptedLlm::new([Reply::text("Hello, hello, hello, hello!").at_gate(&gate)]);
    let registry = AgentRegistry::default();
    registry.register(&agent()).unwrap();
    let runtime = LocalRuntime::builder()
        .state_store(Arc::new(store.clone()))
        .stream_manager(Arc::clone(&streams) as _)
        .llm(model)
        .registry(registry.clone())
        .build()
        .unwrap();
    let runtime: Arc<dyn AgentExecutor> = Arc::new(runtime);
    let server = AgentServer::builder_with_streams(runtime, registry, Arc::new(store), streams);
    let server = server.no_sweep().bearer(token_file()).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(listener.local_addr().unwrap(), Some("token-ann"));
    tokio::spawn(async move { server.serve(listener, std::future::pending()).await });
    let request = json!({ "sessionId": "talk", "agentType": "clerk", "message": "Go!" });
    client.post("/start", request).await.expect(202);
    let mut events = client.events("/sse?sessionId=talk").await;
    let (mut received, mut error) = (0, None);
    while error.is_none() {
        match events.next().await {
            Ok(Some(_)) => received += 1,
            Ok(None) => panic!("the stream ended cleanly after {received} events"),
            Err(broken) => error = Some(broken),
        }
    }
    assert_eq!(received, 2);
    assert!(events.is_broken());
}
