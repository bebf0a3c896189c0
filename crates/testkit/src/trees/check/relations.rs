//! Checks of the relations between parents and children.

use helix_agents_core::agent::CompanionMode;
use helix_agents_core::event::{ChildStart, Event, ParentRef, ToolFinish, ToolOutcome};
use helix_agents_core::message::Message;
use helix_agents_core::session::RunStatus;
use helix_agents_core::usage::{Usage, UsageRollup};

use super::{Member, Members};

pub(super) fn check(
    members: &Members,
    counted: &UsageRollup,
    recreated: bool,
    problems: &mut Vec<String>,
) {
    for member in members.values() {
        if let Some(parent) = member.fold.parent() {
            problems.extend(below(members, member, parent, recreated));
        }
        for finish in member.finishes() {
            problems.extend(ended(members, member, finish));
        }
    }
    problems.extend(usage(members, counted));
}

fn start<'a>(member: &'a Member, call: &helix_agents_core::id::CallId) -> Option<&'a ChildStart> {
    member.log.iter().find_map(|recorded| match &recorded.event {
        Event::ChildStarted(start) if start.call == *call => Some(&**start),
        _ => None,
    })
}

/// Checks that the parent knows its child, and that the child got the message of the parent's call.
fn below(members: &Members, child: &Member, parent: &ParentRef, recreated: bool) -> Option<String> {
    let id = child.fold.id();
    let Some(above) = members.get(&parent.session) else {
        return Some(format!("{id}: its parent {} is missing", parent.session));
    };
    match start(above, &parent.call) {
        Some(start) if start.session == *id && start.agent == *child.fold.agent() => {}
        Some(start) => return Some(format!("{id}: its parent recorded {start:?}")),
        // The caller was stopped before it could record the start.
        None if above.was_aborted() || above.abandoned(&parent.call) => return None,
        // A run of the deleted session may have created the child late.
        None if recreated => return None,
        None => return Some(format!("{id}: its parent does not know it")),
    }
    let call = above.fold.tool_call(&parent.call)?;
    let sent = call.arguments.as_json()?.to_value()["message"].as_str().map(str::to_owned);
    let got = child.fold.transcript().iter().find_map(|message| match &**message {
        Message::User(message) => Some(message.content.clone()),
        _ => None,
    });
    (sent != got).then(|| format!("{id}: it received {got:?}, and its caller sent {sent:?}"))
}

/// Checks that the result of a call equals the outcome of the child that it waited for.
fn ended(members: &Members, member: &Member, finish: &ToolFinish) -> Option<String> {
    let id = member.fold.id();
    let start = start(member, &finish.call)?;
    let Some(child) = members.get(&start.session) else {
        return Some(format!("{id}: the child {} is missing", start.session));
    };
    let used = finish.child.as_deref()?;
    if start.companion.is_some() {
        let ToolOutcome::Success(reported) = &finish.outcome else { return None };
        let reported = reported.to_value();
        let known = child.fold.runs().any(|run| {
            let output = run.output.as_ref().map(helix_agents_core::json::Json::to_value);
            reported["status"] == run.status.as_str()
                && reported["output"] == output.unwrap_or_default()
        });
        return (!known).then(|| {
            format!("{id}: {} reported {reported}, which was never its outcome", start.session)
        });
    }
    let last = child.fold.last_run()?;
    let same = match (&finish.outcome, last.status) {
        (ToolOutcome::Success(result), RunStatus::Completed) => {
            last.output.as_ref() == Some(result)
        }
        (ToolOutcome::Error(_), RunStatus::Failed | RunStatus::Aborted) => true,
        _ => false,
    };
    if !same {
        let (outcome, status) = (&finish.outcome, last.status);
        return Some(format!("{id}: {} ended {status:?}, the call {outcome:?}", start.session));
    }
    let (is, used) = (total(&child.fold.tree_usage()), total(used));
    // Usage of concurrent companions that outlived the child is reported to the child alone.
    let wrong = if has_concurrent(members, child) { is.1 < used.1 } else { is != used };
    wrong.then(|| format!("{id}: {} used {is:?}, the call says {used:?}", start.session))
}

/// Returns tokens, model calls and tool calls.
fn total(used: &UsageRollup) -> (Usage, u64, u64) {
    (used.tokens, used.steps, used.tool_calls)
}

fn starts_concurrent(member: &Member) -> bool {
    member.has(|event| {
        matches!(event, Event::ChildStarted(start)
            if start.companion.as_ref().is_some_and(|companion| companion.mode == CompanionMode::NonBlocking))
    })
}

/// Returns `true` if the tree below contains a session that works concurrently to its parent.
fn has_concurrent(members: &Members, member: &Member) -> bool {
    let of = member.fold.id();
    let below =
        members.values().filter(|child| child.fold.parent().is_some_and(|up| up.session == *of));
    starts_concurrent(member) || below.into_iter().any(|child| has_concurrent(members, child))
}

/// Returns the number of steps that a fork shares with its origin.
fn shared_steps(member: &Member) -> u32 {
    member.fold.forked().map_or(0, |origin| origin.step)
}

/// Checks that the usage of the tree is the sum over all sessions.
fn usage(members: &Members, counted: &UsageRollup) -> Option<String> {
    let mut sum = UsageRollup::default();
    for member in members.values() {
        sum.tokens += member.fold.usage().tokens;
        sum.steps += u64::from(member.fold.last_step() - shared_steps(member));
        sum.tool_calls += member.fold.usage().tool_calls;
    }
    (total(counted) != total(&sum))
        .then(|| format!("the tree counts {counted:?}, the sessions used {sum:?}"))
}
