//! Scenarios for data that exceeds one append. The store's limit is lowered, so that a step has the same
//! multiple of it as with the usual limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use helix_agents_core::agent::AgentBuilder;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::RunHandle;
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::message::Media;
use helix_agents_core::session::RunStatus;
use helix_agents_core::store::MIN_APPEND_BYTES;
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;

use super::support::{
    S, Word, chunks, completes, end, fold, killed_at, log_of, resume, run, start_run, teller, word,
};
use super::{RuntimeHarness, World};
use crate::faults::{Fault, FaultStore};

/// Number of calls in a step. Their results take twice the size of one append.
const CALLS: usize = 16;

/// Returns a store on the harness's logs that accepts only small appends.
fn small(harness: &impl RuntimeHarness) -> FaultStore {
    FaultStore::new(harness.store()).refuse_appends_over(MIN_APPEND_BYTES)
}

fn world(harness: &impl RuntimeHarness, llm: impl LlmAdapter) -> World {
    World::new(llm).with_store(small(harness))
}

/// Returns a tool that counts its executions, and returns its word and the given number of bytes.
fn fills(count: &Arc<AtomicUsize>, bytes: usize) -> Tool {
    let count = Arc::clone(count);
    Tool::function("fill", "Returns much.", move |input: Word, _: ToolContext| {
        count.fetch_add(1, Ordering::Relaxed);
        let result = format!("<{}>{}", input.word, "x".repeat(bytes));
        async move { Ok::<_, ToolError>(result) }
    })
}

fn filler(count: &Arc<AtomicUsize>, bytes: usize) -> AgentBuilder {
    teller().tool(fills(count, bytes)).tool_concurrency(CALLS)
}

/// Returns a reply with all calls of a step.
fn all() -> Reply {
    Reply::calls((0..CALLS).map(|index| ("fill", json!({"word": index.to_string()}))))
}

/// If the results of a step are ready together and do not fit into one append, they are recorded in several appends.
/// Each tool runs once.
pub async fn results_that_do_not_share_an_append_are_recorded_once(harness: &impl RuntimeHarness) {
    let count = Arc::default();
    let agent = filler(&count, 2_000).build().unwrap();
    let llm = ScriptedLlm::new([all(), Reply::text("done")]);
    let executor = harness.boot(world(harness, llm.clone())).await;
    completes(&start_run(&*executor, &agent, "go").await).await;
    assert_eq!((count.load(Ordering::Relaxed), llm.calls()), (CALLS, 2));
    let appends = harness.store().read_log(&S.into(), 0, u32::MAX).await.unwrap();
    assert!(appends.iter().all(|append| append.body.len() <= MIN_APPEND_BYTES / 4));
    assert_eq!(fold(harness).await.transcript().len(), 3 + CALLS);
}

/// A process crashes between two appends that record the results of one step. Another process keeps the recorded
/// results and executes only the other calls again.
pub async fn a_process_that_crashes_between_two_appends_is_continued(
    harness: &impl RuntimeHarness,
) {
    let (count, gate) = (Arc::default(), Gate::new());
    let agent = filler(&count, 2_000).build().unwrap();
    let script = || ScriptedLlm::new([all(), Reply::text("done")]);
    // Not the first result, which may be ready before the others.
    let store = small(harness).with_fault("<9>", Fault::HoldAfter(gate.clone()));
    killed_at(harness, World::new(script()).with_store(store), &agent, &gate).await;
    let recorded = |step: &helix_agents_core::session::StepRecord| {
        step.calls.iter().filter(|call| call.finish.is_some()).count()
    };
    let before = fold(harness).await.open_step().map_or(CALLS, recorded);
    let ran = count.load(Ordering::Relaxed);
    let executor = harness.boot(world(harness, script())).await;
    completes(&resume(&*executor, &agent).await.unwrap()).await;
    assert!(before >= 1, "one result was recorded");
    assert_eq!(count.load(Ordering::Relaxed) - ran, CALLS - before, "the others ran again");
}

