//! Sessions that are exported from one store and continue in another, and imports that are killed.

use std::path::PathBuf;
use std::process::Command;

use helix_agents::id::SessionId;
use helix_agents::session::{Durability, SessionExport, export_session, import_session, load};
use helix_agents_conformance::normalise;
use helix_agents_testkit::kill::{WorkerEnd, run_worker};
use helix_agents_testkit::trees::Stores;
use helix_agents_tests_e2e::stores::{self, KINDS, Kind, Place};
use helix_agents_tests_e2e::verbs::Worker;
use serde_json::Value;

use crate::kill_matrix::{difference, logs_text};
use crate::support::{
    SessionReader, Trace, answer, logs_of, on_each_store, recorded_calls, trace_of,
};
use crate::sweep::{blocking, sweep};

/// The scenario of a session with a child and a companion.
const SCENARIO: &str = "family";

const ROOT: &str = "story";

/// A new store, opened once: each opened in-memory store is separate.
struct TestStore {
    store: Stores,
    place: Place,
    folder: tempfile::TempDir,
}

impl TestStore {
    async fn of(kind: &Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = kind.place(folder.path());
        Self { store: stores::open(&place.url).await.unwrap(), place, folder }
    }

    fn trace_file(&self) -> PathBuf {
        self.folder.path().join("trace")
    }

    /// Returns the calls that were executed on this store.
    fn trace(&self) -> Trace {
        trace_of(&self.trace_file())
    }

    /// Executes a verb on this store and returns the status of the session.
    async fn execute_verb(&self, verb: &str) -> String {
        let (mode, store) = (Durability::PerEffect, self.store.clone());
        let worker =
            Worker::new("local:", SCENARIO, mode, store, &self.trace_file()).await.unwrap();
        let answer = worker.drive(verb, None).await.unwrap().unwrap();
        answer.get("status").and_then(Value::as_str).unwrap().to_owned()
    }

    /// Exports the session and passes it through JSON, as in a file.
    async fn export(&self) -> SessionExport {
        let root = SessionId::from(ROOT);
        let export = export_session(&*self.store.state, &root).await.unwrap();
        serde_json::from_str(&serde_json::to_string(&export).unwrap()).unwrap()
    }

    async fn logs(&self) -> SessionReader {
        logs_of(&*self.store.state).await
    }

    async fn transcripts(&self) -> Vec<String> {
        let mut transcripts = Vec::new();
        for session in self.logs().await.keys() {
            let fold = load(&*self.store.state, session).await.unwrap();
            transcripts.push(normalise::transcript(fold.transcript()));
        }
        transcripts
    }
}

/// Returns the logs of an export.
fn logs(export: &SessionExport) -> SessionReader {
    export
        .sessions()
        .iter()
        .map(|session| (session.session.clone(), session.events.clone()))
        .collect()
}

/// Runs a part of the story, and exports it into each kind of store, where it continues.
async fn continues_everywhere(from: &'static str) {
    let here = TestStore::of(Kind::named(from).unwrap()).await;
    assert_eq!(here.execute_verb("run").await, "suspended_step_partial");
    let (export, before) = (here.export().await, here.trace());
    assert_eq!(export.sessions().len(), 3, "the session, its child and its companion");
    let mut ends = Vec::new();
    for kind in KINDS {
        let there = TestStore::of(kind).await;
        import_session(&*there.store.state, &export).await.unwrap();
        assert!(there.logs().await == logs(&export), "{from} to {}: other logs", kind.name);
        assert_eq!(there.execute_verb("tell").await, "completed", "{from} to {}", kind.name);
        let repeated: Vec<_> =
            there.trace().into_keys().filter(|call| before.contains_key(call)).collect();
        assert!(repeated.is_empty(), "{from} to {}: {repeated:?} ran again", kind.name);
        ends.push((kind.name, logs_text(&there.logs().await), there.transcripts().await));
    }
    // The original does not change, and has the same end.
    assert!(here.logs().await == logs(&export));
    assert_eq!(here.execute_verb("tell").await, "completed");
    let (expected, transcripts) = (logs_text(&here.logs().await), here.transcripts().await);
    for (to, end, transcript) in ends {
        assert!(end == expected, "{from} to {to}:\n{}", difference(&expected, &end));
        assert_eq!(transcript, transcripts, "{from} to {to}");
    }
}

