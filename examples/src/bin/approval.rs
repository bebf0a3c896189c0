//! A payment that waits for human approval. Each command is a separate process, and nothing runs
//! between them: `place` starts the run and exits when it waits for approval, `approve` or `deny`
//! records the decision without knowing the agent, and `resume` continues the run. The example uses
//! the configured model, or a scripted one if none is configured.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use anyhow::{Result, bail};
use helix_agents::prelude::*;
use helix_agents::session::CallRef;
use helix_agents_test::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// The session id. It is all that a process needs to find the session.
const SESSION: &str = "bill-7";

#[derive(Deserialize, JsonSchema)]
struct Payment {
    /// The recipient.
    to: String,
    /// The amount in cents.
    cents: u64,
}

/// Makes a payment.
#[tool]
async fn pay(payment: Payment) -> Result<String, ToolError> {
    println!("paying {} cents to {}", payment.cents, payment.to);
    Ok("paid".to_owned())
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let store = SqliteStore::open("bills.db").await?;
    match command.as_slice() {
        ["place"] => place(&store).await?,
        ["approve"] => answer(&store, Submission::approve).await?,
        ["deny", reason @ ..] => {
            let reason = (!reason.is_empty()).then(|| reason.join(" "));
            answer(&store, |call| Submission::deny(call, reason)).await?;
        }
        ["resume"] => resume(&store).await?,
        _ => bail!("usage: approval place | approve | deny [REASON] | resume"),
    }
    store.close().await;
    Ok(())
}

/// Starts the run. It suspends as soon as the payment needs approval, and this process exits.
async fn place(store: &SqliteStore) -> Result<()> {
    let options = ExecuteOptions::default().session(SESSION);
    let handle = runtime(store)?.start(&agent()?, "Pay Ann's bill, 90 euros.", options).await?;
    show(&handle.result().await?)
}

/// Records the decision on the pending call. This process needs neither the agent nor a model.
async fn answer(store: &SqliteStore, answer: impl FnOnce(CallRef) -> Submission) -> Result<()> {
    let (sessions, session) = (Sessions::new(store.clone()), SessionId::from(SESSION));
    let Some(pending_call) = sessions.pending(&session).await?.into_iter().next() else {
        bail!("no call is waiting for approval");
    };
    println!("{} {}", pending_call.pending.tool, pending_call.arguments.text());
    // The digest ties the decision to the arguments that were shown above.
    let answer = answer(pending_call.reference()).digest(pending_call.pending.digest.clone());
    sessions.answer(&session, &answer).await?;
    println!("recorded; now run: resume");
    Ok(())
}

/// Continues the run with the recorded decision.
async fn resume(store: &SqliteStore) -> Result<()> {
    let (agent, session) = (agent()?, SessionId::from(SESSION));
    let handle = runtime(store)?.resume_agent(&agent, &session, ResumeOptions::default()).await?;
    show(&handle.result().await?)
}

/// Prints the result of a run, or the calls that it waits for.
fn show(result: &AgentResult<String>) -> Result<()> {
    match (&result.suspended, &result.output) {
        (Some(suspended), _) => {
            for call in &suspended.calls {
                println!("waiting for approval of {} ({})", call.tool, call.call);
            }
        }
        (None, Some(output)) => println!("{output}"),
        (None, None) => bail!("the run ended as {}", result.status.as_str()),
    }
    Ok(())
}

fn agent() -> Result<Agent, Error> {
    let desk = Agent::builder("desk").system_prompt("You pay bills with the tool.");
    desk.tool(Tool::from(pay).requires_approval()).build()
}

fn runtime(store: &SqliteStore) -> Result<LocalRuntime> {
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.default_model()?);
    Ok(LocalRuntime::builder().store(store.clone()).llm(models).build()?)
}

/// Returns a scripted model. It picks its reply by the length of the history, so each process
/// continues where the previous one stopped.
fn script() -> ScriptedLlm {
    let payment = json!({ "to": "Ann", "cents": 9_000 });
    ScriptedLlm::new([Reply::tool_call("pay", payment), Reply::text("The request is handled.")])
}
