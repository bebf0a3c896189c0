//! Every fault point of every scenario: the worker stands still there for longer than its lease, another
//! process takes over, and the worker continues as if nothing had happened.
//!
//! SIGKILL ends a process that had the session. SIGSTOP leaves one that still believes it has: a paused
//! virtual machine, a laptop that was closed, a process that swaps. It must notice before it acts.
//! Nothing of what it still does may show, in logs or streams.

use std::time::Duration;

use helix_agents_testkit::kill::WorkerEnd;
use helix_agents_tests_e2e::stores::Kind;
use serde_json::Value;

use crate::kill_matrix::{Expected, Recorded, told};
use crate::support::{Extent, Story, answer, on_each_store};
use crate::sweep::{blocking, sweep_on};

/// The runtime that workers are stopped on.
const RUNTIME: &str = "local";

/// Appends as they happen have the most places to stop at.
const MODE: &str = "per_effect";

/// How a worker may report that another one has the session.
const REPLACED: [&str; 5] =
    ["superseded", "store_unavailable", "already_resumed", "already_running", "nothing_to_resume"];

/// At how many fault points a worker stops.
fn points_of(kind: &Kind) -> usize {
    match Extent::on(kind) {
        Extent::Full => usize::MAX,
        Extent::Usual => 16,
        Extent::Sample => 6,
    }
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
    fn of(stop_at: usize) -> Self {
        let point = 2 + stop_at % 7;
        match stop_at % 3 {
            0 => Self::Late,
            1 => Self::Between(point),
            _ => Self::Beside(point),
        }
    }
}

/// How long a worker may run while its successor stands still: it may have to wait for that one.
const ALONE: Duration = Duration::from_secs(2);

/// What is wrong with the story after a worker stood still at the n-th point, if anything is.
async fn problem(
    story: Story,
    scenario: &str,
    stop_at: usize,
    expected: &Expected,
) -> Result<(), String> {
    let stopped = story.tell_and_stop("stopped", stop_at);
    let before = Recorded::of(&story).await;
    let wakes = Wakes::of(stop_at);
    let (successor, stalls) = match wakes {
        Wakes::Late => (story.tell(None), 1),
        Wakes::Between(point) | Wakes::Beside(point) => {
            let successor = story.tell_and_stop("successor", point);
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
    fits(&stopped.end())?;
    fits(&successor)?;
    before.problem(&story, scenario, expected, stalls).await
}

/// Whether a worker completed the story, or reports that another one has it.
fn fits(end: &WorkerEnd) -> Result<(), String> {
    let answer: Value = serde_json::from_str(&end.stdout).unwrap_or_default();
    let field = |name| answer.get(name).and_then(Value::as_str);
    let is_fine = field("status") == Some("completed")
        || field("code").is_some_and(|code| REPLACED.contains(&code));
    let passed = end.points.join(" ");
    is_fine
        .then_some(())
        .ok_or_else(|| format!("a worker ended with {answer} after {passed}: {}", end.stderr))
}

fn matrix(kind: &'static Kind, scenario: &'static str) {
    let story = || Story::on(RUNTIME, kind, scenario, MODE).with_short_leases();
    let undisturbed = Story::on(RUNTIME, kind, scenario, MODE);
    let whole = undisturbed.tell(None);
    assert_eq!(answer(&whole).get("status").unwrap(), "completed", "{}", whole.stderr);
    let expected = blocking().block_on(told(&undisturbed));
    let points: Vec<_> = (1..).zip(whole.points).collect();
    let every = points.len().div_ceil(points_of(kind)).max(1);
    // A stride that is no multiple of three meets all ways to wake up.
    let every = if every % 3 == 0 { every + 1 } else { every };
    let points: Vec<_> = points.into_iter().skip(every / 2).step_by(every).collect();
    sweep_on(RUNTIME, kind, ["stall matrix"], [scenario, MODE], &points, |stop_at| {
        [blocking().block_on(problem(story(), scenario, *stop_at, &expected))]
    });
}

on_each_store! {
    Everywhere plain_tools(kind) { super::matrix(kind, "plain") }
    Everywhere at_most_once(kind) { super::matrix(kind, "at_most_once") }
    Sqlite parallel_tools(kind) { super::matrix(kind, "parallel") }
    Sqlite people_answer(kind) { super::matrix(kind, "people") }
    Sqlite a_child_works(kind) { super::matrix(kind, "child") }
    Sqlite a_companion_answers(kind) { super::matrix(kind, "companion") }
    Sqlite a_fork_is_made(kind) { super::matrix(kind, "fork") }
    Sqlite a_rewind_continues(kind) { super::matrix(kind, "rewind") }
}
