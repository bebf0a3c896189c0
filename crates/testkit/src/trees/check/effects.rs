//! Checks of effects and answers: nothing recorded is lost, and nothing happens twice.

use std::collections::BTreeMap;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::{Answer, Event, ToolOutcome};
use helix_agents_core::id::CallId;
use helix_agents_core::session::Durability;
use helix_agents_core::tool::EffectClass;

use super::super::Redelivery;
use super::super::notes::Execution;
use super::super::plan::{Done, result_of};
use super::super::users::{AcceptedAnswer, denies};
use super::{Expected, Member, Members};

pub(super) fn check(
    expected: &Expected,
    engine_recoveries: usize,
    members: &Members,
    answers: &[AcceptedAnswer],
    trace: &[Execution],
    problems: &mut Vec<String>,
) {
    let mut by_key: BTreeMap<&str, Vec<&Execution>> = BTreeMap::new();
    for execution in trace {
        let member = members.get(&execution.session);
        let may_run =
            member.is_some_and(|member| may_run_although_recorded(member, &execution.call));
        if execution.recorded && !expected.overlaps && !may_run {
            problems.push(format!("it was recorded and ran again: {execution:?}"));
        }
        by_key.entry(&execution.key).or_default().push(execution);
    }
    if !expected.recreated {
        for executions in by_key.values() {
            problems.extend(too_often(expected, engine_recoveries, members, executions));
        }
    }
    for taken in answers {
        match members.get(&taken.session) {
            Some(member) => problems.extend(lost(member, taken)),
            None => problems.push(format!("the session of {taken:?} is missing")),
        }
    }
    for member in members.values() {
        // The calls of the deleted session have the same keys, so this call may find that the other one has
        // acted.
        if !expected.recreated {
            problems.extend(invented(member, trace));
        }
        problems.extend(state(member));
        problems.extend(answered_twice(member));
    }
}

/// Returns `true` if a call may run after its result was recorded: by a later run that had not read the
/// result of an earlier one, or because a companion's report exhausted the budget just after the owner had
/// started the call.
fn may_run_although_recorded(member: &Member, call: &CallId) -> bool {
    let refused = member.finish(call).is_some_and(|finish| match &finish.outcome {
        ToolOutcome::Error(error) => error.is(ErrorCode::BudgetExceeded),
        _ => false,
    });
    refused || member.was_recorded_late(call)
}

fn class(tool: &str) -> EffectClass {
    match tool {
        "wire" | "pay" | "sign" => EffectClass::AtMostOnce,
        _ => EffectClass::Idempotent,
    }
}

fn too_often(
    expected: &Expected,
    engine_recoveries: usize,
    members: &Members,
    executions: &[&Execution],
) -> Option<String> {
    let redelivery = expected.redelivery;
    let first = executions.first()?;
    let times = executions.len();
    let member = members.get(&first.session)?;
    let most = match (class(&first.tool), member.finish(&first.call)) {
        (EffectClass::AtMostOnce, _) => 1,
        // An attempt whose result is not in the log is repeated, for example because its process was paused before it
        // recorded the result. Another check covers calls whose result is in the log.
        (_, _) if redelivery != Redelivery::Never => 2 * times_tried(executions) * member.runs(),
        (_, _) if member.was_recorded_late(&first.call) => member.runs() + engine_recoveries,
        // A step that was not recorded completely is repeated completely.
        (_, _) if expected.durability == Durability::PerStep => member.runs() + engine_recoveries,
        (_, Some(finish)) if finish.attempts > 0 => finish.attempts as usize + engine_recoveries,
        _ => member.runs() + engine_recoveries,
    };
    (times > most).then(|| format!("it ran {times} times, {most} at most: {executions:?}"))
}

/// Returns the highest number of attempts of one execution.
fn times_tried(executions: &[&Execution]) -> usize {
    let most = executions.iter().map(|execution| execution.attempt).max().unwrap_or_default();
    usize::try_from(most).unwrap_or(usize::MAX).saturating_add(1)
}

/// Returns the problem if an accepted answer had no effect.
fn lost(member: &Member, taken: &AcceptedAnswer) -> Option<String> {
    let id = member.fold.id();
    let answer = member.log.iter().find_map(|recorded| match &recorded.event {
        Event::Submitted { request, answer, .. } if *request == taken.request => {
            Some((recorded.seq, answer))
        }
        _ => None,
    });
    let Some((seq, answer)) = answer else {
        return Some(format!("{id}: the answer {taken:?} is not in the log"));
    };
    let Some(finish) = member.finish(&taken.call) else {
        if member.was_rewound_after(seq) {
            return None;
        }
        return Some(format!("{id}: the answered call {} has no result", taken.call));
    };
    let fits = match (answer, &finish.outcome) {
        (Answer::Returned(given), ToolOutcome::Success(result)) => given == result,
        (Answer::Approved { .. }, ToolOutcome::Success(result)) => {
            result.to_value() == result_of(id, &taken.call)
        }
        (Answer::Approved { .. }, ToolOutcome::Error(error)) => {
            // Whether the call acted may be unknown if processes crashed or were slow. The budget may also
            // have been exhausted.
            let unknown = ["tool_outcome_unknown", "tool_timeout", "budget_exceeded", "crash_loop"];
            unknown.contains(&&*error.code)
        }
        (answer, ToolOutcome::Error(_)) => denies(answer),
        _ => false,
    };
    // An aborted call has another result.
    let fits = fits || (member.was_aborted() && matches!(finish.outcome, ToolOutcome::Error(_)));
    (!fits).then(|| format!("{id}: {answer:?} led to {:?}", finish.outcome))
}

/// Returns successes without an execution.
fn invented(member: &Member, trace: &[Execution]) -> Vec<String> {
    let id = member.fold.id();
    let ran = |finish: &&helix_agents_core::event::ToolFinish| {
        let acted = matches!(&finish.outcome, ToolOutcome::Success(result)
            if result.to_value() == result_of(id, &finish.call));
        acted
            && !trace
                .iter()
                .any(|execution| execution.session == *id && execution.call == finish.call)
    };
    let invented = member.finishes().filter(ran);
    invented.map(|finish| format!("{id}: {} succeeded and never ran", finish.call)).collect()
}

/// Checks that the state contains each successful call of `work` once.
fn state(member: &Member) -> Option<String> {
    let state = serde_json::Value::clone(member.fold.state());
    let mut noted = serde_json::from_value::<Done>(state).unwrap_or_default().calls;
    noted.sort();
    let mut succeeded: Vec<_> = member
        .effective_finishes()
        .into_iter()
        .filter(|finish| matches!(finish.outcome, ToolOutcome::Success(_)))
        .filter(|finish| member.tool_of(&finish.call) == Some("work"))
        .map(|finish| finish.call.to_string())
        .collect();
    succeeded.sort();
    (noted != succeeded)
        .then(|| format!("{}: the state has {noted:?}, not {succeeded:?}", member.fold.id()))
}

fn answered_twice(member: &Member) -> Vec<String> {
    let mut calls = Vec::new();
    let mut problems = Vec::new();
    for recorded in &member.log {
        let Event::Submitted { call, .. } = &recorded.event else { continue };
        if calls.contains(&call) {
            problems.push(format!("{}: {call} was answered twice", member.fold.id()));
        }
        calls.push(call);
    }
    problems
}
