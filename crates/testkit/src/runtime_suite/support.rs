//! What the scenarios share: agents, beginning and ending a run, and telling what became of it.

mod clock;
mod death;
mod diary;
mod family;
mod scribe;

use std::panic::Location;

use expect_test::Expect;
use futures_util::StreamExt;
use helix_agents_core::agent::{Agent, AgentBuilder};
use helix_agents_core::executor::{
    AgentExecutor, AgentResult, ExecuteOptions, Input, ResumeOptions, RunHandle,
};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{RunStatus, Session, Submission, load, load_events};
use helix_agents_core::stream::{ChunkKind, StoredChunk};
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(super) use clock::{until, until_past};
pub(super) use death::{all_dead, killed_at, leases_run_out};
pub(super) use diary::Diary;
pub(super) use family::{
    asks, child, companion, delegate, helper, report, resting, scripts, status,
};
pub(super) use scribe::{Trace, checkpoints, forked, noted, notes, transcript};

use super::RuntimeHarness;
use crate::gate::{Gate, within};
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

/// A tool that stands at the gate, and then returns its word.
pub(super) fn held(name: &str, gate: &Gate) -> Tool {
    let gate = gate.clone();
    Tool::function(name, "Stands still.", move |input: Word, _: ToolContext| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok::<_, ToolError>(input.word)
        }
    })
}

/// The arguments of the tools above.
pub(super) fn word(word: &str) -> Value {
    json!({ "word": word })
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
    end(&begin(executor, agent, input).await).await
}

/// What a run comes to.
pub(super) async fn end(handle: &RunHandle) -> AgentResult {
    within(handle.result()).await.unwrap()
}

/// The same of a run that completes.
#[track_caller]
pub(super) fn completes(handle: &RunHandle) -> impl Future<Output = AgentResult> {
    let caller = Location::caller();
    async move {
        let result = end(handle).await;
        assert_eq!(result.status, RunStatus::Completed, "at {caller}: {result:?}");
        result
    }
}

/// Goes on with the story to the end of that run.
pub(super) async fn go_on<S, O>(executor: &dyn AgentExecutor, agent: &Agent<S, O>) -> AgentResult {
    end(&resume(executor, agent).await.unwrap()).await
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
    fold_of(harness, &S.into()).await
}

/// The fold of a session.
pub(super) async fn fold_of(harness: &impl RuntimeHarness, session: &SessionId) -> Session {
    load(&*harness.store(), session).await.unwrap()
}

/// The log of a session, as text.
pub(super) async fn log_of(harness: &impl RuntimeHarness, session: &SessionId) -> String {
    normalise::log(&load_events(&*harness.store(), session, 0).await.unwrap())
}

/// The transcript of the story, as text.
pub(super) async fn told(harness: &impl RuntimeHarness) -> String {
    normalise::transcript(fold(harness).await.transcript())
}

/// What the model was told of the calls of these tools, a line each.
pub(super) async fn told_by(harness: &impl RuntimeHarness, tools: &str) -> String {
    let start = format!("tool {tools}");
    let told = told(harness).await;
    told.lines().filter(|it| it.starts_with(&start)).map(|it| format!("{it}\n")).collect()
}

/// Takes an answer.
pub(super) async fn submit(executor: &dyn AgentExecutor, submission: Submission) {
    executor.submit_tool_result(&S.into(), submission).await.unwrap();
}

/// Compares the story's log.
pub(super) async fn check_log(harness: &impl RuntimeHarness, expected: &Expect) {
    expected.assert_eq(&log_of(harness, &S.into()).await);
}

/// Compares the story's transcript.
pub(super) async fn check_transcript(harness: &impl RuntimeHarness, expected: &Expect) {
    expected.assert_eq(&told(harness).await);
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
