//! Helpers of the scenarios: agents, starting and ending runs, and reading their results.

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
use helix_agents_test::{Gate, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(super) use clock::{until, until_past};
pub(super) use death::{all_crashed, expire_leases, killed_at};
pub(super) use diary::Diary;
pub(super) use family::{
    asks, child, companion, delegate, helper, report, scripts, status, stored_status,
};
pub(super) use scribe::{Trace, checkpoints, forked, noted, notes, transcript};

use super::RuntimeHarness;
use crate::normalise;

/// The session id of most scenarios.
pub(super) const S: &str = "story";

/// An input with one member.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(super) struct Word {
    /// An arbitrary word.
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

/// Returns a tool that returns its word in capitals, and fails on an empty one.
pub(super) fn shout() -> Tool {
    Tool::function("shout", "Says a word loudly.", |input: Word, _: ToolContext| async move {
        if input.word.is_empty() {
            return Err(ToolError::new("nothing to shout"));
        }
        Ok(input.word.to_uppercase())
    })
}

/// Returns a tool that adds its word to the state.
pub(super) fn note() -> Tool {
    Tool::function("note", "Notes a word.", |input: Word, cx: ToolContext| async move {
        cx.update_state(|state: &mut Notes| {
            state.notes.push(input.word.clone());
            state.last.clone_from(&input.word);
        })?;
        Ok(cx.state::<Notes>()?.notes.len())
    })
}

/// Returns a tool that waits at the gate, and then returns its word.
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

/// Returns the arguments of the tools above.
pub(super) fn word(word: &str) -> Value {
    json!({ "word": word })
}

pub(super) fn teller() -> AgentBuilder {
    Agent::builder("teller").system_prompt("You tell.").model("scripted")
}

pub(super) fn options() -> ExecuteOptions {
    ExecuteOptions::default().session(S)
}

/// Starts a run of the session [`S`].
pub(super) async fn start_run<O>(
    executor: &dyn AgentExecutor,
    agent: &Agent<O>,
    input: impl Into<Input>,
) -> RunHandle {
    executor.execute(agent.erased(), input.into(), options()).await.unwrap()
}

/// Runs a turn of the session [`S`] to its end.
pub(super) async fn run<O>(
    executor: &dyn AgentExecutor,
    agent: &Agent<O>,
    input: impl Into<Input>,
) -> AgentResult {
    end(&start_run(executor, agent, input).await).await
}

/// Waits for the result of a run.
pub(super) async fn end(handle: &RunHandle) -> AgentResult {
    within(handle.result()).await.unwrap()
}

/// Waits for the result of a run and asserts that it completed.
#[track_caller]
pub(super) fn completes(handle: &RunHandle) -> impl Future<Output = AgentResult> {
    let caller = Location::caller();
    async move {
        let result = end(handle).await;
        assert_eq!(result.status, RunStatus::Completed, "at {caller}: {result:?}");
        result
    }
}

/// Resumes the session [`S`] and waits for the end of the run.
pub(super) async fn resume_to_end<O>(
    executor: &dyn AgentExecutor,
    agent: &Agent<O>,
) -> AgentResult {
    end(&resume(executor, agent).await.unwrap()).await
}

/// Resumes the session [`S`], after waiting for a crashed owner's lease.
pub(super) async fn resume<O>(
    executor: &dyn AgentExecutor,
    agent: &Agent<O>,
) -> helix_agents_core::error::Result<RunHandle> {
    let options = ResumeOptions::default().wait(std::time::Duration::from_secs(60));
    executor.resume(agent.erased(), &SessionId::from(S), options).await
}

/// Returns the fold of the session [`S`].
pub(super) async fn fold(harness: &impl RuntimeHarness) -> Session {
    fold_of(harness, &S.into()).await
}

/// Returns the fold of a session.
pub(super) async fn fold_of(harness: &impl RuntimeHarness, session: &SessionId) -> Session {
    load(&*harness.store(), session).await.unwrap()
}

/// Returns the log of a session as text.
pub(super) async fn log_of(harness: &impl RuntimeHarness, session: &SessionId) -> String {
    normalise::log(&load_events(&*harness.store(), session, 0).await.unwrap())
}

/// Returns the transcript of the session [`S`] as text.
pub(super) async fn transcript_text(harness: &impl RuntimeHarness) -> String {
    normalise::transcript(fold(harness).await.transcript())
}

/// Returns the results of these tools as the model received them, one line each.
pub(super) async fn tool_results(harness: &impl RuntimeHarness, tools: &str) -> String {
    let start = format!("tool {tools}");
    let transcript = transcript_text(harness).await;
    transcript
        .lines()
        .filter(|line| line.starts_with(&start))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Submits an answer.
pub(super) async fn submit(executor: &dyn AgentExecutor, submission: Submission) {
    executor.submit_tool_result(&S.into(), submission).await.unwrap();
}

/// Compares the log of the session [`S`].
pub(super) async fn check_log(harness: &impl RuntimeHarness, expected: &Expect) {
    expected.assert_eq(&log_of(harness, &S.into()).await);
}

/// Compares the transcript of the session [`S`].
pub(super) async fn check_transcript(harness: &impl RuntimeHarness, expected: &Expect) {
    expected.assert_eq(&transcript_text(harness).await);
}

/// Compares the chunks that a late reader of the run's stream gets.
pub(super) async fn check_stream(handle: &RunHandle, expected: &Expect) {
    expected.assert_eq(&normalise::stream(&chunks(handle).await));
}

/// Waits until the stream of a run shows a matching chunk.
pub(super) async fn until_shown(handle: &RunHandle, shows: impl Fn(&ChunkKind) -> bool) {
    let mut stream = handle.stream().await.unwrap();
    while let Some(chunk) = within(stream.next()).await {
        if shows(&chunk.unwrap().chunk.kind) {
            return;
        }
    }
}

/// Returns all chunks of a run that has ended.
pub(super) async fn chunks(handle: &RunHandle) -> Vec<StoredChunk> {
    let mut stream = handle.stream().await.unwrap();
    let mut chunks = Vec::new();
    while let Some(chunk) = within(stream.next()).await {
        chunks.push(chunk.unwrap());
    }
    chunks
}

/// Returns the last run of a session, as another process gets it.
pub(super) async fn found(executor: &dyn AgentExecutor, session: &SessionId) -> RunHandle {
    executor.handle(session).await.unwrap()
}
