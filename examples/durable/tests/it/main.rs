//! Runs the example as a user would: kills the process and starts it again.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::process::Stdio;
use std::time::Duration;

use helix_agents::store_postgres::PostgresStore;
use helix_agents_testkit::servers::{self, Afterwards};
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(60);

fn example(name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_helix-agents-example-durable"));
    command.env_remove("OPENAI_API_KEY").env_remove("OPENAI_BASE_URL").env_remove("HELIX_MODEL");
    command.args([&servers::postgres(), name]).kill_on_drop(true).stdin(Stdio::null());
    command
}

/// Runs the example and kills it once a line contains this text. Returns the lines up to that one.
async fn run_and_kill(name: &str, text: &str) -> Vec<String> {
    let mut child = example(name).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    while let Some(line) = timeout(DEADLINE, lines.next_line()).await.unwrap().unwrap() {
        seen.push(line);
        if seen.last().is_some_and(|line| line.contains(text)) {
            child.kill().await.unwrap();
            return seen;
        }
    }
    panic!("the output never contained `{text}`: {seen:?}");
}

async fn run_to_completion(name: &str) -> Vec<String> {
    let output = timeout(DEADLINE, example(name).output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Drops the schemas that the example created.
fn cleanup(name: &str) -> Afterwards {
    let (name, url) = (name.to_owned(), servers::postgres());
    Afterwards::new(|| async move {
        PostgresStore::builder(&url).schema(&name).destroy().await.unwrap();
        let mut db = sqlx::PgConnection::connect(&url).await.unwrap();
        let drop_schema = AssertSqlSafe(format!("DROP SCHEMA {name}_dbos CASCADE"));
        sqlx::query(drop_schema).execute(&mut db).await.unwrap();
    })
}

#[tokio::test]
async fn a_killed_run_continues_after_a_restart() {
    let name = servers::unique();
    let _cleanup = cleanup(&name);
    let first = run_and_kill(&name, "visiting Rome").await;
    assert_eq!(first, ["starting the tour", "visiting Oslo", "visited Oslo", "visiting Rome"]);

    // The visit to Oslo is in the log and is not repeated. The outcome of the visit to Rome is
    // unknown, so it is repeated.
    let mut second = run_to_completion(&name).await;
    // This line depends on whether the recovery was faster than the query.
    second.retain(|line| line != "already started");
    let expected = [
        "visiting Rome",
        "visited Rome",
        "visiting Athens",
        "visited Athens",
        "All three are beautiful.",
    ];
    assert_eq!(second, expected);
    assert_eq!(run_to_completion(&name).await, ["already started", "All three are beautiful."]);
}
