//! What the scenarios share: agents, and telling what became of a run.

use expect_test::Expect;
use futures_util::StreamExt;
use helix_agents_core::agent::{Agent, AgentBuilder};
use helix_agents_core::executor::{
    AgentExecutor, AgentResult, ExecuteOptions, Input, ResumeOptions, RunHandle,
};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{Session, load, load_events};
use helix_agents_core::stream::{ChunkKind, StoredChunk};
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RuntimeHarness;
use crate::gate::within;
use crate::normalise;

/// The session of most scenarios.
pub(super) const S: &str = "story";

/// Input with one member.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(super) struct Word {
    /// Any word.
    pub(super) word: String,
}

/// An output type.
#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Report {
    pub(super) answer: String,
    pub(super) score: i64,
}

/// A state type.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
pub(super) struct Notes {
    pub(super) notes: Vec<String>,
    pub(super) last: String,
}

/// A tool that returns its word in capitals, and fails on an empty one.
pub(super) fn shout() -> Tool {
    Tool::function("shout", "Says a word loudly.", |input: Word, _: ToolContext| async move {
        if input.word.is_empty() {
            return Err(ToolError::new("nothing to shout"));
        }
        Ok(input.word.to_uppercase())
    })
}

/// A tool that notes its word in the state.
pub(super) fn note() -> Tool {
    Tool::function("note", "Notes a word.", |input: Word, cx: ToolContext| async move {
        cx.update_state(|state: &mut Notes| {
            state.notes.push(input.word.clone());
            state.last.clone_from(&input.word);
        })?;
        Ok(cx.state::<Notes>()?.notes.len())
    })
}

pub(super) fn teller() -> AgentBuilder {
    Agent::builder("teller").system_prompt("You tell.").model("scripted")
}

pub(super) fn options() -> ExecuteOptions {
    ExecuteOptions::default().session(S)
}

/// Starts the story.
pub(super) async fn begin<S, O>(
    executor: &dyn AgentExecutor,
    agent: &Agent<S, O>,
    input: impl Into<Input>,
) -> RunHandle {
    executor.execute(agent.erased(), input.into(), options()).await.unwrap()
}

/// Runs the story to its end.
pub(super) async fn run<S, O>(
    executor: &dyn AgentExecutor,
    agent: &Agent<S, O>,
    input: impl Into<Input>,
) -> AgentResult {
    let handle = begin(executor, agent, input).await;
    within(handle.result()).await.unwrap()
}

/// Goes on with the story, waiting for a dead owner's lease.
pub(super) async fn resume<S, O>(
    executor: &dyn AgentExecutor,
    agent: &Agent<S, O>,
) -> helix_agents_core::error::Result<RunHandle> {
    let options = ResumeOptions::default().wait(std::time::Duration::from_secs(60));
    executor.resume(agent.erased(), &SessionId::from(S), options).await
}

/// The fold of the story.
pub(super) async fn fold(harness: &impl RuntimeHarness) -> Session {
    load(&*harness.store(), &SessionId::from(S)).await.unwrap()
}

/// Compares the story's log.
pub(super) async fn check_log(harness: &impl RuntimeHarness, expected: &Expect) {
    let events = load_events(&*harness.store(), &SessionId::from(S), 0).await.unwrap();
    expected.assert_eq(&normalise::log(&events));
}

/// Compares the story's transcript.
pub(super) async fn check_transcript(harness: &impl RuntimeHarness, expected: &Expect) {
    expected.assert_eq(&normalise::transcript(fold(harness).await.transcript()));
}

/// Compares what a late reader of the run's stream gets.
pub(super) async fn check_stream(handle: &RunHandle, expected: &Expect) {
    expected.assert_eq(&normalise::stream(&chunks(handle).await));
}

/// Waits until the stream of a run shows this.
pub(super) async fn until_shown(handle: &RunHandle, shows: impl Fn(&ChunkKind) -> bool) {
    let mut stream = handle.stream().await.unwrap();
    while let Some(chunk) = within(stream.next()).await {
        if shows(&chunk.unwrap().chunk.kind) {
            return;
        }
    }
}

/// Every chunk of a run that has ended.
pub(super) async fn chunks(handle: &RunHandle) -> Vec<StoredChunk> {
    let mut stream = handle.stream().await.unwrap();
    let mut chunks = Vec::new();
    while let Some(chunk) = within(stream.next()).await {
        chunks.push(chunk.unwrap());
    }
    chunks
}
