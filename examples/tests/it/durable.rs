//! Runs the example as a user would: kills the process and starts it again.

use helix_agents::store_postgres::PostgresStore;
use helix_agents_testkit::servers::{self, Afterwards};
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::process::Command;

use crate::program::{example, kill_at, lines};

fn durable(name: &str) -> Command {
    let mut command = example(env!("CARGO_BIN_EXE_durable"));
    command.args([&servers::postgres(), name]);
    command
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
    let first = kill_at("visiting Rome", durable(&name)).await;
    assert_eq!(first, ["starting the tour", "visiting Oslo", "visited Oslo", "visiting Rome"]);

    // The visit to Oslo is in the log and is not repeated. The outcome of the visit to Rome is
    // unknown, so it is repeated.
    let mut second = lines(durable(&name)).await;
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
    assert_eq!(lines(durable(&name)).await, ["already started", "All three are beautiful."]);
}
