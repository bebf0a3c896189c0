//! Random trees of agents: in processes that are killed, and over an unreliable network.
//!
//! `HELIX_SEED=N` runs one story again, `HELIX_SEEDS=N` the first N. `cargo xtask e2e` sets them.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt as _;
use helix_agents_conformance::chaos::ChaosStore;
use helix_agents_conformance::rng::Rng;
use helix_agents_testkit::kill::run_worker;
use helix_agents_testkit::trees::{Process, Redelivery, Stats, Story};
use helix_agents_tests_e2e::runtimes;
use helix_agents_tests_e2e::stores::{self, Kind};
use helix_agents_tests_e2e::trees::{boot, redelivery};
use serde_json::{Value, json};

use crate::support::{on_each_store, write_report_on};
use crate::sweep::{CONCURRENCY, blocking};

/// The number of stories with killed processes in CI.
const KILLED_STORIES: u64 = 50;

/// The number of these stories on an engine.
const ENGINE_STORIES: u64 = 12;

/// The number of stories on an unreliable network in CI, on each store.
const DISTURBED_STORIES: u64 = 20;

/// The runtime of stories in one process.
const LOCAL: &str = "local:";

/// The outcome of a story, and the fault points at which its processes were killed.
struct Outcome {
    killed_at: Vec<String>,
    end: Result<Stats, String>,
}

fn command(runtime: &str, seed: u64, number: usize, url: &str, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_helix-e2e-worker"));
    command.args(["live", &seed.to_string(), &number.to_string()]);
    command.arg(url).arg(folder).env("HELIX_RUNTIME", runtime);
    command
}

/// Runs a story with some processes that are killed at fault points, and one that is not.
fn run_killed(runtime: &str, kind: &Kind, seed: u64) -> Outcome {
    let runtime = runtimes::Kind::named(runtime).unwrap().place();
    let folder = tempfile::tempdir().unwrap();
    let place = kind.place(folder.path());
    let mut rng = Rng::of((seed, "kills"));
    let mut killed_at = Vec::new();
    let deaths = 1 + rng.below(4);
    for number in 1..=deaths + 1 {
        let kill_at = (number <= deaths).then(|| 1 + rng.below(150));
        let command = command(&runtime, seed, number, &place.url, folder.path());
        let end = run_worker(command, folder.path(), kill_at);
        if end.was_killed() {
            killed_at.extend(end.points.last().cloned());
            continue;
        }
        let said: Result<Value, _> = serde_json::from_str(&end.stdout);
        let wrong = match &said {
            Ok(said) if said["wrong"] == "" => continue,
            Ok(said) => said["wrong"].as_str().unwrap_or_default().to_owned(),
            Err(_) => format!("no answer: {} {}", end.stdout, end.stderr),
        };
        return Outcome { killed_at, end: Err(wrong) };
    }
    let end = blocking().block_on(async {
        let stores = stores::open(&place.url).await.unwrap();
        let redelivery = redelivery(&runtime);
        let engine_recoveries = if redelivery == Redelivery::Never { 0 } else { killed_at.len() };
        Story::new(seed).check(&stores, redelivery, engine_recoveries, folder.path()).await
    });
    Outcome { killed_at, end }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Runs a story with several simulated processes in this one, on a store where every third answer is late, lost or
/// duplicated.
fn run_disturbed(kind: &Kind, seed: u64) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let place = kind.place(folder.path());
    let boot = move |process: Process| {
        let store = Arc::new(ChaosStore::new(Arc::clone(&process.store), seed));
        boot(LOCAL, Process { store, ..process })
    };
    let url = place.url.clone();
    let open = move || {
        let url = url.clone();
        async move { stores::open(&url).await.unwrap() }.boxed()
    };
    let end = blocking().block_on(Story::new(seed).run(&open, &boot));
    Outcome { killed_at: Vec::new(), end }
}

on_each_store! {
    Sqlite a_tree_survives_its_processes(kind) {
        super::survive_their_processes("local", kind, super::KILLED_STORIES)
    }

    Everywhere a_tree_survives_a_bad_network(kind) {
        super::run_all(super::DISTURBED_STORIES, |seed| super::run_disturbed(kind, seed), |_| {});
    }
}

/// Defines the tests of an engine, in a module with its name.
macro_rules! on_engine {
    ($runtime:ident) => {
        mod $runtime {
            use super::*;

            on_each_store! {
                Sqlite a_tree_survives_its_processes(kind) {
                    crate::trees::survive_their_processes(
                        stringify!($runtime), kind, crate::trees::ENGINE_STORIES,
                    )
                }
            }
        }
    };
}

on_engine!(durable);
on_engine!(temporal);

fn survive_their_processes(runtime: &str, kind: &Kind, usual: u64) {
    let report = |points: &[_]| {
        write_report_on(runtime, kind, ["kill matrix", "random trees", "both"], points);
    };
    run_all(usual, |seed| run_killed(runtime, kind, seed), report);
}

/// Runs the stories, and reports the fault points at which processes were killed.
#[expect(clippy::print_stdout, reason = "prints the statistics of the stories")]
fn run_all(usual: u64, run: impl Fn(u64) -> Outcome + Sync, report: impl Fn(&[Value])) {
    let (first, count) = match number("HELIX_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("HELIX_SEEDS").unwrap_or(usual)),
    };
    let next = AtomicU64::new(first);
    let work = || {
        let mut all = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                return all;
            }
            all.push((seed, run(seed)));
        }
    };
    // Stories wait most of the time, for leases and between their actions.
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CONCURRENCY).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let mut points = Vec::new();
    let mut problems = Vec::new();
    let mut sum = Stats::default();
    for (seed, Outcome { killed_at, end }) in outcomes {
        let ok = end.is_ok();
        points.extend(killed_at.iter().map(|point| json!({ "name": point, "ok": ok })));
        sum.deaths += killed_at.len();
        match end {
            Ok(tally) => sum += tally,
            Err(problem) => problems.push(format!("HELIX_SEED={seed} {killed_at:?}\n{problem}")),
        }
    }
    println!("{count} stories: {sum:?}");
    report(&points);
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}
