//! Several processes with one schema. Each process is this test binary, started again.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use futures_util::StreamExt as _;

use helix_agents_conformance::ids::batch_id;
use helix_agents_core::store::Position;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_store_postgres::PostgresStore;
use helix_agents_test::within;

use super::support::{Database, add, create, id, ids, streams, text};

/// The code of the other process. Does nothing in a plain test run, without its environment
/// variables.
#[tokio::test]
async fn other_process() {
    let Ok(what) = std::env::var("HELIX_TEST_PROCESS") else { return };
    let argument = std::env::var("HELIX_TEST_ARGUMENT").unwrap();
    let (url, schema) =
        (std::env::var("HELIX_TEST_URL").unwrap(), std::env::var("HELIX_TEST_SCHEMA").unwrap());
    // All processes start together, when the test tells them to.
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let store = PostgresStore::builder(&url).schema(schema).connections(2).open().await.unwrap();
    let session = id("shared");
    match what.as_str() {
        "open" => {
            create(&store, &id(&argument)).await;
        }
        "append" => {
            let mut position = Position::start();
            for number in 0..30 {
                add(&store, &session, &mut position, &format!("{argument}/{number}")).await;
            }
        }
        "write chunks" => {
            for number in 0..20 {
                let chunks = vec![text(&session, &number.to_string()); 2];
                streams(&store).append_chunks(batch_id(), &session, None, chunks).await.unwrap();
            }
        }
        other => panic!("unknown action: {other}"),
    }
    store.close().await;
    println!("done");
}

/// A process that was started and waits for the signal to continue.
struct Other {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Other {
    fn start(what: &str, argument: &str, database: &Database) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::other_process", "--nocapture", "--test-threads=1"])
            .env("HELIX_TEST_PROCESS", what)
            .env("HELIX_TEST_ARGUMENT", argument)
            .env("HELIX_TEST_URL", &database.url)
            .env("HELIX_TEST_SCHEMA", &database.schema)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // The test harness also prints lines, sometimes incomplete ones.
        lines.find(|line| line.as_ref().unwrap().ends_with("ready")).unwrap().unwrap();
        Self { child, lines }
    }

    fn go(&mut self) {
        writeln!(self.child.stdin.as_mut().unwrap()).unwrap();
    }

    fn finish(mut self) {
        let done = self.lines.by_ref().map(Result::unwrap).any(|line| line == "done");
        assert!(self.child.wait().unwrap().success() && done, "the other process failed");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // The process may still run if the test failed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn all_go(mut others: Vec<Other>) {
    others.iter_mut().for_each(Other::go);
    others.into_iter().for_each(Other::finish);
}

#[tokio::test]
async fn eight_processes_create_one_schema_concurrently() {
    let database = Database::new();
    let others = (0..8).map(|number| Other::start("open", &format!("s{number}"), &database));
    all_go(others.collect());
    let store = database.open().await;
    for number in 0..8 {
        assert_eq!(ids(&store, &id(&format!("s{number}"))).await, ["first"]);
    }
    assert_eq!(database.sql("SELECT 1 FROM {s}.helix_schema").await.len(), 5);
}

#[tokio::test]
async fn processes_append_to_one_session_and_lose_nothing() {
    let database = Database::new();
    let store = database.open().await;
    create(&store, &id("shared")).await;
    let others = ["a", "b", "c"].map(|name| Other::start("append", name, &database));
    all_go(others.into());
    let ids = ids(&store, &id("shared")).await;
    assert_eq!(ids.len(), 1 + 3 * 30);
    for name in ["a", "b", "c"] {
        let prefix = format!("{name}/");
        let own: Vec<_> = ids.iter().filter(|id| id.starts_with(&prefix)).collect();
        let expected: Vec<_> = (0..30).map(|number| format!("{name}/{number}")).collect();
        assert_eq!(own, expected.iter().collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_reader_follows_what_other_processes_write() {
    let database = Database::new();
    let store = database.open().await;
    let mut reader = streams(&store).read(&id("shared"), 1).await.unwrap();
    let mut others = ["1", "2"].map(|name| Other::start("write chunks", name, &database));
    others.iter_mut().for_each(Other::go);
    let mut seen = Vec::new();
    while seen.len() < 80 {
        seen.push(within(reader.next()).await.unwrap().unwrap().seq);
    }
    assert_eq!(seen, (1..=80).collect::<Vec<_>>());
    others.into_iter().for_each(Other::finish);
}
