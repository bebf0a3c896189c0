//! Tests all fault points of a scenario, some of them concurrently.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, LazyLock, Mutex};

use helix_agents_tests_e2e::stores::Kind;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::support::write_report_on;

/// The number of fault points that are tested concurrently: some worker always waits for a disk.
pub(crate) const CONCURRENCY: usize = 4;

/// Returns the executor of the tests. It is never dropped, and neither are the connections of the stores that were
/// opened on it.
pub(crate) fn blocking() -> &'static Runtime {
    static EXECUTOR: LazyLock<Runtime> = LazyLock::new(|| {
        Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    });
    &EXECUTOR
}

/// The maximum number of concurrent processes of one test. Each has connections to a server, and there are at least two
/// processors.
const MAX_PROCESSES: usize = 40;

/// A permit for some processes, until it is dropped.
pub(crate) struct ProcessPermit(usize);

static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

impl ProcessPermit {
    /// Waits until enough permits are available.
    pub(crate) fn of(processes: usize) -> Self {
        let taken = TAKEN.lock().unwrap();
        let mut taken = FREED
            .wait_while(taken, |running| *running > 0 && *running + processes > MAX_PROCESSES)
            .unwrap();
        *taken += processes;
        Self(processes)
    }
}

impl Drop for ProcessPermit {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap() -= self.0;
        FREED.notify_all();
    }
}

/// Checks each fault point on the local runtime and reports the outcome of each property in this scenario and mode. A
/// point has the argument of `problems` and a name.
pub(crate) fn sweep<T: Sync + Debug, const N: usize>(
    kind: &Kind,
    holds: [&str; N],
    story: [&str; 2],
    points: &[(T, String)],
    problems: impl Fn(&T) -> [Result<(), String>; N] + Sync,
) {
    sweep_on("local", kind, holds, story, points, problems);
}

/// Checks each fault point on this runtime.
pub(crate) fn sweep_on<T: Sync + Debug, const N: usize>(
    runtime: &str,
    kind: &Kind,
    holds: [&str; N],
    story: [&str; 2],
    points: &[(T, String)],
    problems: impl Fn(&T) -> [Result<(), String>; N] + Sync,
) {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut outcomes = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((point, _)) = points.get(index) else { return outcomes };
            outcomes.push((index, problems(point)));
        }
    };
    let mut outcomes: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CONCURRENCY).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    outcomes.sort_by_key(|(index, _)| *index);
    let mut problems = Vec::new();
    for (number, holds) in holds.into_iter().enumerate() {
        let mut report = Vec::new();
        for ((_, outcomes), (kill_at, point)) in outcomes.iter().zip(points) {
            let outcome = &outcomes[number];
            report.push(json!({ "name": point, "ok": outcome.is_ok() }));
            let problem = outcome.as_ref().err();
            problems.extend(problem.map(|text| format!("{holds}, {kill_at:?} {point}: {text}")));
        }
        write_report_on(runtime, kind, [holds, story[0], story[1]], &report);
    }
    let (wrong, all) = (problems.len(), points.len() * N);
    assert!(problems.is_empty(), "{wrong} of {all} failed:\n{}", problems.join("\n"));
}
