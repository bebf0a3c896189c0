//! A question to the customer, whom only the caller of the agent can ask. Each part is a process of
//! its own, and between them nothing runs: `order [SECONDS]` begins and ends as soon as the question
//! stands, `answer JSON` hands in what the customer said without knowing the agent, and `go-on` goes
//! on with that, or without it once the time is up. The model is the one that is configured, else a
//! script plays it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use helix_agents::prelude::*;
use helix_agents::runtime_local::SystemIds;
use helix_agents::session::{Outside, SessionReader, Submission, pending_calls, submit};
use helix_agents_testkit::scripted::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Everything that a session knows of itself is found under its id.
const SESSION: &str = "bicycle";

/// How long the customer has, unless `order` says otherwise.
const HOUR: Duration = Duration::from_secs(3600);

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is used: the caller gets the arguments as JSON")]
struct Question {
    /// What to ask the customer.
    question: String,
}

/// What an answer has to look like.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is used: the caller brings the result as JSON")]
struct Wish {
    /// The colour that the customer wants.
    colour: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let store = SqliteStore::open("orders.db").await?;
    let done = match words.as_slice() {
        ["order"] => order(&store, HOUR).await,
        ["order", seconds] => order(&store, Duration::from_secs_f64(seconds.parse()?)).await,
        ["answer", result] => answer(&store, result).await,
        ["go-on"] => go_on(&store).await,
        _ => bail!("say what to do: order [SECONDS], answer JSON or go-on"),
    };
    store.close().await;
    done
}

/// Begins, and ends as soon as the customer has to be asked.
async fn order(store: &SqliteStore, patience: Duration) -> Result<()> {
    let (agent, options) = (agent(patience)?, ExecuteOptions::default().session(SESSION));
    let handle = runtime(store)?.start(&agent, "A bicycle, please.", options).await?;
    show(&handle.result().await?)
}

/// Hands in what the customer said. Neither the agent nor a model is here: schema and deadline are
/// in the log.
async fn answer(store: &SqliteStore, result: &str) -> Result<()> {
    let session = SessionId::from(SESSION);
    let Some(waiting) = pending_calls(SessionReader::of(store), &session).await?.into_iter().next()
    else {
        bail!("nothing waits for an answer");
    };
    let result: Value = serde_json::from_str(result).context("an answer is JSON")?;
    let answer = Submission::result(waiting.reference(), &result)?;
    let outside = Outside { store, ids: &SystemIds, folds: None };
    match submit(outside, &session, &answer).await {
        Ok(_) => println!("answered; now: go-on"),
        // The question still stands, and another answer may be given.
        Err(error) if error.code() == ErrorCode::AnswerInvalid => {
            println!("refused: {}", error.message());
        }
        Err(error) if error.code() == ErrorCode::AnswerExpired => {
            println!("too late; now: go-on");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Goes on with what was answered, or with that nobody did in time.
async fn go_on(store: &SqliteStore) -> Result<()> {
    let (agent, session) = (agent(HOUR)?, SessionId::from(SESSION));
    let handle = runtime(store)?.resume_agent(&agent, &session, ResumeOptions::default()).await?;
    show(&handle.result().await?)
}

/// Tells what came of a run.
fn show(result: &AgentResult<String>) -> Result<()> {
    match (&result.suspended, &result.output) {
        (Some(waits), _) => {
            for call in &waits.calls {
                println!("waits for the result of {} ({})", call.tool, call.call);
            }
        }
        (None, Some(output)) => println!("{output}"),
        (None, None) => bail!("the run is {}", result.status.as_str()),
    }
    Ok(())
}

/// How long a call may wait is decided when it is made, so `go-on` need not say it again.
fn agent(patience: Duration) -> Result<Agent, Error> {
    let ask = Tool::client::<Question>("ask", "Ask the customer something, and wait for it.");
    Agent::builder("shop")
        .system_prompt("You take orders. Ask the customer what you have to know.")
        .tool(ask.output_schema::<Wish>().deadline(patience))
        .build()
}

fn runtime(store: &SqliteStore) -> Result<LocalRuntime> {
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.model("")?);
    Ok(LocalRuntime::builder().store(store.clone()).llm(models).build()?)
}

/// It answers by the place in the history, so the next process goes on with it as well.
fn script() -> ScriptedLlm {
    let question = json!({ "question": "Which colour?" });
    ScriptedLlm::new([Reply::tool_call("ask", question), Reply::text("The order is dealt with.")])
}
