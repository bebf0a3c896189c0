//! Data beyond what one append carries. The store's limit is lowered: what a step has is the same
//! multiple of it as with the usual one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use helix_agents_core::agent::AgentBuilder;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::session::RunStatus;
use helix_agents_core::store::MIN_APPEND_BYTES;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use serde_json::json;

use super::support::{
    S, Word, begin, completes, end, fold, killed_at, log_of, resume, run, teller,
};
use super::{RuntimeHarness, World};
use crate::faults::{Fault, FaultStore};
use crate::gate::Gate;
use crate::scripted::{Reply, ScriptedLlm};

/// How many calls a step has: their results take twice what one append may have.
const CALLS: usize = 16;

/// A store of the harness's logs that takes small appends.
fn small(harness: &impl RuntimeHarness) -> FaultStore {
    FaultStore::new(harness.store()).refuse_appends_over(MIN_APPEND_BYTES)
}

fn world(harness: &impl RuntimeHarness, llm: impl LlmAdapter) -> World {
    World::new(llm).on(small(harness))
}

/// A tool that counts how often it runs, and returns its word and as many bytes as it is told.
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

/// A reply that calls the tool as often as a step of these tests does.
fn all() -> Reply {
    Reply::calls((0..CALLS).map(|index| ("fill", json!({"word": index.to_string()}))))
}

/// Results that are ready together and do not fit into one append are all recorded, once.
pub async fn results_that_do_not_share_an_append_are_recorded_once(harness: &impl RuntimeHarness) {
    let count = Arc::default();
    let agent = filler(&count, 2_000).build().unwrap();
    let llm = ScriptedLlm::new([all(), Reply::text("done")]);
    let executor = harness.boot(world(harness, llm.clone())).await;
    completes(&begin(&*executor, &agent, "go").await).await;
    assert_eq!((count.load(Ordering::Relaxed), llm.calls()), (CALLS, 2));
    let appends = harness.store().read_log(&S.into(), 0, u32::MAX).await.unwrap();
    assert!(appends.iter().all(|append| append.body.len() <= MIN_APPEND_BYTES / 4));
    assert_eq!(fold(harness).await.transcript().len(), 3 + CALLS);
}

/// A process that dies between two appends of what belongs together leaves a log to continue from.
pub async fn a_process_that_dies_between_two_appends_is_continued(harness: &impl RuntimeHarness) {
    let (count, gate) = (Arc::default(), Gate::new());
    let agent = filler(&count, 2_000).build().unwrap();
    let script = || ScriptedLlm::new([all(), Reply::text("done")]);
    // Not the first of the results, which may be ready before the others.
    let store = small(harness).on("<9>", Fault::HoldAfter(gate.clone()));
    killed_at(harness, World::new(script()).on(store), &agent, &gate).await;
    let recorded = |step: &helix_agents_core::session::StepRecord| {
        step.calls.iter().filter(|call| call.finish.is_some()).count()
    };
    let before = fold(harness).await.open_step().map_or(CALLS, recorded);
    let ran = count.load(Ordering::Relaxed);
    let executor = harness.boot(world(harness, script())).await;
    completes(&resume(&*executor, &agent).await.unwrap()).await;
    assert!(before >= 1, "one was on record");
    assert_eq!(count.load(Ordering::Relaxed) - ran, CALLS - before, "the others ran again");
}

/// A reply of the model that is too large fails the run: it is not asked for again.
pub async fn a_reply_that_is_too_large_fails_the_run(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let llm = ScriptedLlm::new([Reply::text("x".repeat(MIN_APPEND_BYTES))]);
    let executor = harness.boot(world(harness, llm.clone())).await;
    let failed = run(&*executor, &agent, "go").await;
    assert_eq!(failed.status, RunStatus::Failed);
    assert!(failed.error.unwrap().is(ErrorCode::TooLarge));
    assert_eq!(llm.calls(), 1);
    assert!(executor.recover().await.unwrap().is_empty(), "nothing is left to recover");
    let executor = harness.boot(world(harness, ScriptedLlm::new([Reply::text("done")]))).await;
    completes(&begin(&*executor, &agent, "again").await).await;
}

/// A result that no append carries is an error that the model reads; the tool runs once.
pub async fn a_result_that_is_too_large_is_read_as_an_error(harness: &impl RuntimeHarness) {
    let count = Arc::default();
    // The agent's own limit would let it pass.
    let agent =
        filler(&count, MIN_APPEND_BYTES).max_result_bytes(10 * MIN_APPEND_BYTES).build().unwrap();
    let call = Reply::tool_call("fill", json!({"word": "w"}));
    let executor =
        harness.boot(world(harness, ScriptedLlm::new([call, Reply::text("done")]))).await;
    completes(&begin(&*executor, &agent, "go").await).await;
    assert_eq!(count.load(Ordering::Relaxed), 1);
    let log = log_of(harness, &S.into()).await;
    assert!(log.contains("tool_result_too_large"), "{log}");
}

/// Arguments that do not fit, and are too large to be repeated, are answered with a little of them.
pub async fn large_arguments_are_answered_with_a_little_of_them(harness: &impl RuntimeHarness) {
    let agent = filler(&Arc::default(), 0).build().unwrap();
    let large = vec!["x"; MIN_APPEND_BYTES / 8];
    let call = Reply::tool_call("fill", json!({"word": large}));
    let llm = ScriptedLlm::new([call, Reply::text("done")]);
    let executor = harness.boot(world(harness, llm.clone())).await;
    let result = end(&begin(&*executor, &agent, "go").await).await;
    assert_eq!((result.status, llm.calls()), (RunStatus::Completed, 2), "{result:?}");
}
