//! The example as people run it: a process that is really killed, and started again.
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

/// Runs it, and kills it once a line holds this text. Answers the lines up to that one.
async fn killed_at(name: &str, text: &str) -> Vec<String> {
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
    panic!("it never said `{text}`: {seen:?}");
}

async fn to_the_end(name: &str) -> Vec<String> {
    let output = timeout(DEADLINE, example(name).output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Removes what the example made.
fn afterwards(name: &str) -> Afterwards {
    let (name, url) = (name.to_owned(), servers::postgres());
    Afterwards::new(|| async move {
        PostgresStore::builder(&url).schema(&name).destroy().await.unwrap();
        let mut db = sqlx::PgConnection::connect(&url).await.unwrap();
        let gone = AssertSqlSafe(format!("DROP SCHEMA {name}_dbos CASCADE"));
        sqlx::query(gone).execute(&mut db).await.unwrap();
    })
}

#[tokio::test]
async fn kill_it_and_it_goes_on_when_it_is_started_again() {
    let name = servers::unique();
    let _gone = afterwards(&name);
    let first = killed_at(&name, "visiting Rome").await;
    assert_eq!(first, ["setting out", "visiting Oslo", "been to Oslo", "visiting Rome"]);

    // Oslo is on record and is not visited again; Rome is in doubt, and is.
    let mut second = to_the_end(&name).await;
    // Nobody waits for anybody to look.
    second.retain(|line| line != "under way, or done");
    let expected = [
        "visiting Rome",
        "been to Rome",
        "visiting Athens",
        "been to Athens",
        "All three are beautiful.",
    ];
    assert_eq!(second, expected);
    assert_eq!(to_the_end(&name).await, ["under way, or done", "All three are beautiful."]);
}
