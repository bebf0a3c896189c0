//! Hooks and streams that take longer than the lease: the owner keeps the run, and another process that tries to take
//! over is refused.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use helix_agents::event::Event;
use helix_agents_testkit::kill::WorkerEnd;
use helix_agents_tests_e2e::stores::Kind;
use serde_json::{Value, json};

use crate::kill_matrix::{Expected, difference, logs_text};
use crate::stall_matrix::{fits, undisturbed};
use crate::support::{Story, on_each_store, write_report_on};
use crate::sweep::blocking;

/// The durability mode.
const MODE: &str = "per_effect";

/// The time limit for the start of what a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a worker that runs the story to its end.
fn start(story: &Story) -> Child {
    let mut command = story.command("tell");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn end(child: Child) -> WorkerEnd {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    WorkerEnd { status: output.status, stdout, stderr, points: Vec::new() }
}

/// Returns the number of occurrences of each line in a file.
fn lines(file: &Path) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    for line in std::fs::read_to_string(file).unwrap_or_default().lines() {
        *lines.entry(line.to_owned()).or_default() += 1;
    }
    lines
}

/// Returns the maximum number of executions of a call or hook. A worker of an engine that tries to take over may
/// receive a task, and is refused during its execution.
fn most(runtime: &str) -> usize {
    if runtime == "temporal" { 2 } else { 1 }
}

/// Checks a story that one run must have completed. Returns the problem, if there is one.
async fn problem(runtime: &str, story: &Story, expected: &Expected) -> Result<(), String> {
    let logs = story.logs().await;
    let runs = |log: &[helix_agents::event::RecordedEvent]| {
        log.iter().filter(|recorded| matches!(recorded.event, Event::RunStarted { .. })).count()
    };
    if let Some((session, log)) = logs.iter().find(|(_, log)| runs(log) > 1) {
        return Err(format!("{} runs started in {session}: a live run was taken over", runs(log)));
    }
    // The stream is not compared: a process may end before a slow stream has accepted all chunks.
    let got = logs_text(&logs);
    if got != expected.logs {
        return Err(format!("different logs:\n{}", difference(&expected.logs, &got)));
    }
    let repeated = story.trace().into_iter().find(|(_, keys)| keys.len() > most(runtime));
    match repeated {
        Some((call, keys)) => Err(format!("call {call} ran {} times", keys.len())),
        None => Ok(()),
    }
}

fn report(
    runtime: &str,
    kind: &Kind,
    [holds, scenario]: [&str; 2],
    outcome: Vec<(String, Result<(), String>)>,
) {
    let points: Vec<_> = outcome
        .iter()
        .map(|(name, outcome)| json!({ "name": name, "ok": outcome.is_ok() }))
        .collect();
    write_report_on(runtime, kind, [holds, scenario, MODE], &points);
    let wrong: Vec<_> = outcome
        .into_iter()
        .filter_map(|(name, outcome)| outcome.err().map(|problem| format!("{name}: {problem}")))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs a scenario whose two hooks take longer than the lease, while another process tries to take over.
fn slow_hooks(runtime: &'static str, kind: &'static Kind) {
    const SCENARIO: &str = "slow_hooks";
    let (expected, _) = undisturbed(runtime, kind, SCENARIO);
    let story = Story::on(runtime, kind, SCENARIO, MODE).with_short_leases();
    let takes = story.lease() + story.lease() / 4;
    let story = story.with_env("HELIX_HOOK_MS", takes.as_millis().to_string());
    let hooks = story.folder().join("hooks");

    let started = Instant::now();
    let owner = start(&story);
    until(|| !lines(&hooks).is_empty());
    let other = end(start(&story));
    let owner = end(owner);
    let outcome = fits("the other process", &other).and(completed(&owner)).and_then(|()| {
        blocking().block_on(problem(runtime, &story, &expected))?;
        let again = lines(&hooks).into_iter().find(|(_, times)| *times > most(runtime));
        match again {
            Some((key, times)) => Err(format!("the hook {key} ran {times} times")),
            None if lines(&hooks).len() != 2 => Err("not all hooks ran".to_owned()),
            None if started.elapsed() < takes * 2 => Err("the hooks were not slow".to_owned()),
            None => Ok(()),
        }
    });
    report(runtime, kind, ["slow hooks", SCENARIO], vec![("hooks".to_owned(), outcome)]);
}

/// The store answers each operation on streams later than the lease ends, while another process tries to take over. The
/// run lasts longer than the lease, by two hooks.
fn slow_streams(runtime: &'static str, kind: &'static Kind) {
    const SCENARIO: &str = "slow_streams";
    let (expected, _) = undisturbed(runtime, kind, SCENARIO);
    let story = Story::on(runtime, kind, SCENARIO, MODE).with_short_leases();
    let (takes, hook) = (story.lease() + story.lease() / 4, story.lease() * 3 / 4);
    let story = story
        .with_env("HELIX_STREAM_MS", takes.as_millis().to_string())
        .with_env("HELIX_HOOK_MS", hook.as_millis().to_string());
    let (hooks, writes) = (story.folder().join("hooks"), story.folder().join("streams"));

    let started = Instant::now();
    let owner = start(&story);
    until(|| !lines(&writes).is_empty());
    let other = end(start(&story));
    let owner = end(owner);
    let outcome = fits("the other process", &other).and(completed(&owner)).and_then(|()| {
        blocking().block_on(problem(runtime, &story, &expected))?;
        let again = lines(&hooks).into_iter().find(|(_, times)| *times > most(runtime));
        match again {
            Some((key, times)) => Err(format!("the hook {key} ran {times} times")),
            None if lines(&hooks).len() != 2 => Err("not all hooks ran".to_owned()),
            None if started.elapsed() < hook * 2 => {
                Err("the run was not longer than the lease".to_owned())
            }
            None => Ok(()),
        }
    });
    report(runtime, kind, ["slow streams", SCENARIO], vec![("streams".to_owned(), outcome)]);
}

fn completed(end: &WorkerEnd) -> Result<(), String> {
    let answer: Value = serde_json::from_str(&end.stdout).unwrap_or_default();
    let completed = answer.get("status").and_then(Value::as_str) == Some("completed");
    completed.then_some(()).ok_or_else(|| format!("the owner ended with {answer}: {}", end.stderr))
}

/// Waits for another process.
#[expect(clippy::disallowed_methods, reason = "nothing in this process signals the change")]
fn until(mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "it did not happen in time");
        std::thread::sleep(Duration::from_millis(2));
    }
}

on_each_store! {
    Everywhere hooks(kind) { super::slow_hooks("local", kind) }
    Everywhere streams(kind) { super::slow_streams("local", kind) }
}

/// Defines the tests of an engine, in a module with its name.
macro_rules! on_engine {
    ($runtime:ident) => {
        mod $runtime {
            use super::*;

            on_each_store! {
                Sqlite hooks(kind) { crate::stall_slow::slow_hooks(stringify!($runtime), kind) }
                Sqlite streams(kind) { crate::stall_slow::slow_streams(stringify!($runtime), kind) }
            }
        }
    };
}

on_engine!(durable);
on_engine!(temporal);
