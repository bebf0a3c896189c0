//! Workers in a scratch folder, and what they left behind.

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

/// Log of each session.
pub(crate) type SessionReader = BTreeMap<SessionId, Vec<RecordedEvent>>;

/// Names of sessions and calls in the trace, with the keys under which they were executed.
pub(crate) type Trace = BTreeMap<String, Vec<String>>;

/// Whether a test is among those that also plain runs of all tests, as in CI, do on servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    Everywhere,
    Sqlite,
}

/// How much of a test is done on a kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// On a server, if nothing was said: only tests that are `On::Everywhere`, and less of them.
    Sample,
    /// On SQLite, and where `HELIX_STORE` asks for it.
    Usual,
    /// With `HELIX_FULL=1`.
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

/// The kind of store, if the test is wanted there: `HELIX_STORE` names a kind or `all`, and
/// `HELIX_FULL=1` means all; `cargo xtask e2e` sets them.
pub(crate) fn wanted(store: &str, on: On) -> Option<&'static Kind> {
    let kind = Kind::named(store).unwrap();
    match std::env::var("HELIX_STORE").as_deref() {
        Ok("all") => Some(kind),
        Ok(name) => (Kind::named(name).unwrap().name == store).then_some(kind),
        Err(_) => (on == On::Everywhere || Extent::on(kind) > Extent::Sample).then_some(kind),
    }
}

/// Tests for each kind of store, in modules of these names.
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

/// The runtime that most tests are about.
const LOCAL: &str = "local";

/// One scenario in a folder of its own.
pub(crate) struct Story {
    opened: OnceCell<Stores>,
    runtime: String,
    place: Place,
    folder: tempfile::TempDir,
    scenario: &'static str,
    mode: &'static str,
    lease_ms: Option<u64>,
    env: Vec<(&'static str, String)>,
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
        let (opened, lease_ms, env) = (OnceCell::new(), None, Vec::new());
        Self { opened, runtime, place, folder, scenario, mode, lease_ms, env }
    }

    /// Workers' leases run out in so short a time that it can be waited for.
    pub(crate) fn with_short_leases(mut self) -> Self {
        // An engine's server has its say in between, and gives a part to another worker when as much time has passed. Whoever
        // comes so late to a busy machine takes the run over.
        self.lease_ms = Some(if self.runtime == "local:" { 300 } else { 8000 });
        self
    }

    /// How long the leases of its workers are, if they are [short](Self::with_short_leases).
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms.unwrap())
    }

    /// Sets a variable of the environment of all workers.
    pub(crate) fn with_env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The stores as this process sees them, from the first look on.
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

    /// Tells all of it.
    pub(crate) fn tell(&self, kill_at: Option<usize>) -> WorkerEnd {
        run_worker(self.command("tell"), self.folder(), kill_at)
    }

    /// Starts a worker that tells all of it, and stops it on the way.
    pub(crate) fn tell_and_stop(&self, name: &str, stop_at: StopAt) -> StoppedWorker {
        StoppedWorker::start(self.command("tell"), self.folder(), name, stop_at)
    }

    /// Nobody has to wait for the leases of a worker that is dead.
    pub(crate) async fn free_leases(&self) {
        let store = &self.stores().await.state;
        for head in store.list(&SessionFilter::default(), &Page::default()).await.unwrap() {
            if let Some(run) = head.summary.run.filter(|_| head.lease_until.is_some()) {
                store.renew(&head.session, &run, Duration::ZERO).await.unwrap();
            }
        }
    }

    /// The logs of all sessions.
    pub(crate) async fn logs(&self) -> SessionReader {
        logs_of(&*self.stores().await.state).await
    }

    /// The log of the scenario's session, if there is one.
    pub(crate) async fn log(&self) -> Option<Vec<RecordedEvent>> {
        self.logs().await.remove(&SessionId::from("story"))
    }

    /// The whole stream of a root, as a late reader gets it.
    pub(crate) async fn stream(&self, root: &SessionId) -> Vec<StoredChunk> {
        stream_of(&*self.stores().await.streams, root).await
    }

    /// For each call the keys under which it was executed, in order.
    pub(crate) fn trace(&self) -> Trace {
        trace_of(&self.folder().join("trace"))
    }
}

/// The logs of all sessions of a store.
pub(crate) async fn logs_of(store: &dyn StateStore) -> SessionReader {
    let mut logs = BTreeMap::new();
    for head in store.list(&SessionFilter::default(), &Page::default()).await.unwrap() {
        // Folding it shows that it is legal.
        load(store, &head.session).await.unwrap();
        let log = load_events(store, &head.session, 0).await.unwrap();
        logs.insert(head.session, log);
    }
    logs
}

/// The whole stream of a root, as a late reader gets it.
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

/// What a trace file says.
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

/// The calls that have a result in the logs, as the trace names them.
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

/// What a worker answered.
pub(crate) fn answer(end: &WorkerEnd) -> Value {
    match serde_json::from_str(&end.stdout) {
        Ok(answer) => answer,
        Err(error) => panic!("no answer ({error}): {} {}", end.stdout, end.stderr),
    }
}

/// For `cargo xtask e2e`, which prints all reports as one table. `holds` is what was looked at.
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
