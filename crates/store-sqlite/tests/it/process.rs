//! Several processes with one file. Each process is this test binary, started again.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Child;
use std::time::Duration;

use futures_util::StreamExt as _;

use helix_agents_conformance::ids::batch_id;
use helix_agents_core::store::Position;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_store_sqlite::SqliteStore;
use helix_agents_test::within;

use super::support::{Folder, add, command, create, id, ids, streams, text};

/// The code of the other process. Does nothing in a plain test run, without its environment
/// variables.
#[tokio::test]
async fn other_process() {
    let Ok(what) = std::env::var("HELIX_TEST_PROCESS") else { return };
    let argument = std::env::var("HELIX_TEST_ARGUMENT").unwrap();
    let file = std::env::var("HELIX_TEST_FILE").unwrap();
    // All processes start together, when the test tells them to.
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let store = SqliteStore::open(file).await.unwrap();
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
pub(crate) struct Other {
    child: Child,
    pub(crate) lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Other {
    pub(crate) fn start(what: &str, argument: &str, folder: &Folder) -> Self {
        let mut child = command(what, argument, folder).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // The test harness also prints lines, sometimes incomplete ones.
        lines.find(|line| line.as_ref().unwrap().ends_with("ready")).unwrap().unwrap();
        Self { child, lines }
    }

    pub(crate) fn go(&mut self) {
        writeln!(self.child.stdin.as_mut().unwrap()).unwrap();
    }

    pub(crate) fn finish(mut self) {
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
async fn eight_processes_create_one_file_concurrently() {
    let folder = Folder::new();
    let others = (0..8).map(|number| Other::start("open", &format!("s{number}"), &folder));
    all_go(others.collect());
    let store = folder.open().await;
    for number in 0..8 {
        assert_eq!(ids(&store, &id(&format!("s{number}"))).await, ["first"]);
    }
    let integrity: String =
        folder.sql().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
}

#[tokio::test]
async fn processes_append_to_one_session_and_lose_nothing() {
    let folder = Folder::new();
    let store = folder.open().await;
    create(&store, &id("shared")).await;
    let others = ["a", "b", "c"].map(|name| Other::start("append", name, &folder));
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
async fn a_reader_follows_what_another_process_writes() {
    let folder = Folder::new();
    let store = folder.open().await;
    let mut reader = streams(&store).read(&id("shared"), 1).await.unwrap();
    let mut other = Other::start("write chunks", "", &folder);
    other.go();
    let mut seen = Vec::new();
    while seen.len() < 40 {
        seen.push(within(reader.next()).await.unwrap().unwrap().seq);
    }
    assert_eq!(seen, (1..=40).collect::<Vec<_>>());
    other.finish();
}

#[tokio::test]
async fn a_reader_does_not_wait_for_the_poll_to_see_what_its_own_process_writes() {
    let folder = Folder::new();
    let never = Duration::from_secs(3600);
    let store = SqliteStore::builder(folder.file()).poll_interval(never).open().await.unwrap();
    let streams = streams(&store);
    let mut reader = streams.read(&id("s"), 1).await.unwrap();
    let reading = tokio::spawn(async move {
        let mut seen = Vec::new();
        while seen.len() < 50 {
            seen.push(reader.next().await.unwrap().unwrap().seq);
        }
        seen
    });
    for _ in 0..50 {
        streams.append_chunks(batch_id(), &id("s"), None, vec![text(&id("s"), "x")]).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(within(reading).await.unwrap(), (1..=50).collect::<Vec<_>>());
}
