//! A writer with a critic as its companion: the writer shows its poem to the critic, improves it,
//! and asks again until the critic is satisfied. The critic remembers earlier versions, and its
//! verdict is typed. The example uses the configured model, or a scripted one for both agents if
//! none is configured.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use anyhow::Result;
use futures_util::StreamExt as _;
use helix_agents::agent::CompanionMode;
use helix_agents::prelude::*;
use helix_agents::session::load;
use helix_agents_test::{Reply, RoutingScriptedLlm, ScriptedLlm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The maximum number of the writer's model calls, in case the critic is never satisfied.
const MAX_STEPS: u32 = 8;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Verdict {
    /// The score from 1 to 5. A poem with a score of 4 or more is good enough.
    score: u32,
    /// The suggested change in one sentence.
    remark: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Poem {
    /// The two lines of the poem.
    lines: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.default_model()?);
    let store = SqliteStore::open("poems.db").await?;
    let runtime = LocalRuntime::builder().store(store.clone()).llm(models).build()?;
    let run = runtime.start(&writer()?, "A poem on roses.", ExecuteOptions::default()).await?;

    let mut chunks = run.stream().await?;
    while let Some(stored) = chunks.next().await {
        let chunk = stored?.chunk;
        match &chunk.kind {
            ChunkKind::SubagentStart { child, .. } => println!("{child} started"),
            // The output of a sub-agent is also in the stream of its parent session.
            ChunkKind::Output { output } if chunk.session != *run.session() => {
                let verdict: Verdict = serde_json::from_str(output)?;
                println!("{} of 5: {}", verdict.score, verdict.remark);
            }
            _ => {}
        }
    }
    for line in run.result().await?.into_output()?.lines {
        println!("{line}");
    }
    let session = run.load_session().await?;
    for (name, critic) in session.companions() {
        let critic = load(&store, &critic.start.session).await?;
        println!("{name} reviewed {} versions", critic.turn());
    }
    println!("{} model calls in total", run.usage().await?.steps);
    store.close().await;
    Ok(())
}

fn writer() -> Result<Agent<Poem>, Error> {
    let critic = Agent::builder("critic")
        .description("Judges a poem.")
        .system_prompt("You judge poems. Say whether a poem is better than the earlier versions.")
        .output::<Verdict>()
        .build()?;
    Agent::builder("writer")
        .system_prompt(
            "You write poems of two lines. Start one critic and show it your poem. Improve the poem \
             as it suggests and send it the new version as a message, until its score is at least 4.",
        )
        .companion(&critic, CompanionMode::Blocking)
        .max_steps(MAX_STEPS)
        .output::<Poem>()
        .build()
}

/// Returns a scripted model for both agents. It picks its reply by the length of each agent's
/// history.
fn script() -> RoutingScriptedLlm {
    let (dull, better) = ("Roses are red,\nviolets are blue.", "Roses are red,\nthe evening too.");
    let spawn = json!({ "agent": "critic", "name": "rex", "message": dull });
    let message = json!({ "name": "rex", "message": better });
    let poem = json!({ "lines": better.lines().collect::<Vec<_>>() });
    RoutingScriptedLlm::new()
        .agent(
            "writer",
            ScriptedLlm::new([
                Reply::tool_call("companion__spawnAgent", spawn),
                Reply::tool_call("companion__sendMessage", message),
                Reply::finish(poem),
            ]),
        )
        .agent(
            "critic",
            ScriptedLlm::new([
                Reply::finish(json!({ "score": 2, "remark": "This rhyme is a cliché." })),
                Reply::finish(json!({ "score": 4, "remark": "Better: it has a mood now." })),
            ]),
        )
}
