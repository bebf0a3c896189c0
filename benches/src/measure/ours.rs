//! The framework, set up as a program would set it up.

use std::sync::Barrier;

use anyhow::{Result, ensure};
use futures_util::StreamExt as _;
use helix_agents::prelude::*;
use helix_agents::providers::{OpenAiChatOptions, ServerProfile};
use helix_agents::runtime_local::LocalRuntimeBuilder;
use helix_agents::store_sqlite::Synchronous;
use helix_agents_testkit::servers;

use super::bare::{Pair, Total};
use super::left::Watch;
use super::{INPUT, PROMPT, Runs, load};
use crate::job::{Ending, Job, Outcome, Subject, Wire, Work};
use crate::serve::WORD;

/// The file in the job's folder.
const DATABASE: &str = "bench.db";

#[tool]
/// Adds two numbers.
async fn add(pair: Pair) -> Result<u64, ToolError> {
    Ok(pair.a + pair.b)
}

/// Runs of tool calls.
struct ToolRuns {
    runtime: LocalRuntime,
    agent: Agent<(), Total>,
    calls: u32,
}

/// Runs of one long text, followed by a reader of the stream.
struct TextRuns {
    runtime: LocalRuntime,
    agent: Agent,
    bytes: usize,
}

pub(super) async fn on_memory(job: &Job, warmed: &Barrier) -> Result<Outcome> {
    on(job, LocalRuntime::builder().store(MemoryStore::new()), warmed).await
}

pub(super) async fn on_sqlite(job: &Job, warmed: &Barrier) -> Result<Outcome> {
    let path = job.folder.join(DATABASE);
    let level = match job.subject {
        Subject::SqliteNormalPerEffect | Subject::SqliteNormalPerStep => Synchronous::Normal,
        _ => Synchronous::Full,
    };
    let store = SqliteStore::builder(&path).synchronous(level).open().await?;
    let watch = if job.inspect { Some(Watch::begin(&path)?) } else { None };
    let mut outcome = on(job, LocalRuntime::builder().store(store.clone()), warmed).await?;
    if let Some(watch) = watch {
        let wal_bytes = watch.end()?;
        store.close().await;
        outcome.left = Some(super::left::read(&path, wal_bytes)?);
    }
    Ok(outcome)
}

pub(super) async fn on_postgres(job: &Job, warmed: &Barrier) -> Result<Outcome> {
    let at = PostgresStore::builder(&servers::postgres()).schema(servers::unique());
    let store = at.clone().open().await?;
    let outcome = on(job, LocalRuntime::builder().store(store.clone()), warmed).await;
    store.close().await;
    at.destroy().await?;
    outcome
}

pub(super) async fn on_redis(job: &Job, warmed: &Barrier) -> Result<Outcome> {
    let at = RedisStore::builder(&servers::redis()).prefix(servers::unique());
    let store = at.clone().open().await?;
    let outcome = on(job, LocalRuntime::builder().store(store.clone()), warmed).await;
    store.close().await;
    at.destroy().await?;
    outcome
}

async fn on(job: &Job, builder: LocalRuntimeBuilder, warmed: &Barrier) -> Result<Outcome> {
    let builder = builder.durability(job.subject.durability());
    let runtime = builder.llm(models(job)?).build()?;
    match job.work {
        Work::Tools { calls, ending, .. } => {
            let agent = Agent::builder("adder")
                .system_prompt(PROMPT)
                .model("bench:bench")
                .tool(add)
                .max_steps(calls + 2)
                .output::<Total>();
            let agent = match ending {
                Ending::Native => agent.native_output(),
                Ending::Finish => agent,
            };
            load::run(ToolRuns { runtime, agent: agent.build()?, calls }, job, warmed).await
        }
        Work::Text { chunks, .. } => {
            let agent = Agent::builder("writer").system_prompt(PROMPT).model("bench:bench");
            let bytes = chunks as usize * WORD.len();
            load::run(TextRuns { runtime, agent: agent.build()?, bytes }, job, warmed).await
        }
    }
}

fn models(job: &Job) -> Result<ProviderRegistry> {
    let mut profile = ServerProfile::compatible();
    profile.stream = job.wire == Wire::Sse;
    let options = OpenAiChatOptions::new("bench", &job.base_url()).with_profile(profile);
    Ok(ProviderRegistry::new().with_provider(options)?)
}

impl Runs for ToolRuns {
    async fn once(&self) -> Result<()> {
        let total = self.runtime.run(&self.agent, INPUT).await?;
        ensure!(total.result == u64::from(self.calls), "the result is {}", total.result);
        Ok(())
    }
}

impl Runs for TextRuns {
    async fn once(&self) -> Result<()> {
        let handle = self.runtime.start(&self.agent, INPUT, ExecuteOptions::default()).await?;
        let mut shown = 0;
        let mut chunks = handle.stream().await?;
        while let Some(chunk) = chunks.next().await {
            if let ChunkKind::TextDelta { delta } = &chunk?.chunk.kind {
                shown += delta.len();
            }
        }
        let text = handle.result().await?.into_output()?;
        ensure!(text.len() == self.bytes, "the text has {} bytes", text.len());
        ensure!(shown == self.bytes, "{shown} bytes of the text were shown");
        Ok(())
    }
}
