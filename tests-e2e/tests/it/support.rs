//! Workers in a scratch folder, and what they left behind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use helix_agents::event::{Event, RecordedEvent};
use helix_agents::id::SessionId;
use helix_agents::session::{load, load_events};
use helix_agents::store::{Page, SessionFilter, StateStore as _};
use helix_agents::store_sqlite::SqliteStore;
use helix_agents::stream::{StoredChunk, StreamManager};
use helix_agents_testkit::kill::{WorkerEnd, run_worker};
use serde_json::{Value, json};

/// One scenario in a folder of its own.
pub(crate) struct Story {
    folder: tempfile::TempDir,
    scenario: &'static str,
    mode: &'static str,
}

impl Story {
    pub(crate) fn new(scenario: &'static str, mode: &'static str) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), scenario, mode }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn db(&self) -> PathBuf {
        self.folder().join("story.db")
    }

    pub(crate) fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_helix-e2e-worker"));
        command.args([verb, self.scenario, self.mode]).arg(self.db());
        command.arg(self.folder().join("trace"));
        command
    }

    pub(crate) fn run(&self, kill_at: Option<usize>) -> WorkerEnd {
        run_worker(self.command("run"), self.folder(), kill_at)
    }

    pub(crate) fn resume(&self, kill_at: Option<usize>) -> WorkerEnd {
        run_worker(self.command("resume"), self.folder(), kill_at)
    }

    /// Tells all of it.
    pub(crate) fn tell(&self, kill_at: Option<usize>) -> WorkerEnd {
        run_worker(self.command("tell"), self.folder(), kill_at)
    }

    /// The logs of all sessions of the tree.
    pub(crate) async fn logs(&self) -> BTreeMap<SessionId, Vec<RecordedEvent>> {
        let store = SqliteStore::open(self.db()).await.unwrap();
        let mut logs = BTreeMap::new();
        for head in store.list(&SessionFilter::default(), &Page::default()).await.unwrap() {
            // Folding it shows that it is legal.
            load(&store, &head.session).await.unwrap();
            let log = load_events(&store, &head.session, 0).await.unwrap();
            logs.insert(head.session, log);
        }
        logs
    }

    /// The log, if there is a session.
    pub(crate) async fn log(&self) -> Option<Vec<RecordedEvent>> {
        let store = SqliteStore::open(self.db()).await.unwrap();
        let session = SessionId::from("story");
        // Folding it shows that it is legal.
        load(&store, &session).await.ok()?;
        Some(load_events(&store, &session, 0).await.unwrap())
    }

    /// The whole stream, as a late reader gets it.
    pub(crate) async fn stream(&self) -> Vec<StoredChunk> {
        use futures_util::StreamExt as _;
        let store = SqliteStore::open(self.db()).await.unwrap();
        let session = SessionId::from("story");
        let last = store.info(&session).await.unwrap().last_seq;
        let mut chunks = store.read(&session, 1).await.unwrap();
        let mut seen = Vec::new();
        while seen.last().is_none_or(|stored: &StoredChunk| stored.seq < last) {
            seen.push(chunks.next().await.unwrap().unwrap());
        }
        seen
    }

    /// For each call the keys under which it was executed, in order.
    pub(crate) fn trace(&self) -> BTreeMap<String, Vec<String>> {
        let text = std::fs::read_to_string(self.folder().join("trace")).unwrap_or_default();
        let mut trace: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let field = |name: &str| line.get(name).and_then(Value::as_str).unwrap().to_owned();
            trace.entry(field("call")).or_default().push(field("key"));
        }
        trace
    }
}

/// The calls that have a result in the logs, as the trace names them.
pub(crate) fn recorded_calls(logs: &BTreeMap<SessionId, Vec<RecordedEvent>>) -> Vec<String> {
    let mut calls = Vec::new();
    for (session, log) in logs {
        calls.extend(log.iter().filter_map(|recorded| match &recorded.event {
            Event::ToolFinished(finish) => Some(format!("{session}#{}", finish.call)),
            _ => None,
        }));
    }
    calls
}

/// What a worker answered.
pub(crate) fn answer(end: &WorkerEnd) -> Value {
    match serde_json::from_str(&end.stdout) {
        Ok(answer) => answer,
        Err(error) => panic!("no answer ({error}): {} {}", end.stdout, end.stderr),
    }
}

/// For `cargo xtask e2e`, which prints all reports as one table.
pub(crate) fn write_report(scenario: &str, mode: &str, points: &[Value]) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/e2e");
    std::fs::create_dir_all(&folder).unwrap();
    let report = json!({
        "runtime": "local",
        "store": "sqlite",
        "scenario": format!("{scenario} {mode}"),
        "fault_points": points,
    });
    let file = folder.join(format!("local-sqlite-{}-{mode}.json", scenario.replace(' ', "_")));
    std::fs::write(file, report.to_string()).unwrap();
}
