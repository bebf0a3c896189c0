//! A worker: one process that executes one verb of a scenario on one store, and that a test may kill at any fault
//! point.
//!
//! `helix-e2e-worker VERB SCENARIO MODE STORE TRACE [ARGUMENT]` prints one JSON object: the status and output of the
//! run, or its error code. The store is a URL, such as `sqlite:FILE` or `redis://HOST?prefix=NAME`. The verbs are
//! documented in `verbs.rs`. `HELIX_RUNTIME` names the runtime, such as `temporal:QUEUE@SERVER`.
//!
//! `helix-e2e-worker import FILE STORE` imports a session.
//!
//! `helix-e2e-worker live SEED NUMBER STORE FOLDER` is one process of a story of a random tree.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "prints the answer to the test, and the error"
)]

use anyhow::{Result, bail};
use helix_agents::session::{Durability, import_session};
use helix_agents_tests_e2e::{slow_streams, stores, trees, verbs::Worker};
use tracing_subscriber::EnvFilter;

fn main() -> Result<()> {
    helix_agents_testkit::kill::install_from_env();
    log_to_stderr();
    // The default runtime is `local:`.
    let runtime = std::env::var("HELIX_RUNTIME").unwrap_or_else(|_| "local:".to_owned());
    let mut threads = if runtime == "local:" {
        tokio::runtime::Builder::new_current_thread()
    } else {
        // An engine has its own threads, which wait for this one.
        tokio::runtime::Builder::new_multi_thread()
    };
    threads.enable_all().build()?.block_on(drive(&runtime))
}

/// Tests print the standard error of a worker that fails. `HELIX_LOG` is a filter such as `debug`.
fn log_to_stderr() {
    let filter = EnvFilter::try_from_env("HELIX_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false);
    log.with_writer(std::io::stderr).init();
}

async fn drive(runtime: &str) -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let answer = match *arguments.as_slice() {
        ["live", seed, number, store, folder] => {
            let stores = stores::open(store).await?;
            let wrong = trees::live(runtime, seed, number, stores, folder.as_ref()).await?;
            serde_json::json!({ "wrong": wrong })
        }
        ["import", file, store] => {
            let export = serde_json::from_slice(&std::fs::read(file)?)?;
            import_session(&*stores::open(store).await?.state, &export).await?;
            serde_json::json!({ "status": "imported" })
        }
        [verb, scenario, mode, store, trace, ref rest @ ..] if rest.len() < 2 => {
            let store = slow_streams::from_env(stores::open(store).await?, trace.as_ref())?;
            let worker =
                Worker::new(runtime, scenario, durability(mode)?, store, trace.as_ref()).await?;
            match worker.drive(verb, rest.first().copied()).await? {
                Ok(answer) => answer,
                Err(error) => {
                    eprintln!("{error:?}");
                    serde_json::json!({ "code": error.code().as_str() })
                }
            }
        }
        _ => bail!(
            "usage: helix-e2e-worker VERB SCENARIO (per_effect|per_step) STORE TRACE [ARGUMENT]"
        ),
    };
    println!("{answer}");
    Ok(())
}

fn durability(mode: &str) -> Result<Durability> {
    match mode {
        "per_effect" => Ok(Durability::PerEffect),
        "per_step" => Ok(Durability::PerStep),
        other => bail!("unknown mode `{other}`"),
    }
}
