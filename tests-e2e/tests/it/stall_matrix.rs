//! A worker is stopped for longer than its lease: at fault points of the scenarios, and at random moments. Another
//! process takes over, and the worker continues as if nothing had happened.
//!
//! SIGKILL ends the process that owned the session. SIGSTOP leaves a process that still believes it is the owner, like
//! a paused virtual machine, a closed laptop, or a process that swaps. It must notice the takeover before it acts. None
//! of its later actions may show in logs or streams.
//!
//! `HELIX_SEED=N` repeats the stall of one seed, `HELIX_SEEDS=N` runs the first N.

use std::collections::BTreeMap;
use std::time::Duration;

use helix_agents_conformance::rng::Rng;
use helix_agents_testkit::kill::{StopAt, WorkerEnd};
use helix_agents_tests_e2e::stores::Kind;
use serde_json::Value;

use crate::kill_matrix::{Expected, Recorded, read_outcome};
use crate::support::{Extent, Story, answer, on_each_store};
use crate::sweep::{blocking, sweep_on};

/// The durability mode with the most places to stop at.
const MODE: &str = "per_effect";

/// The status and error codes by which a worker reports that another process owns the session.
const REPLACED: [&str; 6] = [
    "superseded",
    "store_unavailable",
    "already_resumed",
    "already_running",
    "nothing_to_resume",
    "suspended",
];

/// Scenarios that stop at two fault points, and at one on engines, except in a full run: the gate has to stay short.
const FEW: [&str; 6] =
    ["budget", "child_waits", "companion_beside", "deadlines", "finish", "planner"];

/// Returns the number of fault points at which a worker stops. On an engine each takeover takes as long as a lease of
/// eight seconds. On Temporal it also takes the timeouts of the tasks that the server had assigned to the stopped
/// worker.
fn points_of(runtime: &str, kind: &Kind, scenario: &str) -> usize {
    match (runtime, Extent::on(kind)) {
        (_, Extent::Full) => usize::MAX,
        ("local", _) if FEW.contains(&scenario) => 2,
        _ if FEW.contains(&scenario) || scenario == "fork" && runtime != "local" => 1,
        ("local", Extent::Usual) => 16,
        ("local", Extent::Sample) => 6,
        (_, Extent::Usual) => 4,
        (_, Extent::Sample) => 2,
    }
}

/// Returns the seeds of the stalls at random moments.
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

/// The moment at which the worker continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wakes {
    /// After its successor has completed the story.
    Late,
    /// While its successor is stopped midway, at this fault point.
    Between(usize),
    /// Together with a successor that was stopped at this fault point.
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

/// The time that a worker may run while its successor is stopped. It may have to wait for the successor.
const ALONE: Duration = Duration::from_secs(2);

/// Checks the story after a worker was stopped. Returns the problem, if there is one.
async fn problem(
    story: Story,
    scenario: &str,
    stop_at: StopAt,
    wakes: Wakes,
    expected: &Expected,
) -> Result<(), String> {
    let stopped = story.run_and_stop("stopped", stop_at);
    let mut before = Recorded::of(&story).await;
    let (successor, stalls) = match wakes {
        Wakes::Late => (story.run_to_end(None), 1),
        Wakes::Between(point) | Wakes::Beside(point) => {
            let successor = story.run_and_stop("successor", StopAt::Point(point));
            stopped.wake();
            if wakes == Wakes::Between(point) {
                // Both results are correct: the worker may have to wait for its successor.
                let (true | false) = stopped.ends_within(ALONE);
            }
            successor.wake();
            (successor.end(), 2)
        }
    };
    stopped.wake();
    let stopped = stopped.end();
    [&stopped, &successor].into_iter().for_each(|end| before.note_gaps(end));
    let (stopped, successor) = (fits("the worker", &stopped), fits("its successor", &successor));
    match (stopped, successor) {
        (Ok(()), Ok(())) => before.problem(&story, scenario, expected, stalls).await,
        (Err(one), Err(other)) => Err(format!("{one}\n{other}")),
        (Err(problem), Ok(())) | (Ok(()), Err(problem)) => Err(problem),
    }
}

/// Checks that a worker completed the story, or reports that another process owns it.
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

/// Runs the story without disturbance, and returns its logs and fault points.
pub(crate) fn undisturbed(
    runtime: &str,
    kind: &'static Kind,
    scenario: &'static str,
) -> (Expected, Vec<String>) {
    let story = Story::on(runtime, kind, scenario, MODE);
    let whole = story.run_to_end(None);
    assert_eq!(answer(&whole).get("status").unwrap(), "completed", "{}", whole.stderr);
    (blocking().block_on(read_outcome(&story)), whole.points)
}

fn stalled(runtime: &str, kind: &'static Kind, scenario: &'static str) -> Story {
    Story::on(runtime, kind, scenario, MODE).with_short_leases()
}

