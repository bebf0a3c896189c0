//! A stream with slow writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::future::join;
use helix_agents_conformance::faults::{Fault, FaultStore};
use helix_agents_core::agent::{Agent, CompanionMode};
use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::executor::{
    AgentExecutor as _, AgentExecutorExt as _, ExecuteOptions, RunHandle,
};
use helix_agents_core::hooks::{AgentHooks, HookContext, HookResult};
use helix_agents_core::id::SessionId;
use helix_agents_core::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink};
use helix_agents_core::step::{StepResult, StopReason};
use helix_agents_core::store::{StateStore, WriteQueue};
use helix_agents_core::stream::{
    Batch, BatchReceipt, Chunk, ChunkKind, ChunkStream, StreamInfo, StreamManager, StreamOp,
};
use helix_agents_core::usage::Usage;
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_store_sqlite::SqliteStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// The output of the companion.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Helped {
    done: bool,
}

/// A stream manager that holds writes at a gate: those with a matching operation, by default those of text.
#[derive(Debug)]
struct Held<S> {
    store: S,
    what: fn(&StreamOp) -> bool,
    gate: Gate,
    /// The number of writes that wait at the gate.
    waiting: Arc<AtomicUsize>,
    write_queue: Option<WriteQueue>,
}

impl<S> Held<S> {
    fn new(store: S, gate: &Gate) -> Self {
        let (what, waiting) = (shows_text as fn(&StreamOp) -> bool, Arc::default());
        Self { store, what, gate: gate.clone(), waiting, write_queue: None }
    }
}

/// Counts a write until its wait ends or is cancelled.
struct Waiting<'w>(&'w AtomicUsize);

