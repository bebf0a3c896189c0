//! A writer with a critic that stays with it: it shows what it wrote, improves it and asks again,
//! until the critic is content. The critic remembers what it has seen, and its verdict has a type.
//! The model is the one that is configured, else a script plays both.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use anyhow::Result;
use futures_util::StreamExt as _;
use helix_agents::agent::CompanionMode;
use helix_agents::prelude::*;
use helix_agents::session::load;
use helix_agents_testkit::scripted::{Reply, RoutingScriptedLlm, ScriptedLlm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The writer may call the model this often: a critic that is never content costs no more.
const MOST_STEPS: u32 = 8;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Verdict {
    /// From 1 to 5; from 4 on it may be printed.
    score: u32,
    /// What to change, in one sentence.
    remark: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Poem {
    /// The two lines.
    lines: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.model("")?);
    let store = SqliteStore::open("poems.db").await?;
    let runtime = LocalRuntime::builder().store(store.clone()).llm(models).build()?;
    let run = runtime.start(&writer()?, "A poem on roses.", ExecuteOptions::default()).await?;

    let mut chunks = run.stream().await?;
    while let Some(stored) = chunks.next().await {
        let chunk = stored?.chunk;
        match &chunk.kind {
            ChunkKind::SubagentStart { child, .. } => println!("{child} begins"),
            // What a child puts out stands in the stream of the session that began it.
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
    let session = run.fold().await?;
    for (name, critic) in session.companions() {
        let critic = load(&store, &critic.start.session).await?;
        println!("{name} was asked {} times", critic.turn());
    }
    println!("{} model calls in all", session.tree_usage().steps);
    store.close().await;
    Ok(())
}

fn writer() -> Result<Agent<(), Poem>, Error> {
    let critic = Agent::builder("critic")
        .description("Judges a poem.")
        .system_prompt("You judge poems. Say whether one is better than those before it.")
        .output::<Verdict>()
        .build()?;
    Agent::builder("writer")
        .system_prompt(
            "You write poems of two lines. Start one critic and show it your poem. Improve the poem \
             as it says, and send it the new one as a message, until its score is at least 4.",
        )
        .companion(&critic, CompanionMode::Blocking)
        .max_steps(MOST_STEPS)
        .output::<Poem>()
        .build()
}

/// Both agents' words, by the place in the history of each.
fn script() -> RoutingScriptedLlm {
    let (dull, better) = ("Roses are red,\nviolets are blue.", "Roses are red,\nthe evening too.");
    let begin = json!({ "agent": "critic", "name": "rex", "message": dull });
    let again = json!({ "name": "rex", "message": better });
    let poem = json!({ "lines": better.lines().collect::<Vec<_>>() });
    RoutingScriptedLlm::new()
        .agent(
            "writer",
            ScriptedLlm::new([
                Reply::tool_call("companion__spawnAgent", begin),
                Reply::tool_call("companion__sendMessage", again),
                Reply::finish(poem),
            ]),
        )
        .agent(
            "critic",
            ScriptedLlm::new([
                Reply::finish(json!({ "score": 2, "remark": "Everybody knows that one." })),
                Reply::finish(json!({ "score": 4, "remark": "Better: now it has a mood." })),
            ]),
        )
}
