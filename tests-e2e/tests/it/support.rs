//! Workers in a temporary folder, and the results that they leave.

mod remote;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use helix_agents::event::{Event, RecordedEvent};
use helix_agents::id::SessionId;
use helix_agents::session::{load, load_events};
use helix_agents::store::{Page, SessionFilter, StateStore};
use helix_agents::stream::{StoredChunk, StreamManager};
use helix_agents_testkit::kill::{StopAt, StoppedWorker, WorkerEnd, run_worker};
use helix_agents_testkit::trees::Stores;
use helix_agents_tests_e2e::runtimes;
use helix_agents_tests_e2e::stores::{self, Kind, Place};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use self::remote::Remote;

/// The log of each session.
pub(crate) type SessionReader = BTreeMap<SessionId, Vec<RecordedEvent>>;

/// The executed calls by session and call id, with their idempotency keys.
pub(crate) type Trace = BTreeMap<String, Vec<String>>;

/// The stores on which a test runs by default, as in CI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    Everywhere,
    Sqlite,
}

/// The extent of a test on a kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// The default on servers: only tests that are `On::Everywhere`, with fewer cases.
    Sample,
    /// The default on SQLite, and on the stores that `HELIX_STORE` names.
    Usual,
    /// Everything, with `HELIX_FULL=1`.
    Full,
}

impl Extent {
    pub(crate) fn on(kind: &Kind) -> Self {
        if std::env::var("HELIX_FULL").is_ok_and(|full| full == "1") {
            Self::Full
        } else if kind.name == "sqlite" || std::env::var_os("HELIX_STORE").is_some() {
            Self::Usual
        } else {
            Self::Sample
        }
    }
}

/// Returns the kind of store, if the test runs on it. `HELIX_STORE` names a kind or `all`, and `HELIX_FULL=1` means
/// all. `cargo xtask e2e` sets them.
pub(crate) fn wanted(store: &str, on: On) -> Option<&'static Kind> {
    let kind = Kind::named(store).unwrap();
    match std::env::var("HELIX_STORE").as_deref() {
        Ok("all") => Some(kind),
        Ok(name) => (Kind::named(name).unwrap().name == store).then_some(kind),
        Err(_) => (on == On::Everywhere || Extent::on(kind) > Extent::Sample).then_some(kind),
    }
}

/// Defines tests for each kind of store, in modules with their names.
macro_rules! on_each_store {
    ($($tests:tt)*) => {
        $crate::support::on_store!(sqlite $($tests)*);
        $crate::support::on_store!(postgres $($tests)*);
        $crate::support::on_store!(redis $($tests)*);
    };
}

