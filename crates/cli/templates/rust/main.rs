//! An agent with a tool and a typed answer. Another process can resume its sessions.

use std::time::Duration;

use helix_agents::prelude::*;
use helix_agents::store::{Page, SessionFilter, StateStore};
use schemars::JsonSchema;
use serde::Deserialize;

/// The default question.
const QUESTION: &str = "I am off to Bergen. Do I need an umbrella?";

/// The lease duration: how long a session stays locked after its process was killed.
const LEASE: Duration = Duration::from_secs(3);

/// The input of the tool. The model sees the fields and their doc comments.
#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of a city.
    city: String,
}

/// The answer of the agent. The model has to correct an answer that does not match.
#[derive(Debug, Deserialize, JsonSchema)]
struct Advice {
    /// Whether to take an umbrella.
    umbrella: bool,
    /// The reason, in a sentence.
    reason: String,
}

/// Today's weather in a city.
#[tool]
async fn weather(place: Place) -> Result<String, ToolError> {
    // A real tool would query a weather service here. The result is recorded, so the tool does not
    // run again for the same call, even if this process is killed.
    Ok(format!("heavy rain in {} until noon", place.city))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut args = std::env::args();
    let question = args.nth(1).unwrap_or_else(|| QUESTION.to_owned());

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

    // First resumes the runs that an earlier process left unfinished.
    let (all, page) = (SessionFilter::default(), Page::default());
    let sessions = store.list(&all, &page).await?;
    if let Some(head) = sessions.iter().find(|head| head.is_leased()) {
        let (session, seconds) = (&head.session, LEASE.as_secs());
        eprintln!(
            "session {session} may still be running in another process: waiting for {seconds} s"
        );
        tokio::time::sleep(LEASE).await;
    }
    for run in runtime.recover().await? {
        println!("resuming session {}", run.session());
        show(&run.result().await?.typed()?.into_output()?);
    }
    show(&runtime.run(&agent, question).await?);
    Ok(())
}

fn show(advice: &Advice) {
    println!("umbrella: {}, because {}", advice.umbrella, advice.reason);
}
