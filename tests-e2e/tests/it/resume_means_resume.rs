//! "Resume means resume": six properties of a session whose process was killed at any fault point and that 2, 8 or 32
//! processes resume concurrently.
//!
//! By default each property has a scenario or two, and each fault point has one number of processes. `HELIX_FULL=1`,
//! which `cargo xtask e2e --full` sets, runs all of them. On servers every second fault point is tested with two
//! processes, unless `cargo xtask e2e --store` asks for more. On engines a sample of the fault points is tested, and
//! all of them with `--full`.

mod evidence;

use std::collections::{BTreeMap, BTreeSet};

use helix_agents::event::{Answer, Event, RecordedEvent, ToolOutcome};
use helix_agents::id::SessionId;
use helix_agents::session::Session;
use helix_agents_conformance::normalise;
use helix_agents_tests_e2e::stores::Kind;
use serde_json::Value;

use crate::kill_matrix::{difference, read_outcome, runs_once};
use crate::support::{Extent, SessionReader, Story, Trace, on_each_store, recorded_calls};
use crate::sweep::{blocking, sweep_on};
use evidence::{Case, Stage, begins_with, ran_and_refused};

const KNOWN: [&str; 3] = ["already_resumed", "already_running", "nothing_to_resume"];

/// Defines the tests of one runtime, in a module with its name.
macro_rules! on_runtime {
    ($runtime:ident $on:ident) => {
        mod $runtime {
            use super::*;

            /// Returns the stage of this runtime on a kind of store.
            fn on(kind: &'static Kind) -> Stage {
                Stage { runtime: stringify!($runtime), kind }
            }

            on_each_store! {
                $on a_resumed_run_continues_where_it_stopped(kind) {
                    crate::resume_means_resume::a_resumed_run_continues_where_it_stopped(super::on(kind))
                }
                $on fork_determinism(kind) {
                    crate::resume_means_resume::fork_determinism(super::on(kind))
                }
                $on checkpoint_validity(kind) {
                    crate::resume_means_resume::checkpoint_validity(super::on(kind))
                }
                $on consume_once(kind) {
                    crate::resume_means_resume::consume_once(super::on(kind))
                }
            }
        }
    };
}

on_runtime!(local Everywhere);
on_runtime!(durable Sqlite);
on_runtime!(temporal Sqlite);

