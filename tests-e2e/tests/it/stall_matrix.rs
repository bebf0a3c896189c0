//! A worker stands still for longer than its lease: at each fault point of every scenario, and at random moments. Another
//! process takes over, and the worker continues as if nothing had happened.
//!
//! SIGKILL ends a process that had the session. SIGSTOP leaves one that still believes it has: a paused
//! virtual machine, a laptop that was closed, a process that swaps. It must notice before it acts.
//! Nothing of what it still does may show, in logs or streams.
//!
//! `HELIX_SEED=N` repeats the stall of one seed, `HELIX_SEEDS=N` makes the first N.

use std::collections::BTreeMap;
use std::time::Duration;

use helix_agents_testkit::kill::{StopAt, WorkerEnd};
use helix_agents_testkit::trees::Rng;
use helix_agents_tests_e2e::stores::Kind;
use serde_json::Value;

use crate::kill_matrix::{Expected, Recorded, told};
use crate::support::{Extent, Story, answer, on_each_store};
use crate::sweep::{blocking, sweep_on};

/// Appends as they happen have the most places to stop at.
const MODE: &str = "per_effect";

/// How a worker may report that another one has the session.
const REPLACED: [&str; 6] = [
    "superseded",
    "store_unavailable",
    "already_resumed",
    "already_running",
    "nothing_to_resume",
    "suspended",
];

/// At how many fault points a worker stops. On an engine each takeover takes as long as a lease of eight seconds, and on
/// Temporal also as long as the parts are away that the server handed to the worker that stands still.
fn points_of(runtime: &str, kind: &Kind) -> usize {
    match (runtime, Extent::on(kind)) {
        (_, Extent::Full) => usize::MAX,
        ("local", Extent::Usual) => 16,
        ("local", Extent::Sample) => 6,
        (_, Extent::Usual) => 4,
        (_, Extent::Sample) => 2,
    }
}

/// How many stalls at random moments there are.
fn seeds_of(runtime: &str, kind: &Kind) -> Vec<u64> {
    let number = |name| std::env::var(name).ok().map(|number| number.parse().unwrap());
    if let Some(seed) = number("HELIX_SEED") {
        return vec![seed];
    }
    let usual = match (runtime, Extent::on(kind)) {
        ("local", Extent::Full) => 200,
        ("local", Extent::Usual) => 16,
        (_, Extent::Full) => 60,
        (_, Extent::Usual) => 8,
        (_, Extent::Sample) => 4,
    };
    (0..number("HELIX_SEEDS").unwrap_or(usual)).collect()
}

/// When the worker wakes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wakes {
    /// After its successor has completed the story.
    Late,
    /// While its successor stands still in the middle of it, at this fault point.
    Between(usize),
    /// Together with a successor that stood still at this fault point.
    Beside(usize),
}

impl Wakes {
    fn of(number: usize) -> Self {
        let point = 2 + number % 7;
        match number % 3 {
            0 => Self::Late,
            1 => Self::Between(point),
            _ => Self::Beside(point),
        }
    }
}

/// How long a worker may run while its successor stands still: it may have to wait for that one.
const ALONE: Duration = Duration::from_secs(2);

/// What is wrong with the story after a worker stood still, if anything is.
async fn problem(
    story: Story,
    scenario: &str,
    stop_at: StopAt,
    wakes: Wakes,
    expected: &Expected,
) -> Result<(), String> {
    let stopped = story.tell_and_stop("stopped", stop_at);
    let before = Recorded::of(&story).await;
    let (successor, stalls) = match wakes {
        Wakes::Late => (story.tell(None), 1),
        Wakes::Between(point) | Wakes::Beside(point) => {
            let successor = story.tell_and_stop("successor", StopAt::Point(point));
            stopped.wake();
            if wakes == Wakes::Between(point) {
                // Either is fine: the worker may have to wait for its successor.
                let (true | false) = stopped.ends_within(ALONE);
            }
            successor.wake();
            (successor.end(), 2)
        }
    };
    stopped.wake();
    let (stopped, successor) =
        (fits("the worker", &stopped.end()), fits("its successor", &successor));
    match (stopped, successor) {
        (Ok(()), Ok(())) => before.problem(&story, scenario, expected, stalls).await,
        (Err(one), Err(other)) => Err(format!("{one}\n{other}")),
        (Err(problem), Ok(())) | (Ok(()), Err(problem)) => Err(problem),
    }
}

/// Whether a worker completed the story, or reports that another one has it.
pub(crate) fn fits(who: &str, end: &WorkerEnd) -> Result<(), String> {
    let answer: Value = serde_json::from_str(&end.stdout).unwrap_or_default();
    let field = |name| answer.get(name).and_then(Value::as_str);
    let is_fine = field("status") == Some("completed")
        || field("code").is_some_and(|code| REPLACED.contains(&code));
    let passed = end.points.join(" ");
    is_fine
        .then_some(())
        .ok_or_else(|| format!("{who} ended with {answer} after {passed}: {}", end.stderr))
}