#[tokio::test]
async fn a_session_from_memory_continues_in_every_store() {
    continues_everywhere("memory").await;
}

#[tokio::test]
async fn a_session_from_sqlite_continues_in_every_store() {
    continues_everywhere("sqlite").await;
}

#[tokio::test]
async fn a_session_from_postgres_continues_in_every_store() {
    continues_everywhere("postgres").await;
}

#[tokio::test]
async fn a_session_from_redis_continues_in_every_store() {
    continues_everywhere("redis").await;
}

on_each_store! {
    Everywhere an_import_that_is_killed_left_nothing_that_counts(kind) {
        super::an_import_that_is_killed_left_nothing_that_counts(kind)
    }
}

/// Returns the whole story as an export and as a file. Each of its sessions takes several appends.
fn exported() -> (SessionExport, tempfile::TempDir) {
    let export = blocking().block_on(async {
        let here = TestStore::of(Kind::named("memory").unwrap()).await;
        assert_eq!(here.execute_verb("tell").await, "completed");
        here.export().await
    });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("export.json"), serde_json::to_vec(&export).unwrap())
        .unwrap();
    (export, folder)
}

/// Imports in a separate process, which is killed at the n-th fault point.
fn import(file: &std::path::Path, there: &TestStore, kill_at: Option<usize>) -> WorkerEnd {
    let mut command = Command::new(env!("CARGO_BIN_EXE_helix-e2e-worker"));
    command.arg("import").arg(file).arg(&there.place.url);
    run_worker(command, there.folder.path(), kill_at)
}

fn an_import_that_is_killed_left_nothing_that_counts(kind: &'static Kind) {
    let (export, folder) = exported();
    let file = folder.path().join("export.json");
    let whole = blocking().block_on(async { import(&file, &TestStore::of(kind).await, None) });
    assert_eq!(answer(&whole).get("status").unwrap(), "imported", "{}", whole.stderr);
    assert!(whole.points.len() > 12, "fault points are missing: {:?}", whole.points);
    let points: Vec<_> = (1..).zip(whole.points).collect();
    sweep(kind, ["whole import"], [SCENARIO, "both"], &points, |kill_at| {
        let outcome = blocking().block_on(async {
            let there = TestStore::of(kind).await;
            let killed = import(&file, &there, Some(*kill_at));
            problem(&export, &there, &killed, || import(&file, &there, None)).await
        });
        [outcome]
    });
}

/// Checks what a killed import left, and the result of the next import. Returns the problem, if there is one.
async fn problem(
    export: &SessionExport,
    there: &TestStore,
    killed: &WorkerEnd,
    import_again: impl Fn() -> WorkerEnd,
) -> Result<(), String> {
    if !killed.was_killed() {
        return Err(format!("the worker was not killed: {} {}", killed.stdout, killed.stderr));
    }
    let expected = logs(export);
    let left = there.logs().await;
    for (session, log) in &left {
        let aside = session.as_str().starts_with("import-");
        if !aside && expected.get(session) != Some(log) {
            return Err(format!("{session} is only partly imported"));
        }
    }
    let recorded = recorded_calls(&expected);
    for _ in 0..2 {
        let end = import_again();
        if answer(&end).get("status").is_none() {
            return Err(format!("the second import failed: {} {}", end.stdout, end.stderr));
        }
        let is = there.logs().await;
        if is != expected {
            let sessions: Vec<_> = is.keys().collect();
            return Err(format!("the import differs from the export: {sessions:?}"));
        }
    }
    // A caller gets the results that were recorded before the export.
    if there.execute_verb("tell").await != "completed" || there.logs().await != expected {
        return Err("the status or the logs have changed".to_owned());
    }
    let ran: Vec<_> = there.trace().into_keys().filter(|call| recorded.contains(call)).collect();
    if ran.is_empty() { Ok(()) } else { Err(format!("{ran:?} ran again")) }
}
