//! A stream with slow writes.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use helix_agents_core::agent::Agent;
use helix_agents_core::error::Result;
use helix_agents_core::executor::{AgentExecutorExt as _, ExecuteOptions};
use helix_agents_core::hooks::{AgentHooks, HookContext, HookResult};
use helix_agents_core::id::SessionId;
use helix_agents_core::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink};
use helix_agents_core::step::{StepResult, StopReason};
use helix_agents_core::stream::{
    Batch, BatchReceipt, Chunk, ChunkKind, ChunkStream, StreamInfo, StreamManager, StreamOp,
};
use helix_agents_core::usage::Usage;
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, within};
use tokio::sync::Notify;

/// A stream manager that holds writes of text at a gate.
#[derive(Debug)]
struct Held {
    store: MemoryStore,
    gate: Gate,
}

fn shows_text(op: &StreamOp) -> bool {
    let is_text = |chunk: &Arc<Chunk>| matches!(chunk.kind, ChunkKind::TextDelta { .. });
    matches!(op, StreamOp::Chunks { chunks, .. } if chunks.iter().any(is_text))
}

#[async_trait]
impl StreamManager for Held {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        if batch.ops.iter().any(shows_text) {
            self.gate.pass().await;
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

    async fn forget(&self, stream: &SessionId) -> Result<()> {
        self.store.forget(stream).await
    }
}

/// A model that emits half of its text, and the rest after the gate opens.
#[derive(Debug)]
struct Speaker {
    half: String,
    rest: Gate,
}

#[async_trait]
impl LlmAdapter for Speaker {
    async fn generate_step(&self, _: LlmRequest<'_>, sink: &dyn LlmSink) -> Result<LlmResponse> {
        sink.text_delta(&self.half);
        self.rest.pass().await;
        sink.text_delta(&self.half);
        Ok(LlmResponse {
            result: StepResult::Text {
                content: self.half.repeat(2),
                thinking: None,
                should_stop: true,
                stop_reason: Some(StopReason::EndTurn),
            },
            usage: Usage::default(),
            model: None,
            raw_stop_reason: None,
        })
    }

    fn check(&self, _: &LlmConfig) -> Result<()> {
        Ok(())
    }
}

/// Hooks that notify when the model call has completed.
struct Done(Arc<Notify>);

#[async_trait]
impl AgentHooks for Done {
    async fn after_llm_call(&self, _: &HookContext, _: &LlmResponse) -> HookResult {
        self.0.notify_one();
        Ok(())
    }
}

/// The write starts before the model call completes and ends after it.
#[tokio::test]
async fn a_write_in_progress_at_the_end_of_an_effect_is_not_lost() {
    let (gate, rest, done) = (Gate::new(), Gate::new(), Arc::new(Notify::new()));
    let store = MemoryStore::new();
    let half = "Much to say. ".repeat(500);
    let runtime = LocalRuntime::builder()
        .state_store(Arc::new(store.clone()))
        .stream_manager(Arc::new(Held { store, gate: gate.clone() }))
        .llm(Speaker { half: half.clone(), rest: rest.clone() })
        .build()
        .unwrap();
    let agent = Agent::builder("speaker")
        .system_prompt("You speak.")
        .hooks(Done(Arc::clone(&done)))
        .build()
        .unwrap();
    let handle = runtime.start(&agent, "go", ExecuteOptions::default()).await.unwrap();
    within(gate.reached()).await;
    rest.open();
    within(done.notified()).await;
    gate.open();

    let mut shown = String::new();
    let mut chunks = handle.stream().await.unwrap();
    while let Some(chunk) = within(chunks.next()).await {
        if let ChunkKind::TextDelta { delta } = &chunk.unwrap().chunk.kind {
            shown.push_str(delta);
        }
    }
    assert_eq!(shown.len(), 2 * half.len());
}