/// A model reply that exceeds the limit of an append fails the run with `too_large`, and the model is not called again.
/// The next turn can complete.
pub async fn a_reply_that_is_too_large_fails_the_run(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let llm = ScriptedLlm::new([Reply::text("x".repeat(MIN_APPEND_BYTES))]);
    let executor = harness.boot(world(harness, llm.clone())).await;
    let failed = run(&*executor, &agent, "go").await;
    assert_eq!(failed.status, RunStatus::Failed);
    assert!(failed.error.unwrap().is(ErrorCode::TooLarge));
    assert_eq!(llm.calls(), 1);
    assert!(executor.recover().await.unwrap().is_empty(), "there is nothing to recover");
    let executor = harness.boot(world(harness, ScriptedLlm::new([Reply::text("done")]))).await;
    completes(&start_run(&*executor, &agent, "again").await).await;
}

/// A tool result that exceeds the limit of an append becomes an error for the model. The tool runs once.
pub async fn a_result_that_is_too_large_is_read_as_an_error(harness: &impl RuntimeHarness) {
    let count = Arc::default();
    // The agent's own limit would accept it.
    let agent =
        filler(&count, MIN_APPEND_BYTES).max_result_bytes(10 * MIN_APPEND_BYTES).build().unwrap();
    let call = Reply::tool_call("fill", json!({"word": "w"}));
    let executor =
        harness.boot(world(harness, ScriptedLlm::new([call, Reply::text("done")]))).await;
    let handle = start_run(&*executor, &agent, "go").await;
    completes(&handle).await;
    assert_eq!(count.load(Ordering::Relaxed), 1);
    let log = log_of(harness, &S.into()).await;
    assert!(log.contains("tool_result_too_large"), "{log}");
    assert_eq!(tool_ends(&handle).await, [false], "the stream agrees with the log");
}

/// Returns for each call that the stream shows whether it succeeded.
async fn tool_ends(handle: &RunHandle) -> Vec<bool> {
    let ends = chunks(handle).await.into_iter().filter_map(|stored| match stored.chunk.kind {
        ChunkKind::ToolEnd { success, .. } => Some(success),
        _ => None,
    });
    ends.collect()
}

/// A file that exceeds the limit of an append makes the result of its tool an error for the model. The tool runs once,
/// and the file is not recorded.
pub async fn a_file_that_is_too_large_is_read_as_an_error(harness: &impl RuntimeHarness) {
    let count: Arc<AtomicUsize> = Arc::default();
    let counter = Arc::clone(&count);
    let draw = Tool::function("draw", "Draws.", move |_: Word, cx: ToolContext| {
        counter.fetch_add(1, Ordering::Relaxed);
        cx.attach(Media::from_bytes("image/png", &[0; MIN_APPEND_BYTES]));
        async { Ok::<_, ToolError>("drawn") }
    });
    let agent = teller().tool(draw).build().unwrap();
    let llm = ScriptedLlm::new([Reply::tool_call("draw", word("w")), Reply::text("done")]);
    let executor = harness.boot(world(harness, llm.clone())).await;
    let handle = start_run(&*executor, &agent, "go").await;
    completes(&handle).await;
    assert_eq!((count.load(Ordering::Relaxed), llm.calls()), (1, 2));
    let log = log_of(harness, &S.into()).await;
    assert!(log.contains("tool_result_too_large") && !log.contains("image/png"), "{log}");
    assert_eq!(tool_ends(&handle).await, [false], "the stream agrees with the log");
}

/// Invalid arguments that are too large to be repeated do not fail the run. The call is answered, and the model is
/// called again.
pub async fn large_invalid_arguments_are_answered(harness: &impl RuntimeHarness) {
    let agent = filler(&Arc::default(), 0).build().unwrap();
    let large = vec!["x"; MIN_APPEND_BYTES / 8];
    let call = Reply::tool_call("fill", json!({"word": large}));
    let llm = ScriptedLlm::new([call, Reply::text("done")]);
    let executor = harness.boot(world(harness, llm.clone())).await;
    let result = end(&start_run(&*executor, &agent, "go").await).await;
    assert_eq!((result.status, llm.calls()), (RunStatus::Completed, 2), "{result:?}");
}
