//! Random trees of agents: in real processes that are really killed, and over a network that loses
//! what is said.
//!
//! `HELIX_SEED=N` tells one story again, `HELIX_SEEDS=N` the first N; `cargo xtask e2e` sets them.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt as _;
use helix_agents_testkit::chaos::ChaosStore;
use helix_agents_testkit::kill::run_worker;
use helix_agents_testkit::trees::{Process, Redelivery, Rng, Stats, Story};
use helix_agents_tests_e2e::runtimes;
use helix_agents_tests_e2e::stores::{self, Kind};
use helix_agents_tests_e2e::trees::{again, boot};
use serde_json::{Value, json};

use crate::support::{on_each_store, write_report_on};
use crate::sweep::{BESIDE, blocking};

/// How many stories with real processes are told in CI.
const KILLED: u64 = 50;

/// How many of them on an engine.
const ON_ENGINES: u64 = 12;

/// How many stories on a bad network are told in CI, on each store.
const DISTURBED: u64 = 20;

/// The runtime of stories in one process.
const LOCAL: &str = "local:";

/// The fault points at which processes of a story were killed, and what came of it.
struct Told {
    killed_at: Vec<String>,
    end: Result<Stats, String>,
}

fn command(runtime: &str, seed: u64, number: usize, url: &str, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_helix-e2e-worker"));
    command.args(["live", &seed.to_string(), &number.to_string()]);
    command.arg(url).arg(folder).env("HELIX_RUNTIME", runtime);
    command
}

/// Some processes that are killed at fault points, and one that is not.
fn tell(runtime: &str, kind: &Kind, seed: u64) -> Told {
    let runtime = runtimes::Kind::named(runtime).unwrap().place();
    let folder = tempfile::tempdir().unwrap();
    let place = kind.place(folder.path());
    let mut dice = Rng::of((seed, "kills"));
    let mut killed_at = Vec::new();
    let deaths = 1 + dice.below(4);
    for number in 1..=deaths + 1 {
        let kill_at = (number <= deaths).then(|| 1 + dice.below(150));
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
        return Told { killed_at, end: Err(wrong) };
    }
    let end = blocking().block_on(async {
        let stores = stores::open(&place.url).await.unwrap();
        let again = again(&runtime);
        let outlived = if again == Redelivery::Never { 0 } else { killed_at.len() };
        Story::new(seed).check(&stores, again, outlived, folder.path()).await
    });
    Told { killed_at, end }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// One process, in which others are played, on a store whose every third answer is late, lost or
/// came twice.
fn tell_disturbed(kind: &Kind, seed: u64) -> Told {
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
    Told { killed_at: Vec::new(), end }
}

on_each_store! {
    Sqlite a_tree_survives_its_processes(kind) {
        super::survive_their_processes("local", kind, super::KILLED)
    }

    Everywhere a_tree_survives_a_bad_network(kind) {
        super::all_told(super::DISTURBED, |seed| super::tell_disturbed(kind, seed), |_| {});
    }
}

/// Tests of an engine, in a module of its name.
macro_rules! on_engine {
    ($runtime:ident) => {
        mod $runtime {
            use super::*;

            on_each_store! {
                Sqlite a_tree_survives_its_processes(kind) {
                    crate::trees::survive_their_processes(
                        stringify!($runtime), kind, crate::trees::ON_ENGINES,
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
    all_told(usual, |seed| tell(runtime, kind, seed), report);
}

/// Tells the stories, and reports the points at which processes were killed.
#[expect(clippy::print_stdout, reason = "how much happened in the stories")]
fn all_told(usual: u64, tell: impl Fn(u64) -> Told + Sync, report: impl Fn(&[Value])) {
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
            all.push((seed, tell(seed)));
        }
    };
    // Stories wait much: for each other's leases, and for their moves.
    let told: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..BESIDE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let mut points = Vec::new();
    let mut problems = Vec::new();
    let mut sum = Stats::default();
    for (seed, Told { killed_at, end }) in told {
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
