//! The parent process, which kills the writers and compares the results.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use helix_agents_core::store::StateStore;

use super::DurableHarness;
use super::journal::{MARK, Model, Operation, Report};
use super::writer::{FORCED, NAME, PLACE, TASKS};
use crate::rng::Rng;

/// Number of writers that are killed.
const ROUNDS: usize = 20;

/// Number of concurrent tasks of a writer.
const CONCURRENT_TASKS: usize = 3;

/// Number of reads before a difference counts as an error. A server may still execute requests that a writer
/// sent before it was killed.
const READS: usize = 10;

/// Acknowledged operations are in the store, complete and once, and the store holds nothing that was not
/// requested.
///
/// `writer` is the path of the test that [`write`](super::write)s.
pub async fn acknowledged_operations_survive_sigkill<H: DurableHarness>(harness: &H, writer: &str) {
    let mut rng = Rng::of("sigkill");
    let mut model = Model::default();
    for round in 0..ROUNDS {
        let mut process =
            Writer::start(harness, writer, &format!("r{round}"), CONCURRENT_TASKS, None);
        let mut reports = Vec::new();
        for _ in 0..=rng.below(150) {
            reports.push(process.next().unwrap());
        }
        reports.extend(process.kill());
        // The last unacknowledged operation of each task.
        let mut unacknowledged: BTreeMap<usize, Operation> = BTreeMap::new();
        for Report { task, operation, is_done, .. } in reports {
            if is_done {
                assert_eq!(unacknowledged.remove(&task).as_ref(), Some(&operation));
                model.apply(&operation);
            } else {
                unacknowledged.insert(task, operation);
            }
        }
        compare::<H>(harness, &mut model, unacknowledged.into_values().collect()).await;
    }
}

/// Asserts that the store holds the model, and each unacknowledged operation completely or not at all.
/// Repeats these operations, so that the content is known afterwards.
async fn compare<H: DurableHarness>(harness: &H, model: &mut Model, open: Vec<Operation>) {
    let store = H::open(&harness.place()).await;
    let mut problem = differs(&*store, model, &open).await;
    for _ in 1..READS {
        if problem.is_none() {
            break;
        }
        problem = differs(&*store, model, &open).await;
    }
    assert!(problem.is_none(), "{}; not acknowledged: {open:?}", problem.unwrap());
    for operation in &open {
        operation.execute(&*store).await;
        model.apply(operation);
    }
    let found = Model::read(&*store).await;
    assert_eq!(found.as_ref(), Ok(&*model), "after {open:?} were repeated");
}

/// Returns how a store differs from the model, where each of these operations may have taken effect or not.
async fn differs(store: &dyn StateStore, model: &Model, open: &[Operation]) -> Option<String> {
    let found = match Model::read(store).await {
        Ok(found) => found,
        Err(problem) => return Some(problem),
    };
    let mut expected = model.clone();
    for operation in open {
        let session = operation.session();
        let with = model.with(operation);
        if found.of(session.as_str()) == with.of(session.as_str()) {
            expected.apply(operation);
        }
    }
    (found != expected).then(|| format!("found {found:?}, expected {expected:?}"))
}

/// The store forces a write to disk between the request and the reply of each append, creation and fork.
/// Counts the system calls of the writer. Requires Linux and a C compiler.
///
/// Does nothing for a store that leaves this to a server.
///
/// # Panics
/// If the store forces its writes itself and the counter cannot be compiled.
pub async fn acknowledged_writes_were_forced_to_the_disk<H: DurableHarness>(
    harness: &H,
    writer: &str,
) {
    const ANSWERS: usize = 60;
    if !harness.forces_writes() || cfg!(not(target_os = "linux")) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let counter = compile(scratch.path());
    let counting = Some((counter, scratch.path().join("forced")));
    let mut process = Writer::start(harness, writer, "forced", 1, counting);
    let mut answers = 0;
    while answers < ANSWERS {
        let report = process.next().unwrap();
        if report.is_done && report.operation.is_promised() {
            let forced = report.forced.unwrap();
            assert!(forced > 0, "acknowledged before it was forced to disk: {report:?}");
            answers += 1;
        }
    }
    process.kill();
}

/// Compiles the library that counts the forced writes of a process.
fn compile(folder: &Path) -> PathBuf {
    let (source, library) = (folder.join("forced_writes.c"), folder.join("forced_writes.so"));
    std::fs::write(&source, include_str!("forced_writes.c")).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
    let output = compiler.output();
    let output = output.unwrap_or_else(|error| panic!("a C compiler is needed as `cc`: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

/// A running writer process.
struct Writer {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Writer {
    fn start<H: DurableHarness>(
        harness: &H,
        writer: &str,
        name: &str,
        tasks: usize,
        counting: Option<(PathBuf, PathBuf)>,
    ) -> Self {
        // The name of a test does not include its crate.
        let (_, test) = writer.split_once("::").unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(PLACE, harness.place())
            .env(NAME, name)
            .env(TASKS, tasks.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if let Some((library, forced)) = counting {
            command.env("LD_PRELOAD", library).env(FORCED, forced);
        }
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Returns the next report, or `None` if the writer has ended.
    fn next(&mut self) -> Option<Report> {
        self.lines.by_ref().map_while(Result::ok).find_map(|line| report(&line))
    }

    /// Kills the writer with SIGKILL and returns its remaining reports.
    fn kill(mut self) -> Vec<Report> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::iter::from_fn(|| self.next()).collect()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The writer has already ended, unless the scenario failed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Parses the report in a line. A killed writer may leave an incomplete line.
fn report(line: &str) -> Option<Report> {
    serde_json::from_str(line.strip_prefix(MARK)?).ok()
}
