//! Effects and answers: nothing that was recorded is lost, and nothing happens twice.

use std::collections::BTreeMap;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::{Answer, Event, ToolOutcome};
use helix_agents_core::id::CallId;
use helix_agents_core::session::Durability;
use helix_agents_core::tool::EffectClass;

use super::super::Again;
use super::super::notes::Execution;
use super::super::people::{Taken, denies};
use super::super::plan::{Done, result_of};
use super::{Expected, Member, Members};

pub(super) fn check(
    expected: &Expected,
    outlived: usize,
    members: &Members,
    answers: &[Taken],
    trace: &[Execution],
    problems: &mut Vec<String>,
) {
    let mut by_key: BTreeMap<&str, Vec<&Execution>> = BTreeMap::new();
    for execution in trace {
        let member = members.get(&execution.session);
        let may_run =
            member.is_some_and(|member| may_run_although_recorded(member, &execution.call));
        if execution.recorded && expected.again < Again::AtOnce && !may_run {
            problems.push(format!("it was on record and ran again: {execution:?}"));
        }
        by_key.entry(&execution.key).or_default().push(execution);
    }
    if !expected.reborn {
        for executions in by_key.values() {
            problems.extend(too_often(expected, outlived, members, executions));
        }
    }
    for taken in answers {
        match members.get(&taken.session) {
            Some(member) => problems.extend(lost(member, taken)),
            None => problems.push(format!("the session of {taken:?} is gone")),
        }
    }
    for member in members.values() {
        // A call has the key of a call of the deleted session, and may find that this one has acted.
        if !expected.reborn {
            problems.extend(invented(member, trace));
        }
        problems.extend(state(member));
        problems.extend(answered_twice(member));
    }
}

/// Whether a call may run after its result was recorded: by a later run that had not read the result of an earlier one,
/// or because the budget was used up by a companion whose report arrived just after the owner had started the call.
fn may_run_although_recorded(member: &Member, call: &CallId) -> bool {
    let refused = member.finish(call).is_some_and(|finish| match &finish.outcome {
        ToolOutcome::Error(error) => error.is(ErrorCode::BudgetExceeded),
        _ => false,
    });
    refused || member.was_handed_in(call)
}

fn class(tool: &str) -> EffectClass {
    match tool {
        "wire" | "pay" | "sign" => EffectClass::AtMostOnce,
        _ => EffectClass::Idempotent,
    }
}

fn too_often(
    expected: &Expected,
    outlived: usize,
    members: &Members,
    executions: &[&Execution],
) -> Option<String> {
    let again = expected.again;
    let first = executions.first()?;
    let times = executions.len();
    let member = members.get(&first.session)?;
    let most = match (class(&first.tool), member.finish(&first.call)) {
        (EffectClass::AtMostOnce, _) => 1,
        // A try whose result did not get into the log is done again.
        (_, _) if again >= Again::Dropped || (again == Again::Later && expected.gaps) => {
            2 * times_tried(executions) * member.runs()
        }
        (_, _) if member.was_handed_in(&first.call) => member.runs() + outlived,
        // A step that was not recorded whole is repeated whole.
        (_, _) if expected.durability == Durability::PerStep => member.runs() + outlived,
        (_, Some(finish)) if finish.attempts > 0 => finish.attempts as usize + outlived,
        _ => member.runs() + outlived,
    };
    (times > most).then(|| format!("it ran {times} times, {most} at most: {executions:?}"))
}

/// How often one of those who carried a call out tried it.
fn times_tried(executions: &[&Execution]) -> usize {
    let most = executions.iter().map(|execution| execution.attempt).max().unwrap_or_default();
    usize::try_from(most).unwrap_or(usize::MAX).saturating_add(1)
}

/// What became of an answer that was taken.
fn lost(member: &Member, taken: &Taken) -> Option<String> {
    let id = member.fold.id();
    let answer = member.log.iter().find_map(|it| match &it.event {
        Event::Submitted { request, answer, .. } if *request == taken.request => {
            Some((it.seq, answer))
        }
        _ => None,
    });
    let Some((seq, answer)) = answer else {
        return Some(format!("{id}: the answer {taken:?} is not in the log"));
    };
    let Some(finish) = member.finish(&taken.call) else {
        if member.went_back_after(seq) {
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
            // Whether it acted may not be known, if processes died or were slow; or nothing of the budget was left.
            let unknown = ["tool_outcome_unknown", "tool_timeout", "budget_exceeded", "crash_loop"];
            unknown.contains(&&*error.code)
        }
        (answer, ToolOutcome::Error(_)) => denies(answer),
        _ => false,
    };
    // What was aborted in between has another result.
    let fits = fits || (member.was_aborted() && matches!(finish.outcome, ToolOutcome::Error(_)));
    (!fits).then(|| format!("{id}: {answer:?} came to {:?}", finish.outcome))
}

/// Successes that no execution stands behind.
fn invented(member: &Member, trace: &[Execution]) -> Vec<String> {
    let id = member.fold.id();
    let ran = |finish: &&helix_agents_core::event::ToolFinish| {
        let acted = matches!(&finish.outcome, ToolOutcome::Success(result)
            if result.to_value() == result_of(id, &finish.call));
        acted && !trace.iter().any(|it| it.session == *id && it.call == finish.call)
    };
    let invented = member.finishes().filter(ran);
    invented.map(|finish| format!("{id}: {} succeeded and never ran", finish.call)).collect()
}

/// Every call of `work` that succeeded is in the state, once.
fn state(member: &Member) -> Option<String> {
    let state = serde_json::Value::clone(member.fold.state());
    let mut noted = serde_json::from_value::<Done>(state).unwrap_or_default().calls;
    noted.sort();
    let mut succeeded: Vec<_> = member
        .standing()
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
    for it in &member.log {
        let Event::Submitted { call, .. } = &it.event else { continue };
        if calls.contains(&call) {
            problems.push(format!("{}: {call} was answered twice", member.fold.id()));
        }
        calls.push(call);
    }
    problems
}
