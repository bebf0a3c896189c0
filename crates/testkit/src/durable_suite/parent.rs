//! The process that kills, and compares.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use helix_agents_core::store::StateStore;

use super::DurableHarness;
use super::journal::{MARK, Model, Operation, Report};
use super::writer::{FORCED, NAME, PLACE, TASKS};
use crate::trees::Dice;

/// How many writers are killed.
const ROUNDS: usize = 20;

/// How many tasks of a writer write beside each other.
const BESIDE: usize = 3;

/// How often a store is looked at before it counts as different: a server may still carry out what a
/// writer sent before it was killed.
const LOOKS: usize = 10;

/// What a writer was told is there, whole and once, and nothing that it did not ask for.
///
/// `writer` is the path of the test that [`write`](super::write)s.
pub async fn acknowledged_operations_survive_sigkill<H: DurableHarness>(harness: &H, writer: &str) {
    let mut dice = Dice::of("sigkill");
    let mut model = Model::default();
    for round in 0..ROUNDS {
        let mut process = Writer::start(harness, writer, &format!("r{round}"), BESIDE, None);
        let mut reports = Vec::new();
        for _ in 0..=dice.below(150) {
            reports.push(process.next().unwrap());
        }
        reports.extend(process.kill());
        // What each task asked for last, if it was not answered.
        let mut asked: BTreeMap<usize, Operation> = BTreeMap::new();
        for Report { task, operation, is_done, .. } in reports {
            if is_done {
                assert_eq!(asked.remove(&task).as_ref(), Some(&operation));
                model.apply(&operation);
            } else {
                asked.insert(task, operation);
            }
        }
        compare::<H>(harness, &mut model, asked.into_values().collect()).await;
    }
}

/// That the store holds the model, and of each operation that was not answered all or nothing. Asks
/// for these again, so that it is known what is there.
async fn compare<H: DurableHarness>(harness: &H, model: &mut Model, open: Vec<Operation>) {
    let store = H::open(&harness.place()).await;
    let mut problem = differs(&*store, model, &open).await;
    for _ in 1..LOOKS {
        if problem.is_none() {
            break;
        }
        problem = differs(&*store, model, &open).await;
    }
    assert!(problem.is_none(), "{}; not answered: {open:?}", problem.unwrap());
    for operation in &open {
        operation.ask(&*store).await;
        model.apply(operation);
    }
    let found = Model::read(&*store).await;
    assert_eq!(found.as_ref(), Ok(&*model), "after {open:?} were asked for again");
}

/// How a store differs from the model, where each of these operations may have taken place or not.
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

/// Between the question and the answer to each append, creation and fork, something was forced to the
/// disk. Counted by the system calls of the writer, on Linux, with a C compiler.
///
/// It does nothing for a store that leaves this to a server.
///
/// # Panics
/// If the store forces its writes itself, and the counter cannot be compiled.
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
            assert!(forced > 0, "answered before it was forced to the disk: {report:?}");
            answers += 1;
        }
    }
    process.kill();
}

/// Compiles what counts the forced writes of a process.
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

/// A writer that runs.
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
        // The name of a test has no crate in it.
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

    /// The next report; none if the writer has ended.
    fn next(&mut self) -> Option<Report> {
        self.lines.by_ref().map_while(Result::ok).find_map(|line| report(&line))
    }

    /// SIGKILL, wherever it is at that moment. Returns what it had still reported.
    fn kill(mut self) -> Vec<Report> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::iter::from_fn(|| self.next()).collect()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // It has ended, unless the scenario failed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The report in a line. A writer that is killed may leave a line unfinished.
fn report(line: &str) -> Option<Report> {
    serde_json::from_str(line.strip_prefix(MARK)?).ok()
}