/// Stops a worker at fault points of a scenario.
fn matrix(runtime: &'static str, kind: &'static Kind, scenario: &'static str) {
    let (expected, points) = undisturbed(runtime, kind, scenario);
    let points: Vec<_> = (1..).zip(points).collect();
    let every = points.len().div_ceil(points_of(runtime, kind, scenario)).max(1);
    // A stride that is not a multiple of three covers all variants of `Wakes`.
    let every = if every % 3 == 0 { every + 1 } else { every };
    let points: Vec<_> = points.into_iter().skip(every / 2).step_by(every).collect();
    sweep_on(runtime, kind, ["stall matrix"], [scenario, MODE], &points, |stop_at| {
        let (story, stop_at, wakes) =
            (stalled(runtime, kind, scenario), StopAt::Point(*stop_at), Wakes::of(*stop_at));
        [blocking().block_on(problem(story, scenario, stop_at, wakes, &expected))]
    });
}

/// Stops a worker just before it creates the session, and another one just after. The first one then finds a session
/// whose run no process executes, and takes it over.
fn taken_over(kind: &'static Kind) {
    let (expected, points) = undisturbed("local", kind, "plain");
    assert_eq!(points[..2], ["journal.before_create", "journal.after_create"]);
    let story = stalled("local", kind, "plain");
    let waiting = story.run_and_stop("waiting", StopAt::Point(1));
    let owner = story.run_and_stop("owner", StopAt::Point(2));
    let before = blocking().block_on(Recorded::of(&story));
    waiting.wake();
    let waiting = waiting.end();
    owner.wake();
    let owner = owner.end();
    fits("the worker that waited", &waiting).unwrap();
    fits("the owner", &owner).unwrap();
    assert_eq!(answer(&waiting).get("status").unwrap(), "completed", "{}", waiting.stderr);
    blocking().block_on(before.problem(&story, "plain", &expected, 2)).unwrap();
}

/// The scenarios from which each random moment draws one.
const SCENARIOS: [&str; 6] = ["plain", "parallel", "at_most_once", "people", "child", "companion"];

/// The maximum time between a fault point and a random moment after it. Much happens in that time.
const DELAY_MICROS: usize = 10_000;

/// Stops a worker at random moments of random scenarios.
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
        let checked = problem(stalled(runtime, kind, scenario), scenario, stop_at, wakes, expected);
        let again = format!("HELIX_SEED={seed}: {scenario}, {stop_at:?}, {wakes:?}");
        [blocking().block_on(checked).map_err(|problem| format!("{again}: {problem}"))]
    });
}

on_each_store! {
    Everywhere plain_tools(kind) { super::matrix("local", kind, "plain") }
    Everywhere at_most_once(kind) { super::matrix("local", kind, "at_most_once") }
    Sqlite parallel_tools(kind) { super::matrix("local", kind, "parallel") }
    Sqlite people_answer(kind) { super::matrix("local", kind, "people") }
    Everywhere a_child_works(kind) { super::matrix("local", kind, "child") }
    Sqlite a_companion_answers(kind) { super::matrix("local", kind, "companion") }
    Sqlite a_fork_is_made(kind) { super::matrix("local", kind, "fork") }
    Sqlite a_rewind_continues(kind) { super::matrix("local", kind, "rewind") }
    Sqlite finish_tool(kind) { super::matrix("local", kind, "finish") }
    Sqlite a_child_waits(kind) { super::matrix("local", kind, "child_waits") }
    Sqlite a_companion_beside_is_heard(kind) { super::matrix("local", kind, "companion_beside") }
    Sqlite deadlines_pass(kind) { super::matrix("local", kind, "deadlines") }
    Sqlite a_budget_is_raised(kind) { super::matrix("local", kind, "budget") }
    Sqlite a_planner_makes_rounds(kind) { super::matrix("local", kind, "planner") }
    Everywhere random_moments(kind) { super::moments("local", kind) }
    Everywhere a_run_that_another_worker_started_is_taken_over(kind) { super::taken_over(kind) }
}

/// Defines the tests of an engine, in a module with its name.
macro_rules! on_engine {
    ($runtime:ident) => {
        mod $runtime {
            use super::*;

            on_each_store! {
                Everywhere plain_tools(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "plain") }
                Everywhere at_most_once(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "at_most_once") }
                Sqlite parallel_tools(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "parallel") }
                Sqlite people_answer(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "people") }
                Everywhere a_child_works(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "child") }
                Sqlite a_companion_answers(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "companion") }
                Sqlite a_rewind_continues(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "rewind") }
                Sqlite a_fork_is_made(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "fork") }
                Sqlite finish_tool(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "finish") }
                Sqlite a_child_waits(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "child_waits") }
                Sqlite a_companion_beside_is_heard(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "companion_beside") }
                Sqlite deadlines_pass(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "deadlines") }
                Sqlite a_budget_is_raised(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "budget") }
                Sqlite a_planner_makes_rounds(kind) { crate::stall_matrix::matrix(stringify!($runtime), kind, "planner") }
                Sqlite random_moments(kind) { crate::stall_matrix::moments(stringify!($runtime), kind) }
            }
        }
    };
}

on_engine!(durable);
on_engine!(temporal);
