//! A worker: one process that runs or resumes one scenario on one SQLite file, and that a test
//! may have killed at any fault point.
//!
//! `helix-e2e-worker (run|resume|tell) SCENARIO MODE DB TRACE` prints one JSON object: the status and
//! output of the run, or the code of the error that it met. `tell` begins or goes on, whichever it
//! is, and gives the answers that are asked for, until the session has ended. `helix-e2e-worker live SEED NUMBER DB
//! FOLDER` is one process of a story of a random tree.
#![expect(clippy::print_stdout, reason = "the answer to the test that started it")]

mod scenarios;
mod trees;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use helix_agents::agent::AnyAgent;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::{
    AgentExecutor, AgentResult, ExecuteOptions, Resumable, ResumeOptions,
};
use helix_agents::id::SessionId;
use helix_agents::runtime_local::LocalRuntime;
use helix_agents::session::Durability;
use helix_agents::store_sqlite::SqliteStore;

/// How long a story may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// The session of every scenario.
const SESSION: &str = "story";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    helix_agents_testkit::kill::install_from_env();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [verb, seed, number, db, folder] = arguments.as_slice()
        && verb == "live"
    {
        let wrong = trees::live(seed, number, db.as_ref(), folder.as_ref()).await?;
        println!("{}", serde_json::json!({ "wrong": wrong }));
        return Ok(());
    }
    let [verb, scenario, mode, db, trace] = arguments.as_slice() else {
        bail!("usage: helix-e2e-worker (run|resume|tell) SCENARIO (per_effect|per_step) DB TRACE");
    };
    let durability = match mode.as_str() {
        "per_effect" => Durability::PerEffect,
        "per_step" => Durability::PerStep,
        other => bail!("unknown mode `{other}`"),
    };
    let answer = match carry_out(verb, scenario, durability, db.as_ref(), trace.as_ref()).await? {
        Ok(result) => serde_json::json!({
            "status": result.status.as_str(),
            "output": result.output,
            "error": result.error,
        }),
        Err(error) => serde_json::json!({ "code": error.code().as_str() }),
    };
    println!("{answer}");
    Ok(())
}

async fn carry_out(
    verb: &str,
    scenario: &str,
    durability: Durability,
    db: &Path,
    trace: &Path,
) -> Result<Result<AgentResult, Error>> {
    let scenario = scenarios::named(scenario, trace)
        .with_context(|| format!("unknown scenario `{scenario}`"))?;
    let runtime = LocalRuntime::builder()
        .store(SqliteStore::open(db).await?)
        .llm(scenario.llm)
        .durability(durability)
        .lease(Duration::from_millis(300))
        .build()?;
    let session = SessionId::from(SESSION);
    let agent = scenario.agent;
    let handle = match verb {
        "run" => {
            let options = ExecuteOptions::default().session(session);
            runtime.execute(agent, "go".into(), options).await
        }
        "resume" => {
            let options = ResumeOptions::default().wait(Duration::from_secs(60));
            runtime.resume(agent, &session, options).await
        }
        "tell" => {
            let told = tell(&runtime, agent, &session);
            return tokio::time::timeout(PATIENCE, told).await.context("it hangs");
        }
        other => bail!("unknown verb `{other}`"),
    };
    Ok(match handle {
        Ok(handle) => handle.result().await,
        Err(error) => Err(error),
    })
}

/// Whatever has to be done until the session has ended; the same in every process.
async fn tell(
    runtime: &LocalRuntime,
    agent: AnyAgent,
    session: &SessionId,
) -> Result<AgentResult, Error> {
    loop {
        let agent = Arc::clone(&agent);
        // People answer when the whole family waits, and all that they are asked.
        let waits = match runtime.handle(session).await {
            Ok(handle) => handle.fold().await?.current_run().is_none(),
            Err(_) => false,
        };
        if waits {
            for pending in runtime.pending_calls(session).await? {
                runtime.submit_tool_result(session, scenarios::answer(&pending)?).await?;
            }
        }
        let handle = match runtime.can_resume(session).await {
            Ok(Resumable::Yes | Resumable::Running) => {
                let options = ResumeOptions::default().wait(Duration::from_secs(60));
                runtime.resume(agent, session, options).await?
            }
            Ok(Resumable::Waiting) => continue,
            Ok(_) => {
                let handle = runtime.handle(session).await?;
                // Whoever looks brings the stream into line.
                drop(handle.stream().await?);
                return handle.result().await;
            }
            Err(error) if error.code() == ErrorCode::SessionNotFound => {
                let options = ExecuteOptions::default().session(session.clone());
                runtime.execute(agent, "go".into(), options).await?
            }
            Err(error) => return Err(error),
        };
        handle.result().await?;
    }
}
