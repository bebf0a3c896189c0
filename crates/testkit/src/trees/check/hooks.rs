//! Checks of hooks: they ran in order, once in a run, and a run that ended skipped none.

use std::collections::BTreeMap;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::{Event, ToolOutcome};
use helix_agents_core::id::{CallId, RunId, SessionId};
use helix_agents_core::session::{RunRecord, RunStatus};

use super::super::Redelivery;
use super::super::hooks::{Hook, HookCall};
use super::{Member, Members};

type Of<'a> = (&'a SessionId, &'a RunId, &'a CallId);

pub(super) fn check(
    members: &Members,
    redelivery: Redelivery,
    hook_calls: &[HookCall],
    problems: &mut Vec<String>,
) {
    let mut of_calls: BTreeMap<Of<'_>, Vec<Hook>> = BTreeMap::new();
    for call in hook_calls {
        of_calls.entry((&call.session, &call.run, &call.call)).or_default().push(call.hook);
    }
    for (of, hooks) in &of_calls {
        // The hook before a call runs again if the call is repeated.
        let mut after = hooks.clone();
        after.retain(|hook| *hook != Hook::BeforeTool);
        let repeated = after.windows(2).any(|pair| pair[0] >= pair[1]);
        if redelivery == Redelivery::Never && (repeated || !hooks.is_sorted()) {
            problems.push(format!("the hooks of {of:?} ran as {hooks:?}"));
        }
    }
    if redelivery == Redelivery::AtOnce {
        // Each of two executions may have left it to the other one.
        return;
    }
    for member in members.values() {
        problems.extend(skipped(member, &of_calls));
    }
}

/// Returns results that a completed run recorded without calling all hooks. A superseded run may have crashed
/// between a result and its hooks, and a call without attempts was answered without a tool.
fn skipped(member: &Member, of_calls: &BTreeMap<Of<'_>, Vec<Hook>>) -> Vec<String> {
    let id = member.fold.id();
    let mut problems = Vec::new();
    for recorded in member.own() {
        let (Event::ToolFinished(finish), Some(run)) = (&recorded.event, &recorded.run) else {
            continue;
        };
        // The hooks are skipped if their process crashes every time.
        let looped = |run: &RunRecord| {
            run.error.as_ref().is_some_and(|error| error.is(ErrorCode::CrashLoop))
        };
        let lived = member
            .fold
            .run(run)
            .is_some_and(|run| run.status != RunStatus::Superseded && !looped(run));
        if finish.attempts == 0 || !lived {
            continue;
        }
        let hooks = of_calls.get(&(id, run, &finish.call)).map_or(&[][..], Vec::as_slice);
        let mut expected = vec![Hook::OnMessage, Hook::AfterTool];
        if matches!(finish.outcome, ToolOutcome::Success(_)) && !finish.state_patch.is_empty() {
            expected.push(Hook::OnStateChange);
        }
        if let Some(hook) = expected.iter().find(|hook| !hooks.contains(hook)) {
            problems.push(format!("{id}: {hook:?} was not called for {}: {hooks:?}", finish.call));
        }
    }
    problems
}