/// Checks properties for each case of the scenarios. The second list of scenarios is only checked with `HELIX_FULL=1`.
fn property<const N: usize>(
    stage: Stage,
    holds: [&'static str; N],
    verb: &'static str,
    [usual, full]: [&[&'static str]; 2],
    problems: impl Fn(&Case) -> [Result<(), String>; N] + Sync,
) {
    let is_full = Extent::on(stage.kind) == Extent::Full;
    // An engine appends when effects end, in any mode.
    let has_modes = is_full && !stage.has_engine();
    let modes = if has_modes { &["per_effect", "per_step"][..] } else { &["per_effect"] };
    for scenario in usual.iter().chain(full.iter().filter(|_| is_full)) {
        for mode in modes {
            let cases = evidence::cases(stage, verb, [scenario, mode]);
            let Stage { runtime, kind } = stage;
            sweep_on(runtime, kind, holds, [scenario, mode], &cases, &problems);
        }
    }
}

/// Three properties of the same recovery.
fn a_resumed_run_continues_where_it_stopped(stage: Stage) {
    let holds = ["prefix continuation", "effect exactly-once", "recovery determinism"];
    let scenarios: [&[_]; 2] = [&["at_most_once", "parallel"], &["plain", "finish", "child"]];
    property(stage, holds, "run", scenarios, |case| {
        let Some(story) = case.killed() else { return [const { Ok(()) }; 3] };
        let (before, trace) = (blocking().block_on(story.logs()), story.trace());
        if let Err(problem) = case.resume_at_once(&story, &before) {
            return [(); 3].map(|()| Err(problem.clone()));
        }
        let after = blocking().block_on(story.logs());
        [
            begins_with(&before, &after),
            effect_exactly_once(case.scenario, [&before, &after], [&trace, &story.trace()]),
            recovery_determinism(case, &story),
        ]
    });
}

/// A recorded call never runs again. A call with an unknown outcome runs at most once more, with the same key. A call
/// that must run at most once does so.
fn effect_exactly_once(
    scenario: &str,
    [logs, after]: [&SessionReader; 2],
    [before, trace]: [&Trace; 2],
) -> Result<(), String> {
    let recorded = recorded_calls(logs);
    for (call, keys) in trace {
        let times = keys.len();
        let again = times - before.get(call).map_or(0, Vec::len);
        let most = if runs_once(scenario, after, call) { 1 } else { 2 };
        let same_key = keys.iter().collect::<BTreeSet<_>>().len() == 1;
        if times > most || !same_key || (recorded.contains(call) && again > 0) {
            return Err(format!("call {call} ran {times} times, {again} again, as {keys:?}"));
        }
    }
    Ok(())
}

/// Exactly one of the resuming processes ran the session, and the logs are those of a run without kills, except for the
/// outcome of a payment that is unknown.
fn recovery_determinism(case: &Case, story: &Story) -> Result<(), String> {
    drop(story.run_to_end(None));
    let (is, expected) = (blocking().block_on(read_outcome(story)), &case.whole.expected);
    if case.scenario == "at_most_once" && is.logs.contains("tool_outcome_unknown") {
        return Ok(());
    }
    if is.logs != expected.logs {
        return Err(format!("different logs:\n{}", difference(&expected.logs, &is.logs)));
    }
    if is.stream != expected.stream {
        return Err(format!("different stream:\n{}", difference(&expected.stream, &is.stream)));
    }
    Ok(())
}

/// Forks of one checkpoint are the same, independent of the time and the process, and have the same end. They do not
/// change the original. Each name is used by two of the processes, and one of them gets it.
fn fork_determinism(stage: Stage) {
    property(stage, ["fork determinism"], "run", [&["plain"], &["parallel"]], |case| {
        [forks_are_alike(case)]
    });
}

fn forks_are_alike(case: &Case) -> Result<(), String> {
    let Some(story) = case.killed() else { return Ok(()) };
    let before = blocking().block_on(story.logs());
    let names = |index: usize| format!("fork-{}", index / 2);
    let answers = case.at_once(&story, "fork", |index| Some(names(index)))?;
    let after = blocking().block_on(story.logs());
    begins_with(&before, &after)?;
    let root = SessionId::from("story");
    // An engine continues the original as soon as it notices that its worker has crashed.
    let is_same = before.get(&root).map(Vec::len) == after.get(&root).map(Vec::len);
    if !is_same && !case.has_engine() {
        return Err("the original has changed".to_owned());
    }
    let fold = before.get(&root).map(|log| fold(&root, log));
    if fold.is_none_or(|fold| fold.checkpoints().is_empty()) {
        let (ran, refused) = ran_and_refused(&answers);
        let none = ["checkpoint_not_found", "session_not_found"];
        let none = refused.iter().all(|code| none.contains(&code.as_str()));
        return (ran == 0 && none).then_some(()).ok_or_else(|| format!("{refused:?}"));
    }
    let (ran, refused) = ran_and_refused(&answers);
    let others = refused.iter().all(|code| code == "session_exists");
    if ran != case.processes / 2 || !others {
        return Err(format!("{ran} forks completed, and {refused:?}"));
    }
    let expected = case.whole.fork.as_deref().unwrap_or_default();
    for (fork, log) in after.iter().filter(|(id, _)| **id != root) {
        let log = normalise::log(log);
        if log != expected {
            return Err(format!("{fork} differs:\n{}", difference(expected, &log)));
        }
    }
    let twice =
        story.trace().into_iter().find(|(call, keys)| call.starts_with("fork") && keys.len() > 1);
    twice.map_or(Ok(()), |(call, _)| Err(format!("{call} ran twice")))
}

fn fold(id: &SessionId, log: &[RecordedEvent]) -> Session {
    let mut fold = Session::new(id.clone());
    for recorded in log {
        fold.apply_recorded(recorded).unwrap();
    }
    fold
}

/// The session can be rewound to every checkpoint: transcript and state are those of the checkpoint, and the session
/// reaches the same end from there.
fn checkpoint_validity(stage: Stage) {
    property(stage, ["checkpoint validity"], "run", [&["plain"], &["parallel"]], |case| {
        [checkpoints_are_valid(case)]
    });
}

fn checkpoints_are_valid(case: &Case) -> Result<(), String> {
    let Some(story) = case.killed() else { return Ok(()) };
    let root = SessionId::from("story");
    let before = blocking().block_on(story.logs());
    let Some(log) = before.get(&root) else { return Ok(()) };
    let checkpoints = fold(&root, log).checkpoints().to_vec();
    let Some(checkpoint) = checkpoints.get(case.kill_at % checkpoints.len().max(1)) else {
        return Ok(());
    };
    let version = checkpoint.version;
    let answers = case.at_once(&story, "back", |_| Some(version.to_string()))?;
    // A process that starts after another one has ended rewinds once more, which is correct.
    let (ran, refused) = ran_and_refused(&answers);
    if ran == 0 || !refused.iter().all(|code| KNOWN.contains(&code.as_str())) {
        return Err(format!("{ran} ran, and {refused:?}"));
    }
    let after = blocking().block_on(story.logs());
    begins_with(&before, &after)?;
    let log = &after[&root];
    let seen =
        |fold: &Session| (normalise::transcript(fold.transcript()), Value::clone(fold.state()));
    let there = seen(&fold(&root, &log[..usize::try_from(version).unwrap()]));
    for (index, recorded) in log.iter().enumerate() {
        if matches!(recorded.event, Event::Rewound { .. }) {
            let back = seen(&fold(&root, &log[..=index]));
            if back != there {
                return Err(format!(
                    "after the rewind to {version} it is {back:?}, and was {there:?}"
                ));
            }
        }
    }
    let end = normalise::transcript(fold(&root, log).transcript());
    let expected = &case.whole.transcript;
    if end != *expected {
        return Err(format!("different end:\n{}", difference(expected, &end)));
    }
    Ok(())
}

/// Of all answers to a call one is accepted, and it becomes the result once.
fn consume_once(stage: Stage) {
    property(stage, ["consume-once"], "tell", [&["people"], &[]], |case| {
        [one_answer_is_accepted(case)]
    });
}

fn one_answer_is_accepted(case: &Case) -> Result<(), String> {
    let Some(story) = case.killed() else { return Ok(()) };
    // Resumes up to the pending calls, if there still are any.
    drop(story.resume(None));
    let answers = case.at_once(&story, "answer", |index| Some(format!("w{index}")))?;
    let mut heard: BTreeMap<String, String> = BTreeMap::new();
    for (index, answer) in answers.iter().enumerate() {
        let taken = answer.get("taken").and_then(Value::as_array).cloned().unwrap_or_default();
        for call in taken.iter().filter_map(Value::as_str) {
            if heard.insert(call.to_owned(), format!("w{index} to {call}")).is_some() {
                return Err(format!("two answers to {call} were accepted: {answers:?}"));
            }
        }
    }
    let resumed = case.at_once(&story, "resume", |_| None)?;
    let (ran, refused) = ran_and_refused(&resumed);
    if !heard.is_empty() && ran != 1 {
        return Err(format!("{ran} resumed with the answers: {refused:?}"));
    }
    drop(story.run_to_end(None));
    let logs = blocking().block_on(story.logs());
    consumed(&story, &logs[&SessionId::from("story")], &heard)
}

/// Each answer is in the log once, and so is its result.
fn consumed(
    story: &Story,
    log: &[RecordedEvent],
    heard: &BTreeMap<String, String>,
) -> Result<(), String> {
    let mut answered = BTreeSet::new();
    let mut finished = BTreeSet::new();
    for recorded in log {
        match &recorded.event {
            Event::Submitted { call, request, answer, .. } => {
                let of = format!("story#{call}");
                if heard.get(&of).is_some_and(|heard| heard != request.as_str()) {
                    return Err(format!("{request} is in the log, but {heard:?} was accepted"));
                }
                if !answered.insert(call.clone()) {
                    return Err(format!("{call} was answered twice"));
                }
                let outcome = log.iter().find_map(|recorded| match &recorded.event {
                    Event::ToolFinished(finish) if finish.call == *call => Some(&finish.outcome),
                    _ => None,
                });
                if let (Answer::Returned(said), Some(ToolOutcome::Success(result))) =
                    (answer, outcome)
                    && said != result
                {
                    return Err(format!(
                        "the answer to {call} was {said:?}, and its result is {result:?}"
                    ));
                }
            }
            Event::ToolFinished(finish) if !finished.insert(finish.call.clone()) => {
                return Err(format!("{} has two results", finish.call));
            }
            _ => {}
        }
    }
    if let Some(lost) = answered.iter().find(|call| !finished.contains(*call)) {
        return Err(format!("the answer to {lost} has no result"));
    }
    let pays = |(_, keys): &(String, Vec<String>)| keys.len() > 2;
    let often = story.trace().into_iter().find(pays);
    often.map_or(Ok(()), |(call, _)| Err(format!("{call} ran three times")))
}
