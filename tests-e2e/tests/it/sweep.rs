//! Going through all fault points of a scenario, some of them side by side.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};

use helix_agents_tests_e2e::stores::Kind;
use serde_json::json;

use crate::support::write_report;

/// How often workers of a sweep run side by side: there is always one that waits for a disk.
const BESIDE: usize = 4;

pub(crate) fn blocking() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Does it for each point: where a worker is killed, and that point's name. Reports what came of it
/// under what was looked at, the scenario and the mode.
pub(crate) fn sweep<T: Sync + Debug>(
    kind: &Kind,
    told: [&str; 3],
    points: &[(T, String)],
    problem: impl Fn(&T) -> Result<(), String> + Sync,
) {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut outcomes = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((point, _)) = points.get(index) else { return outcomes };
            outcomes.push((index, problem(point)));
        }
    };
    let mut outcomes: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..BESIDE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    outcomes.sort_by_key(|(index, _)| *index);
    let mut report = Vec::new();
    let mut problems = Vec::new();
    for ((_, outcome), (kill_at, point)) in outcomes.into_iter().zip(points) {
        report.push(json!({ "name": point, "ok": outcome.is_ok() }));
        problems.extend(outcome.err().map(|text| format!("{kill_at:?} {point}: {text}")));
    }
    write_report(kind, told, &report);
    let (wrong, all) = (problems.len(), report.len());
    assert!(problems.is_empty(), "{wrong} of {all}:\n{}", problems.join("\n"));
}
