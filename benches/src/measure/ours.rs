//! The framework, set up as in a program.

use std::sync::{Arc, Barrier};

use anyhow::{Result, ensure};
use futures::StreamExt as _;
use helix_agents::agent::AgentRegistry;
use helix_agents::prelude::*;
use helix_agents::providers::{ApiFormat, ModelServerOptions, ServerProfile};

use super::bare::{Pair, Total};
use super::engine::{self, Namespace, Running};
use super::left::Watch;
use super::place::{Handles, Place};
use super::{INPUT, PROMPT, Runs, load};
use crate::job::{Ending, Format, Job, Outcome, Store, Wire, Work};
use crate::serve::WORD;

/// Adds two numbers.
#[tool]
async fn add(pair: Pair) -> Result<u64, ToolError> {
    Ok(pair.a + pair.b)
}

/// Runs of tool calls.
struct ToolRuns {
    running: Arc<Running>,
    agent: Agent<Total>,
    calls: u32,
}

/// Runs of one long text with a reader of the stream.
struct TextRuns {
    running: Arc<Running>,
    agent: Agent,
    bytes: usize,
}

/// Runs that remain suspended.
struct SuspendedRuns {
    running: Arc<Running>,
    agent: Agent<Total>,
}

pub(super) async fn measure(job: &Job, store: Store, warmed: &Barrier) -> Result<Outcome> {
    let place = Place::open(store, &job.folder).await?;
    let watch = if job.inspect { Some(Watch::begin(&place).await?) } else { None };
    let namespace = Namespace::new(job);
    let (mut outcome, running) = on(job, &namespace, place.handles.clone(), warmed).await?;
    if let Some(watch) = watch {
        outcome.footprint = Some(watch.end(&place, &namespace).await?);
    }
    // The engine is notified of the end of a run after the caller, so keep the runtime until here.
    drop(running);
    place.remove().await?;
    Ok(outcome)
}

async fn on(
    job: &Job,
    namespace: &Namespace,
    handles: Handles,
    warmed: &Barrier,
) -> Result<(Outcome, Arc<Running>)> {
    let registry = AgentRegistry::default();
    let start =
        async |registry| engine::start(job, namespace, handles, models(job)?, registry).await;
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
            let agent = agent.build()?;
            registry.replace(&agent);
            let running = Arc::new(start(registry).await?);
            let runs = ToolRuns { running: Arc::clone(&running), agent, calls };
            Ok((load::run(runs, job, warmed).await?, running))
        }
        Work::Text { chunks, .. } => {
            let agent = Agent::builder("writer").system_prompt(PROMPT).model("bench:bench");
            let bytes = chunks as usize * WORD.len();
            let agent = agent.build()?;
            registry.replace(&agent);
            let running = Arc::new(start(registry).await?);
            let runs = TextRuns { running: Arc::clone(&running), agent, bytes };
            Ok((load::run(runs, job, warmed).await?, running))
        }
        Work::Suspend => {
            let agent = Agent::builder("asker")
                .system_prompt(PROMPT)
                .model("bench:bench")
                .tool(Tool::client::<Pair>("add", "Adds two numbers."))
                .output::<Total>();
            let agent = agent.native_output().build()?;
            registry.replace(&agent);
            let running = Arc::new(start(registry).await?);
            let runs = SuspendedRuns { running: Arc::clone(&running), agent };
            Ok((load::run(runs, job, warmed).await?, running))
        }
    }
}

fn models(job: &Job) -> Result<ProviderRegistry> {
    let format = match job.format {
        Format::OpenaiChat => {
            let mut profile = ServerProfile::compatible();
            profile.stream = job.wire == Wire::Sse;
            ApiFormat::ChatCompletions(profile)
        }
        Format::OpenaiResponses => ApiFormat::OpenAiResponses,
        Format::AnthropicMessages => ApiFormat::AnthropicMessages,
        Format::GeminiGenerate => ApiFormat::GeminiGenerate,
        Format::BedrockConverse => ApiFormat::BedrockConverse,
    };
    let options = ModelServerOptions::new("bench", &job.base_url()).with_format(format);
    Ok(ProviderRegistry::new().with_provider(options)?)
}

impl Runs for ToolRuns {
    async fn once(&self) -> Result<()> {
        let total = self.running.executor.run(&self.agent, INPUT).await?;
        ensure!(total.result == u64::from(self.calls), "the result is {}", total.result);
        Ok(())
    }
}

impl Runs for SuspendedRuns {
    async fn once(&self) -> Result<()> {
        let handle =
            self.running.executor.start(&self.agent, INPUT, ExecuteOptions::default()).await?;
        let status = handle.result().await?.status;
        ensure!(status.is_suspended(), "the run ended as {}", status.as_str());
        Ok(())
    }
}

impl Runs for TextRuns {
    async fn once(&self) -> Result<()> {
        let handle =
            self.running.executor.start(&self.agent, INPUT, ExecuteOptions::default()).await?;
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
