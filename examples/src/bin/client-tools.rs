//! A question to the customer, which only the caller of the agent can ask. Each command is a
//! separate process, and nothing runs between them: `order [SECONDS]` starts the run and exits when
//! the question is pending, `answer JSON` submits the customer's answer without knowing the agent,
//! and `resume` continues the run with the answer, or without it after the deadline. The example
//! uses the configured model, or a scripted one if none is configured.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use helix_agents::prelude::*;
use helix_agents_test::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// The session id. It is all that a process needs to find the session.
const SESSION: &str = "bicycle";

/// The default time that the customer has to answer.
const HOUR: Duration = Duration::from_secs(3600);

#[derive(Deserialize, JsonSchema)]
#[expect(
    dead_code,
    reason = "only its schema is used, because the caller receives the arguments as JSON"
)]
struct Question {
    /// The question for the customer.
    question: String,
}

/// The schema of the customer's answer.
#[derive(Deserialize, JsonSchema)]
#[expect(
    dead_code,
    reason = "only its schema is used, because the caller submits the result as JSON"
)]
struct Answer {
    /// The colour that the customer wants.
    colour: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let store = SqliteStore::open("orders.db").await?;
    let done = match command.as_slice() {
        ["order"] => order(&store, HOUR).await,
        ["order", seconds] => order(&store, Duration::from_secs_f64(seconds.parse()?)).await,
        ["answer", result] => answer(&store, result).await,
        ["resume"] => resume(&store).await,
        _ => bail!("usage: client-tools order [SECONDS] | answer JSON | resume"),
    };
    store.close().await;
    done
}

/// Starts the run. It suspends as soon as the customer has to be asked, and this process exits.
async fn order(store: &SqliteStore, deadline: Duration) -> Result<()> {
    let (agent, options) = (agent(deadline)?, ExecuteOptions::default().session(SESSION));
    let handle = runtime(store)?.start(&agent, "A bicycle, please.", options).await?;
    show(&handle.result().await?)
}

/// Submits the customer's answer. This process needs neither the agent nor a model, because the
/// schema and the deadline are in the log.
async fn answer(store: &SqliteStore, result: &str) -> Result<()> {
    let (sessions, session) = (Sessions::new(store.clone()), SessionId::from(SESSION));
    let Some(pending_call) = sessions.pending(&session).await?.into_iter().next() else {
        bail!("no call is waiting for a result");
    };
    let result: Value = serde_json::from_str(result).context("the answer must be JSON")?;
    let answer = Submission::result(pending_call.reference(), &result)?;
    match sessions.answer(&session, &answer).await {
        Ok(_) => println!("recorded; now run: resume"),
        // The call is still pending and accepts another answer.
        Err(error) if error.code() == ErrorCode::AnswerInvalid => {
            println!("refused: {}", error.message());
        }
        Err(error) if error.code() == ErrorCode::AnswerExpired => {
            println!("too late; now run: resume");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Continues the run with the customer's answer, or with a timeout error if there is none.
async fn resume(store: &SqliteStore) -> Result<()> {
    let (agent, session) = (agent(HOUR)?, SessionId::from(SESSION));
    let handle = runtime(store)?.resume_agent(&agent, &session, ResumeOptions::default()).await?;
    show(&handle.result().await?)
}

/// Prints the result of a run, or the calls that it waits for.
fn show(result: &AgentResult<String>) -> Result<()> {
    match (&result.suspended, &result.output) {
        (Some(suspended), _) => {
            for call in &suspended.calls {
                println!("waiting for the result of {} ({})", call.tool, call.call);
            }
        }
        (None, Some(output)) => println!("{output}"),
        (None, None) => bail!("the run ended as {}", result.status.as_str()),
    }
    Ok(())
}

/// Builds the agent. The deadline is fixed when the model makes the call, so `resume` may pass any
/// value.
fn agent(deadline: Duration) -> Result<Agent, Error> {
    let ask =
        Tool::client::<Question>("ask", "Ask the customer a question and wait for the answer.");
    Agent::builder("shop")
        .system_prompt("You take orders. Ask the customer for missing details.")
        .tool(ask.output_schema::<Answer>().deadline(deadline))
        .build()
}

fn runtime(store: &SqliteStore) -> Result<LocalRuntime> {
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.default_model()?);
    Ok(LocalRuntime::builder().store(store.clone()).llm(models).build()?)
}

/// Returns a scripted model. It picks its reply by the length of the history, so each process
/// continues where the previous one stopped.
fn script() -> ScriptedLlm {
    let question = json!({ "question": "Which colour?" });
    ScriptedLlm::new([Reply::tool_call("ask", question), Reply::text("The order is handled.")])
}
