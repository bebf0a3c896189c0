//! An agent with a tool and a typed answer, whose sessions outlive this process.

use std::time::Duration;

use helix_agents::prelude::*;
use helix_agents::store::{Page, SessionFilter, StateStore};
use schemars::JsonSchema;
use serde::Deserialize;

/// What is asked where nothing else is.
const QUESTION: &str = "I am off to Bergen. Do I need an umbrella?";

/// How long a killed process counts as alive, so that no two work on one session.
const LEASE: Duration = Duration::from_secs(3);

/// What the tool takes. The model is told of fields and their comments.
#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of a city.
    city: String,
}

/// What the agent answers. An answer of another form is sent back to the model.
#[derive(Debug, Deserialize, JsonSchema)]
struct Advice {
    /// Whether to take an umbrella.
    umbrella: bool,
    /// Why, in a sentence.
    reason: String,
}

#[tool]
/// Today's weather in a city.
async fn weather(place: Place) -> Result<String, ToolError> {
    // A real one would ask a weather service here. What it returns is recorded, and the tool is
    // not run again for the same call, whatever happens to this process.
    Ok(format!("heavy rain in {} until noon", place.city))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let question = std::env::args().nth(1).unwrap_or_else(|| QUESTION.to_owned());

    let agent = Agent::builder("{{name}}")
        .system_prompt("Look at the weather, then say whether to take an umbrella.")
        .tool(weather)
        .output::<Advice>()
        .build()?;
    let agents = AgentRegistry::default();
    agents.register(&agent)?;
    let store = SqliteStore::open("{{name}}.db").await?;
    let runtime = LocalRuntime::builder()
        .store(store.clone())
        .lease(LEASE)
        .llm(ProviderRegistry::from_env()?)
        .registry(agents)
        .build()?;

    // What an earlier process was killed in the middle of goes on first.
    let sessions = store.list(&SessionFilter::default(), &Page::default()).await?;
    if let Some(head) = sessions.iter().find(|head| head.is_leased()) {
        let (session, seconds) = (&head.session, LEASE.as_secs());
        eprintln!("session {session} may still be at work elsewhere: waiting for {seconds} s");
        tokio::time::sleep(LEASE).await;
    }
    for run in runtime.recover().await? {
        println!("going on with session {}", run.session());
        show(&run.result().await?.typed()?.into_output()?);
    }
    show(&runtime.run(&agent, question).await?);
    Ok(())
}

fn show(advice: &Advice) {
    println!("umbrella: {}, because {}", advice.umbrella, advice.reason);
}
