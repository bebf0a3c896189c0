//! A payment that waits for somebody's yes. Each part is a process of its own, and between them
//! nothing runs: `place` asks and ends, `approve` or `deny` answers without knowing the agent, and
//! `go-on` carries it out. The model is the one that is configured, else a script plays it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use anyhow::{Result, bail};
use helix_agents::prelude::*;
use helix_agents::runtime_local::SystemIds;
use helix_agents::session::{CallRef, Outside, SessionReader, Submission, pending_calls, submit};
use helix_agents_testkit::scripted::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Everything that a session knows of itself is found under its id.
const SESSION: &str = "bill-7";

#[derive(Deserialize, JsonSchema)]
struct Payment {
    /// Who gets it.
    to: String,
    /// How much, in cents.
    cents: u64,
}

#[tool]
/// Pay somebody.
async fn pay(payment: Payment) -> Result<String, ToolError> {
    println!("paying {} cents to {}", payment.cents, payment.to);
    Ok("paid".to_owned())
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let store = SqliteStore::open("bills.db").await?;
    match words.as_slice() {
        ["place"] => place(&store).await?,
        ["approve"] => answer(&store, Submission::approve).await?,
        ["deny", reason @ ..] => {
            let reason = (!reason.is_empty()).then(|| reason.join(" "));
            answer(&store, |call| Submission::deny(call, reason)).await?;
        }
        ["go-on"] => go_on(&store).await?,
        _ => bail!("say what to do: place, approve, deny [REASON] or go-on"),
    }
    store.close().await;
    Ok(())
}

/// Begins, and ends as soon as somebody has to be asked.
async fn place(store: &SqliteStore) -> Result<()> {
    let options = ExecuteOptions::default().session(SESSION);
    let handle = runtime(store)?.start(&agent()?, "Pay Ann's bill, 90 euros.", options).await?;
    show(&handle.result().await?)
}

/// Records an answer to what waits. Neither the agent nor a model is here.
async fn answer(store: &SqliteStore, answer: impl FnOnce(CallRef) -> Submission) -> Result<()> {
    let session = SessionId::from(SESSION);
    let Some(waiting) = pending_calls(SessionReader::of(store), &session).await?.into_iter().next()
    else {
        bail!("nothing waits for an answer");
    };
    println!("{} {}", waiting.pending.tool, waiting.arguments.text());
    // What was seen here is what is answered.
    let answer = answer(waiting.reference()).digest(waiting.pending.digest.clone());
    let outside = Outside { store, ids: &SystemIds, folds: None };
    submit(outside, &session, &answer).await?;
    println!("answered; now: go-on");
    Ok(())
}

/// Goes on with what was answered.
async fn go_on(store: &SqliteStore) -> Result<()> {
    let (agent, session) = (agent()?, SessionId::from(SESSION));
    let handle = runtime(store)?.resume_agent(&agent, &session, ResumeOptions::default()).await?;
    show(&handle.result().await?)
}

/// Tells what came of a run.
fn show(result: &AgentResult<String>) -> Result<()> {
    match (&result.suspended, &result.output) {
        (Some(waits), _) => {
            for call in &waits.calls {
                println!("waits for approval of {} ({})", call.tool, call.call);
            }
        }
        (None, Some(output)) => println!("{output}"),
        (None, None) => bail!("the run is {}", result.status.as_str()),
    }
    Ok(())
}

fn agent() -> Result<Agent, Error> {
    let desk = Agent::builder("desk").system_prompt("You pay bills with the tool.");
    desk.tool(Tool::from(pay).requires_approval()).build()
}

fn runtime(store: &SqliteStore) -> Result<LocalRuntime> {
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.model("")?);
    Ok(LocalRuntime::builder().store(store.clone()).llm(models).build()?)
}

/// It answers by the place in the history, so the next process goes on with it as well.
fn script() -> ScriptedLlm {
    let payment = json!({ "to": "Ann", "cents": 9_000 });
    ScriptedLlm::new([Reply::tool_call("pay", payment), Reply::text("The bill is dealt with.")])
}
