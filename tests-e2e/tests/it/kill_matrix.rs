//! Every fault point of every scenario: killed there, resumed, and compared with the run that
//! nobody killed.

use std::sync::atomic::{AtomicUsize, Ordering};

use helix_agents_testkit::normalise;
use serde_json::{Value, json};

use crate::support::{Story, answer, recorded_calls, write_report};

/// The story that nobody killed.
struct Expected {
    /// All logs, one after the other.
    logs: String,
    stream: String,
}

/// How often workers of a matrix run side by side: they mostly wait for leases.
const BESIDE: usize = 4;

/// Calls that wait for people run at most once.
fn runs_once(scenario: &str, logs: &str, call: &str) -> bool {
    let id = call.rsplit_once('#').map_or(call, |(_, id)| id);
    let pays = logs.contains(&format!("call {id} pay"));
    pays && matches!(scenario, "at_most_once" | "people" | "child_waits")
}

async fn told(story: &Story) -> Expected {
    let logs = story.logs().await;
    let logs = logs.values().map(|log| normalise::log(log)).collect::<Vec<_>>().join("\n");
    let stream = normalise::stream(&story.stream().await);
    // What sessions that work side by side show is interwoven by chance.
    let (below, above): (Vec<_>, Vec<_>) = stream.lines().partition(|line| line.starts_with('['));
    Expected { logs, stream: [above, below].concat().join("\n") }
}

/// What is wrong with the story after a kill at the n-th point, if anything is.
async fn problem(
    scenario: &'static str,
    mode: &'static str,
    kill_at: usize,
    expected: &Expected,
) -> Result<(), String> {
    let story = Story::new(scenario, mode);
    let killed = story.tell(Some(kill_at));
    // Results that end together share an append, so some runs have a few points less.
    if killed.points.len() < kill_at && killed.stdout.contains("completed") {
        return Ok(());
    }
    if !killed.was_killed() {
        return Err(format!("the worker was not killed: {} {}", killed.stdout, killed.stderr));
    }
    let recorded = recorded_calls(&story.logs().await);
    let before = story.trace();
    let end = story.tell(None);
    let answer = answer(&end);
    if answer.get("status").and_then(Value::as_str) != Some("completed") {
        return Err(format!("it did not complete: {answer} {}", end.stderr));
    }
    let Expected { logs, stream } = told(&story).await;
    let in_doubt = logs.contains("tool_outcome_unknown") && expected.logs.contains(" pay");
    if logs != expected.logs && !in_doubt {
        return Err(format!("other logs:\n{}", difference(&expected.logs, &logs)));
    }
    if stream != expected.stream && !in_doubt {
        return Err(format!("another stream:\n{}", difference(&expected.stream, &stream)));
    }
    for (call, keys) in story.trace() {
        let again = keys.len() - before.get(&call).map_or(0, Vec::len);
        if recorded.contains(&call) && again > 0 {
            return Err(format!("call {call} was on record and ran again"));
        }
        if keys.len() > 2 || keys.windows(2).any(|pair| pair.first() != pair.last()) {
            return Err(format!("call {call} ran {} times under {keys:?}", keys.len()));
        }
        if runs_once(scenario, &logs, &call) && keys.len() > 1 {
            return Err(format!("the at-most-once call {call} ran {} times", keys.len()));
        }
    }
    Ok(())
}

/// From the first line that differs on.
fn difference(expected: &str, got: &str) -> String {
    let same = expected.lines().zip(got.lines()).take_while(|(one, other)| one == other).count();
    let rest = |text: &str| text.lines().skip(same).collect::<Vec<_>>().join("\n  ");
    format!("  {}\n--- not\n  {}", rest(got), rest(expected))
}

fn matrix(scenario: &'static str, mode: &'static str) {
    let story = Story::new(scenario, mode);
    let whole = story.tell(None);
    assert_eq!(answer(&whole).get("status").unwrap(), "completed", "{}", whole.stderr);
    assert!(whole.points.len() > 10, "fault points are missing: {:?}", whole.points);
    let blocking = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let expected = blocking().block_on(told(&story));
    let next = AtomicUsize::new(0);
    let work = || {
        let (runtime, mut outcomes) = (blocking(), Vec::new());
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= whole.points.len() {
                return outcomes;
            }
            let outcome = runtime.block_on(problem(scenario, mode, index + 1, &expected));
            outcomes.push((index, outcome));
        }
    };
    let mut outcomes: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..BESIDE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    outcomes.sort_by_key(|(index, _)| *index);
    let mut report = Vec::new();
    let mut problems = Vec::new();
    for ((index, outcome), point) in outcomes.into_iter().zip(&whole.points) {
        report.push(json!({ "name": point, "ok": outcome.is_ok() }));
        problems.extend(outcome.err().map(|text| format!("{} {point}: {text}", index + 1)));
    }
    write_report(scenario, mode, &report);
    assert!(
        problems.is_empty(),
        "{} of {}:\n{}",
        problems.len(),
        report.len(),
        problems.join("\n")
    );
}

#[test]
fn plain_tools_per_effect() {
    matrix("plain", "per_effect");
}

#[test]
fn parallel_tools_per_effect() {
    matrix("parallel", "per_effect");
}

#[test]
fn finish_tool_per_effect() {
    matrix("finish", "per_effect");
}

#[test]
fn at_most_once_per_effect() {
    matrix("at_most_once", "per_effect");
}

#[test]
fn plain_tools_per_step() {
    matrix("plain", "per_step");
}

#[test]
fn at_most_once_per_step() {
    matrix("at_most_once", "per_step");
}

#[test]
fn people_answer_per_effect() {
    matrix("people", "per_effect");
}

#[test]
fn people_answer_per_step() {
    matrix("people", "per_step");
}

#[test]
fn a_child_works_per_effect() {
    matrix("child", "per_effect");
}

#[test]
fn a_child_works_per_step() {
    matrix("child", "per_step");
}

#[test]
fn a_child_waits_per_effect() {
    matrix("child_waits", "per_effect");
}

#[test]
fn a_companion_answers_per_effect() {
    matrix("companion", "per_effect");
}

#[test]
fn a_companion_answers_per_step() {
    matrix("companion", "per_step");
}
