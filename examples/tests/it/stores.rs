//! Runs the example as a user would, twice on each store. The second process finds the session of
//! the first one if the store is durable.

use helix_agents::store_postgres::PostgresStore;
use helix_agents::store_redis::RedisStore;
use helix_agents_testkit::servers::{self, Afterwards};

use crate::program::{example, lines};

const FIRST: [&str; 2] = ["Apples are on the list.", "turn 1, list: [\"apples\"]"];

const SECOND: [&str; 2] =
    ["There are more apples on it now.", "turn 2, list: [\"apples\",\"apples\"]"];

/// Runs the example on a store. Returns its output lines.
async fn run(store: &[&str]) -> Vec<String> {
    let mut command = example(env!("CARGO_BIN_EXE_stores"));
    command.args(store);
    lines(command).await
}

#[tokio::test]
async fn in_memory_every_process_starts_a_new_session() {
    assert_eq!(run(&[]).await, FIRST);
    assert_eq!(run(&[]).await, FIRST);
}

#[tokio::test]
async fn in_a_file_the_next_process_continues_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.db");
    let store = format!("sqlite:{}", file.display());
    assert_eq!(run(&[&store]).await, FIRST);
    assert_eq!(run(&[&store]).await, SECOND);
}

#[tokio::test]
async fn on_postgres_the_next_process_continues_the_session() {
    let url = format!("{}?schema={}", servers::postgres(), servers::unique());
    let builder = PostgresStore::builder(&url);
    let _cleanup = Afterwards::new(|| async { builder.destroy().await.unwrap() });
    assert_eq!(run(&[&url]).await, FIRST);
    assert_eq!(run(&[&url]).await, SECOND);
}

#[tokio::test]
async fn on_redis_the_next_process_continues_the_session() {
    let url = format!("{}?prefix={}", servers::redis(), servers::unique());
    let builder = RedisStore::builder(&url);
    let _cleanup = Afterwards::new(|| async { builder.destroy().await.unwrap() });
    assert_eq!(run(&[&url]).await, FIRST);
    assert_eq!(run(&[&url]).await, SECOND);
}