impl<'w> Waiting<'w> {
    fn new(count: &'w AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn shows_text(op: &StreamOp) -> bool {
    let is_text = |chunk: &Arc<Chunk>| matches!(chunk.kind, ChunkKind::TextDelta { .. });
    matches!(op, StreamOp::Chunks { chunks, .. } if chunks.iter().any(is_text))
}

fn starts_a_child(op: &StreamOp) -> bool {
    let is_start = |chunk: &Arc<Chunk>| matches!(chunk.kind, ChunkKind::SubagentStart { .. });
    matches!(op, StreamOp::Chunks { chunks, .. } if chunks.iter().any(is_start))
}

#[async_trait]
impl<S: StreamManager> StreamManager for Held<S> {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        if batch.ops.iter().any(self.what) {
            let _waiting = Waiting::new(&self.waiting);
            self.gate.pass().await;
        }
        self.store.write(stream, batch).await
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        self.write_queue
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        self.store.read(stream, from).await
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
        Ok(LlmResponse::new(
            StepResult::Text {
                content: self.half.repeat(2),
                thinking: None,
                should_stop: true,
                stop_reason: Some(StopReason::EndTurn),
            },
            Usage::default(),
        ))
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
        .stream_manager(Arc::new(Held::new(store, &gate)))
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

/// Starts a run and holds the append of its reply at `append`.
async fn start(held: Held<SqliteStore>, append: &Gate) -> RunHandle<String> {
    let reply = Fault::HoldBefore(append.clone());
    let store = FaultStore::new(Arc::new(held.store.clone())).with_fault("model_replied", reply);
    let runtime = LocalRuntime::builder()
        .state_store(Arc::new(store))
        .stream_manager(Arc::new(held))
        .llm(ScriptedLlm::new([Reply::text("Hello.")]))
        .build()
        .unwrap();
    let agent = Agent::builder("speaker").system_prompt("You speak.").build().unwrap();
    runtime.start(&agent, "go", ExecuteOptions::default()).await.unwrap()
}

async fn sqlite_store(folder: &TempDir) -> SqliteStore {
    SqliteStore::open(folder.path().join("store.db")).await.unwrap()
}

#[tokio::test]
async fn a_store_with_one_queue_gets_chunks_and_their_outcome_together() {
    let (folder, gate, append) = (TempDir::new().unwrap(), Gate::new(), Gate::new());
    let store = sqlite_store(&folder).await;
    let mut held = Held::new(store.clone(), &gate);
    held.write_queue = StateStore::write_queue(&store);
    let waiting = Arc::clone(&held.waiting);
    let handle = start(held, &append).await;
    within(append.reached()).await;
    assert_eq!(waiting.load(Ordering::SeqCst), 1, "the append waited until the batch timed out");
    append.open();
    gate.open();
    within(handle.result()).await.unwrap();
}

#[tokio::test]
async fn the_outcome_waits_for_its_chunks_if_the_store_does_not_order_them() {
    let (folder, gate, append) = (TempDir::new().unwrap(), Gate::new(), Gate::new());
    let held = Held::new(sqlite_store(&folder).await, &gate);
    let waiting = Arc::clone(&held.waiting);
    let handle = start(held, &append).await;
    within(append.reached()).await;
    assert!(gate.arrived() > 0, "the batch was written");
    assert_eq!(waiting.load(Ordering::SeqCst), 0, "the append did not wait for the batch");
    append.open();
    gate.open();
    within(handle.result()).await.unwrap();
}

/// The stream accepts the text only after the run has ended.
#[tokio::test(start_paused = true)]
async fn chunks_that_a_run_could_not_write_are_written_after_its_end() {
    let (gate, store) = (Gate::new(), MemoryStore::new());
    let runtime = LocalRuntime::builder()
        .state_store(Arc::new(store.clone()))
        .stream_manager(Arc::new(Held::new(store.clone(), &gate)))
        .llm(ScriptedLlm::new([Reply::text("Hello.")]))
        .build()
        .unwrap();
    let agent = Agent::builder("speaker").system_prompt("You speak.").build().unwrap();
    let handle = runtime.start(&agent, "go", ExecuteOptions::default()).await.unwrap();
    let session = handle.session().clone();
    handle.result().await.unwrap();
    assert_eq!(store.info(&session).await.unwrap().last_seq, 0);
    gate.open();
    let mut chunks = StreamManager::read(&store, &session, 1).await.unwrap();
    let mut text = String::new();
    loop {
        match &within(chunks.next()).await.unwrap().unwrap().chunk.kind {
            ChunkKind::TextDelta { delta } => text.push_str(delta),
            ChunkKind::RunEnded { .. } => break,
            _ => {}
        }
    }
    assert_eq!(text, "Hello.");
}

/// The run is cancelled while the start of a companion is written, and the write ends soon after. The run must not wait
/// until the write has timed out: streams would then count as unavailable, and other runs would not wait for theirs.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_while_it_shows_the_start_of_a_companion_ends_with_the_write() {
    let (gate, store) = (Gate::new(), MemoryStore::new());
    let mut held = Held::new(store.clone(), &gate);
    held.what = starts_a_child;
    let rex = Agent::builder("rex").description("Helps.").system_prompt("You help.");
    let rex = rex.output::<Helped>().build().unwrap();
    let boss = Agent::builder("boss")
        .system_prompt("You delegate.")
        .companion(&rex, CompanionMode::NonBlocking)
        .build()
        .unwrap();
    let spawn = json!({"agent": "rex", "message": "Help.", "name": "rex"});
    let grace = Duration::from_millis(50);
    let runtime = LocalRuntime::builder()
        .state_store(Arc::new(store))
        .stream_manager(Arc::new(held))
        .llm(ScriptedLlm::new([Reply::tool_call("companion__spawnAgent", spawn)]))
        .lease(Duration::from_secs(60))
        .grace(grace)
        .build()
        .unwrap();
    let handle = runtime.start(&boss, "go", ExecuteOptions::default()).await.unwrap();
    within(gate.reached()).await;

    let started = Instant::now();
    let write = async {
        sleep(grace * 2).await;
        gate.open();
    };
    within(join(runtime.shutdown(), write)).await;
    assert_eq!(within(handle.result()).await.unwrap_err().code(), ErrorCode::Closed);
    assert!(started.elapsed() < grace * 4, "{:?}", started.elapsed());
}
