//! Streams that reject a batch once, with a retryable or a final error.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use helix_agents_core::agent::Agent;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions, RunHandle};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::RunStatus;
use helix_agents_core::stream::{
    Batch, BatchReceipt, Chunk, ChunkKind, ChunkStream, StreamInfo, StreamManager, StreamOp,
};
use helix_agents_core::tool::{EffectClass, Tool, ToolContext};
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Reply, ScriptedLlm, within};
use serde_json::{Value, json};

/// A stream manager that fails the first batch with a matching operation.
#[derive(Debug)]
struct Refusing {
    store: MemoryStore,
    what: fn(&StreamOp) -> bool,
    /// The error code, which determines whether the batch is retried.
    with: ErrorCode,
    /// `true` if the batch is stored nevertheless, so only the response is lost.
    takes: bool,
    has_refused: AtomicBool,
}

impl Refusing {
    fn new(store: &MemoryStore, what: fn(&StreamOp) -> bool, with: ErrorCode) -> Arc<Self> {
        Self::with(store, what, with, false)
    }

    fn with(
        store: &MemoryStore,
        what: fn(&StreamOp) -> bool,
        with: ErrorCode,
        takes: bool,
    ) -> Arc<Self> {
        let has_refused = AtomicBool::new(false);
        Arc::new(Self { store: store.clone(), what, with, takes, has_refused })
    }
}

fn shows_a_result(op: &StreamOp) -> bool {
    let is_end = |chunk: &Arc<Chunk>| matches!(chunk.kind, ChunkKind::ToolEnd { .. });
    matches!(op, StreamOp::Chunks { chunks, .. } if chunks.iter().any(is_end))
}

#[async_trait]
impl StreamManager for Refusing {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        if batch.ops.iter().any(self.what) && !self.has_refused.swap(true, Ordering::Relaxed) {
            if self.takes {
                self.store.write(stream, batch).await?;
            }
            return Err(Error::new(self.with, "as arranged"));
        }
        self.store.write(stream, batch).await
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        StreamManager::read(&self.store, stream, from).await
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        self.store.info(stream).await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.store.reset(stream).await
    }

    async fn forget(&self, stream: &SessionId, seen: &StreamInfo) -> Result<bool> {
        self.store.forget(stream, seen).await
    }
}

/// Executes a run of two calls and an answer with these streams.
async fn completed(store: MemoryStore, streams: &Arc<Refusing>) -> RunHandle {
    let call = || Reply::tool_call("act", json!({}));
    let runtime = LocalRuntime::builder()
        .state_store(Arc::new(store))
        .stream_manager(Arc::clone(streams) as Arc<dyn StreamManager>)
        .store_retry_timeout(Duration::ZERO)
        .llm(ScriptedLlm::new([call(), call(), Reply::text("Done.")]))
        .build()
        .unwrap();
    let act = Tool::function("act", "Acts.", |_: Value, _: ToolContext| async { Ok("done") });
    // The start of an at-most-once call is recorded and shown before it runs, so its result is in a later batch.
    let act = act.effect(EffectClass::AtMostOnce);
    let agent: Agent = Agent::builder("a").system_prompt("p").model("m").tool(act).build().unwrap();
    let options = ExecuteOptions::default().session("s");
    let handle = runtime.execute(agent.erased(), "go".into(), options).await.unwrap();
    let ended = within(handle.result()).await.unwrap();
    assert_eq!(ended.status, RunStatus::Completed, "{ended:?}");
    assert!(streams.has_refused.load(Ordering::Relaxed));
    handle
}

/// Returns the calls whose results the stream contains, in stream order.
async fn shown_results(handle: &RunHandle) -> Vec<String> {
    let mut shown = handle.stream().await.unwrap();
    let mut calls = Vec::new();
    while let Some(chunk) = within(shown.next()).await {
        match &chunk.unwrap().chunk.kind {
            ChunkKind::ToolEnd { call, .. } => calls.push(call.to_string()),
            kind if kind.ends_run() => break,
            _ => {}
        }
    }
    calls
}

#[tokio::test]
async fn a_failed_batch_is_written_before_the_next() {
    let store = MemoryStore::new();
    let streams = Refusing::new(&store, shows_a_result, ErrorCode::StoreBusy);
    let handle = completed(store, &streams).await;
    assert_eq!(shown_results(&handle).await, ["1.0", "2.0"]);
    // All attempts are settled, too.
    assert_eq!(streams.info(&SessionId::from("s")).await.unwrap().open, []);
}

#[tokio::test]
async fn a_batch_whose_response_is_lost_is_shown_once() {
    let store = MemoryStore::new();
    let streams = Refusing::with(&store, shows_a_result, ErrorCode::StoreUnavailable, true);
    let handle = completed(store, &streams).await;
    assert_eq!(shown_results(&handle).await, ["1.0", "2.0"]);
}

fn settles(op: &StreamOp) -> bool {
    matches!(op, StreamOp::Watermark(mark) if !mark.settled.is_empty())
}

#[tokio::test]
async fn the_next_watermark_settles_the_attempts_of_a_lost_batch() {
    let store = MemoryStore::new();
    let streams = Refusing::new(&store, settles, ErrorCode::Internal);
    completed(store, &streams).await;
    assert_eq!(streams.info(&SessionId::from("s")).await.unwrap().open, []);
}