macro_rules! on_store {
    ($store:ident $($(#[$doc:meta])* $on:ident $name:ident($kind:ident) $body:block)*) => {
        mod $store {
            $(
                $(#[$doc])*
                #[test]
                fn $name() {
                    let wanted =
                        $crate::support::wanted(stringify!($store), $crate::support::On::$on);
                    if let Some($kind) = wanted {
                        $body
                    }
                }
            )*
        }
    };
}

pub(crate) use {on_each_store, on_store};

/// The runtime of most tests.
const LOCAL: &str = "local";

/// One scenario in its own folder.
pub(crate) struct Story {
    opened: OnceCell<Stores>,
    runtime: String,
    place: Place,
    folder: tempfile::TempDir,
    scenario: &'static str,
    mode: &'static str,
    lease_ms: Option<u64>,
    env: Vec<(&'static str, String)>,
    remote: Option<Remote>,
}

impl Story {
    pub(crate) fn new(kind: &'static Kind, scenario: &'static str, mode: &'static str) -> Self {
        Self::on(LOCAL, kind, scenario, mode)
    }

    pub(crate) fn on(
        runtime: &str,
        kind: &'static Kind,
        scenario: &'static str,
        mode: &'static str,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = kind.place(folder.path());
        let runtime = runtimes::Kind::named(runtime).unwrap().place();
        let remote = Remote::of(scenario);
        let env = remote.iter().map(Remote::env).collect();
        let (opened, lease_ms) = (OnceCell::new(), None);
        Self { opened, runtime, place, folder, scenario, mode, lease_ms, env, remote }
    }

    /// Makes the workers' leases so short that a test can wait for their expiry.
    pub(crate) fn with_short_leases(mut self) -> Self {
        // An engine's server also assigns work to another worker only after such a time. With a shorter lease, a worker
        // that is late on a busy machine would take the run over.
        self.lease_ms = Some(if self.runtime == "local:" { 300 } else { 8000 });
        self
    }

    /// Returns the lease of the workers, if it is [short](Self::with_short_leases).
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms.unwrap())
    }

    /// Sets an environment variable of all workers.
    pub(crate) fn with_env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the stores, which are opened at the first call.
    pub(crate) async fn stores(&self) -> &Stores {
        self.opened.get_or_init(async || stores::open(&self.place.url).await.unwrap()).await
    }

    pub(crate) fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_helix-e2e-worker"));
        command.args([verb, self.scenario, self.mode, &self.place.url]);
        command.arg(self.folder().join("trace")).env("HELIX_RUNTIME", &self.runtime);
        command.envs(self.lease_ms.map(|time| ("HELIX_LEASE_MS", time.to_string())));
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn run(&self, kill_at: Option<usize>) -> WorkerEnd {
        run_worker(self.command("run"), self.folder(), kill_at)
    }

    pub(crate) fn resume(&self, kill_at: Option<usize>) -> WorkerEnd {
        run_worker(self.command("resume"), self.folder(), kill_at)
    }

    /// Runs the story to its end.
    pub(crate) fn run_to_end(&self, kill_at: Option<usize>) -> WorkerEnd {
        run_worker(self.command("tell"), self.folder(), kill_at)
    }

    /// Starts a worker that runs the story to its end, and stops it on the way.
    pub(crate) fn run_and_stop(&self, name: &str, stop_at: StopAt) -> StoppedWorker {
        StoppedWorker::start(self.command("tell"), self.folder(), name, stop_at)
    }

    /// Releases the leases of a killed worker, so that no process has to wait for their expiry.
    pub(crate) async fn free_leases(&self) {
        let store = &self.stores().await.state;
        for head in store.list(&SessionFilter::default(), &Page::default()).await.unwrap() {
            if let Some(run) = head.summary.run.filter(|_| head.lease_until.is_some()) {
                store.renew(&head.session, &run, Duration::ZERO).await.unwrap();
            }
        }
    }

    /// Returns the logs of all sessions.
    pub(crate) async fn logs(&self) -> SessionReader {
        logs_of(&*self.stores().await.state).await
    }

    /// Returns the log of the scenario's session, if there is one.
    pub(crate) async fn log(&self) -> Option<Vec<RecordedEvent>> {
        self.logs().await.remove(&SessionId::from("story"))
    }

    /// Returns the whole stream of a root session, as a late reader receives it.
    pub(crate) async fn stream(&self, root: &SessionId) -> Vec<StoredChunk> {
        stream_of(&*self.stores().await.streams, root).await
    }

    /// Returns the problem if the run of a remote agent did not happen exactly once.
    pub(crate) fn remote_problem(&self) -> Result<(), String> {
        self.remote.as_ref().map_or(Ok(()), Remote::problem)
    }

    /// Returns the idempotency keys of each executed call, in order.
    pub(crate) fn trace(&self) -> Trace {
        trace_of(&self.folder().join("trace"))
    }
}

/// Returns the logs of all sessions of a store.
pub(crate) async fn logs_of(store: &dyn StateStore) -> SessionReader {
    let mut logs = BTreeMap::new();
    for head in store.list(&SessionFilter::default(), &Page::default()).await.unwrap() {
        // Folding the log checks that it is legal.
        load(store, &head.session).await.unwrap();
        let log = load_events(store, &head.session, 0).await.unwrap();
        logs.insert(head.session, log);
    }
    logs
}

/// Returns the whole stream of a root session, as a late reader receives it.
pub(crate) async fn stream_of(streams: &dyn StreamManager, root: &SessionId) -> Vec<StoredChunk> {
    use futures_util::StreamExt as _;
    let last = streams.info(root).await.unwrap().last_seq;
    let mut chunks = streams.read(root, 1).await.unwrap();
    let mut seen = Vec::new();
    while seen.last().is_none_or(|stored: &StoredChunk| stored.seq < last) {
        seen.push(chunks.next().await.unwrap().unwrap());
    }
    seen
}

/// Returns the contents of a trace file.
pub(crate) fn trace_of(file: &Path) -> Trace {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut trace = Trace::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let field = |name: &str| line.get(name).and_then(Value::as_str).unwrap().to_owned();
        trace.entry(field("call")).or_default().push(field("key"));
    }
    trace
}

/// Returns the calls that have a result in the logs, named as in the trace.
pub(crate) fn recorded_calls(logs: &SessionReader) -> Vec<String> {
    let mut calls = Vec::new();
    for (session, log) in logs {
        calls.extend(log.iter().filter_map(|recorded| match &recorded.event {
            Event::ToolFinished(finish) => Some(format!("{session}#{}", finish.call)),
            _ => None,
        }));
    }
    calls
}

/// Returns the answer of a worker.
pub(crate) fn answer(end: &WorkerEnd) -> Value {
    match serde_json::from_str(&end.stdout) {
        Ok(answer) => answer,
        Err(error) => panic!("no answer ({error}): {} {}", end.stdout, end.stderr),
    }
}

/// Writes a report for `cargo xtask e2e`, which prints all reports as one table. `holds` is the checked property.
pub(crate) fn write_report_on(
    runtime: &str,
    kind: &Kind,
    [holds, scenario, mode]: [&str; 3],
    points: &[Value],
) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/e2e");
    std::fs::create_dir_all(&folder).unwrap();
    let store = kind.name;
    let report = json!({
        "runtime": runtime,
        "store": store,
        "holds": holds,
        "scenario": scenario,
        "mode": mode,
        "fault_points": points,
    });
    let file = format!("{runtime}-{store}-{holds}-{scenario}-{mode}.json").replace(' ', "_");
    std::fs::write(folder.join(file), report.to_string()).unwrap();
}
