//! A tool that must not place an order twice. Start the example, kill it with `kill -9` while it
//! waits for the confirmation, and start it again: the next process asks the shop about the order
//! instead of ordering again. The example uses the configured model, or a scripted one if none is
//! configured.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

mod shop;

use std::time::Duration;

use anyhow::Result;
use helix_agents::prelude::*;
use helix_agents::tool::ReconcileOutcome;
use helix_agents_test::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const SESSION: &str = "order-desk";

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// The article to order.
    article: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Receipt {
    /// The shop's order number.
    number: usize,
}

/// Orders an article. It will be shipped and has to be paid for.
#[tool]
async fn order(order: Order, cx: &ToolContext) -> Result<Receipt, ToolError> {
    let number = shop::place(&order.article, &cx.idempotency_key())?;
    println!("the shop accepted order {number}; waiting for the confirmation");
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(Receipt { number })
}

/// Finds out whether an interrupted call placed its order. The shop looks it up by the idempotency
/// key.
async fn ask_the_shop(_arguments: Value, cx: ToolContext) -> ReconcileOutcome {
    match shop::find(&cx.idempotency_key()) {
        Ok(Some(number)) => {
            println!("the shop confirms order {number}");
            ReconcileOutcome::Completed(json!({ "number": number }))
        }
        Ok(None) => {
            println!("the shop has no such order; ordering now");
            ReconcileOutcome::NotExecuted
        }
        Err(error) => {
            println!("the shop did not answer: {error}");
            ReconcileOutcome::Unknown
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.default_model()?);
    let ordering = order
        .into_tool()
        .effect(EffectClass::AtMostOnce)
        .reconcile(ask_the_shop)
        .timeout(Duration::from_secs(2));
    let agent = Agent::builder("clerk")
        .system_prompt("You order articles on request. Order each article once.")
        .tool(ordering)
        .output::<Receipt>()
        .build()?;
    let runtime = LocalRuntime::builder()
        .store(SqliteStore::open("desk.db").await?)
        .llm(models)
        .lease(Duration::from_secs(1))
        .build()?;
    let run = serve(&runtime, &agent).await?;
    let receipt: Receipt = run.result().await?.typed()?.into_output()?;
    println!("done: order {}", receipt.number);
    Ok(())
}

/// Places the order, or resumes the run of a killed process.
async fn serve(runtime: &LocalRuntime, agent: &Agent<Receipt>) -> Result<RunHandle, Error> {
    let session = SessionId::from(SESSION);
    match runtime.can_resume(&session).await {
        Ok(Resumable::Yes | Resumable::Running) => {
            println!("resuming");
            let options = ResumeOptions::default().wait(Duration::from_secs(5));
            runtime.resume(agent.erased(), &session, options).await
        }
        // The run has ended. This agent never suspends, because no tool needs approval.
        Ok(_) => {
            println!("the order was already placed");
            runtime.handle(&session).await
        }
        Err(error) if error.code() == ErrorCode::SessionNotFound => {
            let options = ExecuteOptions::default().session(session);
            runtime.execute(agent.erased(), "We are out of tea.".into(), options).await
        }
        Err(error) => Err(error),
    }
}

fn script() -> ScriptedLlm {
    ScriptedLlm::new([
        Reply::tool_call("order", json!({ "article": "tea" })),
        Reply::finish(json!({ "number": 1 })),
    ])
}
