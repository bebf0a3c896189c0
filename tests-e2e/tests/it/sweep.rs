//! Going through all fault points of a scenario, some of them side by side.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, LazyLock, Mutex};

use helix_agents_tests_e2e::stores::Kind;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::support::write_report_on;

/// How often workers of a sweep run side by side: there is always one that waits for a disk.
pub(crate) const BESIDE: usize = 4;

/// The executor of a test. It lives on, and with it the connections that a story's store was opened on.
pub(crate) fn blocking() -> &'static Runtime {
    static EXECUTOR: LazyLock<Runtime> = LazyLock::new(|| {
        Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    });
    &EXECUTOR
}

/// How many processes of one test may live at once: each has connections to a server, and there
/// are two processors at least.
const MOST: usize = 40;

/// Room for some processes, until it is dropped.
pub(crate) struct Room(usize);

static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

impl Room {
    /// Waits until there is some.
    pub(crate) fn of(processes: usize) -> Self {
        let taken = TAKEN.lock().unwrap();
        let mut taken = FREED.wait_while(taken, |running| *running > 0 && *running + processes > MOST).unwrap();
        *taken += processes;
        Self(processes)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap() -= self.0;
        FREED.notify_all();
    }
}

/// Does it for each point: where a worker is killed, and that point's name. Reports what came of
/// each thing that was looked at, in that scenario and mode.
pub(crate) fn sweep<T: Sync + Debug, const N: usize>(
    kind: &Kind,
    holds: [&str; N],
    told: [&str; 2],
    points: &[(T, String)],
    problems: impl Fn(&T) -> [Result<(), String>; N] + Sync,
) {
    sweep_on("local", kind, holds, told, points, problems);
}

/// The same on a runtime.
pub(crate) fn sweep_on<T: Sync + Debug, const N: usize>(
    runtime: &str,
    kind: &Kind,
    holds: [&str; N],
    told: [&str; 2],
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
        let workers: Vec<_> = (0..BESIDE).map(|_| scope.spawn(work)).collect();
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
        write_report_on(runtime, kind, [holds, told[0], told[1]], &report);
    }
    let (wrong, all) = (problems.len(), points.len() * N);
    assert!(problems.is_empty(), "{wrong} of {all}:\n{}", problems.join("\n"));
}