/// The story that nothing disturbs, with the fault points that it passes.
pub(crate) fn undisturbed(
    runtime: &str,
    kind: &'static Kind,
    scenario: &'static str,
) -> (Expected, Vec<String>) {
    let story = Story::on(runtime, kind, scenario, MODE);
    let whole = story.tell(None);
    assert_eq!(answer(&whole).get("status").unwrap(), "completed", "{}", whole.stderr);
    (blocking().block_on(told(&story)), whole.points)
}

fn stalled(runtime: &str, kind: &'static Kind, scenario: &'static str) -> Story {
    Story::on(runtime, kind, scenario, MODE).with_short_leases()
}

/// A worker stands still at fault points of a scenario.
fn matrix(runtime: &'static str, kind: &'static Kind, scenario: &'static str) {
    let (expected, points) = undisturbed(runtime, kind, scenario);
    let points: Vec<_> = (1..).zip(points).collect();
    let every = points.len().div_ceil(points_of(runtime, kind)).max(1);
    // A stride that is no multiple of three meets all ways to wake up.
    let every = if every % 3 == 0 { every + 1 } else { every };
    let points: Vec<_> = points.into_iter().skip(every / 2).step_by(every).collect();
    sweep_on(runtime, kind, ["stall matrix"], [scenario, MODE], &points, |stop_at| {
        let (story, stop_at, wakes) =
            (stalled(runtime, kind, scenario), StopAt::Point(*stop_at), Wakes::of(*stop_at));
        [blocking().block_on(problem(story, scenario, stop_at, wakes, &expected))]
    });
}

/// Scenarios of which one is chosen for each random moment.
const SCENARIOS: [&str; 6] = ["plain", "parallel", "at_most_once", "people", "child", "companion"];

/// The longest time between a fault point and a random moment after it: much happens in that time.
const DELAY_MICROS: usize = 10_000;

/// A worker stands still at random moments of random scenarios.
fn moments(runtime: &'static str, kind: &'static Kind) {
    let seeds: Vec<_> =
        seeds_of(runtime, kind).into_iter().map(|seed| (seed, format!("seed {seed}"))).collect();
    let scenario_of = |seed: u64| SCENARIOS[Rng::of((seed, "the scenario")).below(SCENARIOS.len())];
    let mut expected = BTreeMap::new();
    for (seed, _) in &seeds {
        let scenario = scenario_of(*seed);
        expected.entry(scenario).or_insert_with(|| undisturbed(runtime, kind, scenario));
    }
    sweep_on(runtime, kind, ["stalls at random moments"], ["all", MODE], &seeds, |seed| {
        let scenario = scenario_of(*seed);
        let (expected, points) = &expected[scenario];
        let mut dice = Rng::of((*seed, "the moment"));
        let point = dice.below(points.len());
        let delay = u64::try_from(dice.below(DELAY_MICROS)).unwrap();
        let stop_at = StopAt::After { point, delay: Duration::from_micros(delay) };
        let wakes = Wakes::of(dice.below(21));
        let told = problem(stalled(runtime, kind, scenario), scenario, stop_at, wakes, expected);
        let again = format!("HELIX_SEED={seed}: {scenario}, {stop_at:?}, {wakes:?}");
        [blocking().block_on(told).map_err(|problem| format!("{again}: {problem}"))]
    });
}

on_each_store! {
    Everywhere plain_tools(kind) { super::matrix("local", kind, "plain") }
    Everywhere at_most_once(kind) { super::matrix("local", kind, "at_most_once") }
    Sqlite parallel_tools(kind) { super::matrix("local", kind, "parallel") }
    Sqlite people_answer(kind) { super::matrix("local", kind, "people") }
    Sqlite a_child_works(kind) { super::matrix("local", kind, "child") }
    Sqlite a_companion_answers(kind) { super::matrix("local", kind, "companion") }
    Sqlite a_fork_is_made(kind) { super::matrix("local", kind, "fork") }
    Sqlite a_rewind_continues(kind) { super::matrix("local", kind, "rewind") }
    Everywhere random_moments(kind) { super::moments("local", kind) }
}

/// Tests of an engine, in a module of its name.
macro_rules! on_engine {
    ($runtime:ident) => {
        mod $runtime {
            use super::*;

            on_each_store! {
                Everywhere plain_tools(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "plain") }
                Sqlite at_most_once(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "at_most_once") }
                Sqlite parallel_tools(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "parallel") }
                Sqlite people_answer(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "people") }
                Sqlite a_child_works(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "child") }
                Sqlite a_companion_answers(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "companion") }
                Sqlite a_rewind_continues(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "rewind") }
                Sqlite random_moments(kind) { crate::stall_matrix::moments(stringify!($runtime), kind) }
            }
        }
    };
}

on_engine!(durable);
on_engine!(temporal);
