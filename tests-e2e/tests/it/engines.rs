//! Every scenario on every engine: the log must be the same as on the local runtime, also after kills.

use helix_agents_tests_e2e::stores::Kind;
use serde_json::json;

use crate::kill_matrix::{difference, problem, read_outcome};
use crate::reported_spans;
use crate::support::{Extent, Story, answer, on_each_store, write_report_on};
use crate::sweep::{blocking, sweep_on};

/// The durability mode: engines append after each effect.
const MODE: &str = "per_effect";

/// The number of fault points of a sample.
const SAMPLE_POINTS: usize = 3;

/// The number of fault points of a usual run.
const MORE_POINTS: usize = 6;

/// Checks that the engine and the local runtime produce the same logs and streams, with and without kills.
fn same(runtime: &'static str, kind: &'static Kind, scenario: &'static str) {
    let here = Story::new(kind, scenario, MODE);
    let whole = here.run_to_end(None);
    assert_eq!(answer(&whole).get("status").unwrap(), "completed", "{}", whole.stderr);
    let expected = blocking().block_on(read_outcome(&here));

    let story = Story::on(runtime, kind, scenario, MODE);
    let whole = story.run_to_end(None);
    assert_eq!(answer(&whole).get("status").unwrap(), "completed", "{}", whole.stderr);
    let got = blocking().block_on(read_outcome(&story));
    let problems = [
        (got.logs != expected.logs).then(|| difference(&expected.logs, &got.logs)),
        (got.stream != expected.stream).then(|| difference(&expected.stream, &got.stream)),
        blocking().block_on(reported_spans::problem(&story, 0)).err(),
    ];
    let is_same = problems.iter().all(Option::is_none);
    let point = json!({ "name": "undisturbed", "ok": is_same });
    write_report_on(runtime, kind, ["same as local", scenario, MODE], &[point]);
    assert!(is_same, "{runtime} differs:\n{problems:?}");

    let points: Vec<_> = (1..).zip(whole.points).collect();
    let most = match Extent::on(kind) {
        Extent::Sample => SAMPLE_POINTS,
        Extent::Usual => MORE_POINTS,
        Extent::Full => usize::MAX,
    };
    let every = points.len().div_ceil(most).max(1);
    let points: Vec<_> = points.into_iter().skip(every / 2).step_by(every).collect();
    sweep_on(runtime, kind, ["kill matrix"], [scenario, MODE], &points, |kill_at| {
        let story = Story::on(runtime, kind, scenario, MODE);
        [blocking().block_on(problem(story, scenario, *kill_at, &expected))]
    });
}

/// Defines the tests of an engine, in a module with its name.
macro_rules! on_engine {
    ($runtime:ident) => {
        mod $runtime {
            use super::*;

            on_each_store! {
                Everywhere plain_tools(kind) { crate::engines::same(stringify!($runtime), kind, "plain") }
                Sqlite parallel_tools(kind) { crate::engines::same(stringify!($runtime), kind, "parallel") }
                Sqlite finish_tool(kind) { crate::engines::same(stringify!($runtime), kind, "finish") }
                Sqlite at_most_once(kind) { crate::engines::same(stringify!($runtime), kind, "at_most_once") }
                Everywhere people_answer(kind) { crate::engines::same(stringify!($runtime), kind, "people") }
                Sqlite a_child_works(kind) { crate::engines::same(stringify!($runtime), kind, "child") }
                Sqlite a_child_waits(kind) { crate::engines::same(stringify!($runtime), kind, "child_waits") }
                Sqlite a_remote_agent_works(kind) { crate::engines::same(stringify!($runtime), kind, "remote") }
                Sqlite a_companion_answers(kind) { crate::engines::same(stringify!($runtime), kind, "companion") }
                Sqlite a_companion_beside_is_heard(kind) { crate::engines::same(stringify!($runtime), kind, "companion_beside") }
                Sqlite deadlines_pass(kind) { crate::engines::same(stringify!($runtime), kind, "deadlines") }
                Sqlite a_fork_is_made(kind) { crate::engines::same(stringify!($runtime), kind, "fork") }
                Sqlite a_rewind_goes_on(kind) { crate::engines::same(stringify!($runtime), kind, "rewind") }
                Sqlite a_budget_is_raised(kind) { crate::engines::same(stringify!($runtime), kind, "budget") }
                Sqlite a_planner_makes_rounds(kind) { crate::engines::same(stringify!($runtime), kind, "planner") }
                Sqlite signed_replies_are_kept(kind) { crate::engines::same(stringify!($runtime), kind, "signed") }
            }
        }
    };
}

on_engine!(durable);
on_engine!(temporal);
