//! Checks of a tree in which nothing can continue any more.

mod effects;
mod hooks;
mod relations;
mod stream;

use std::collections::BTreeMap;

use helix_agents_core::error::{ErrorCode, ErrorRecord};
use helix_agents_core::event::{Event, RecordedEvent, ToolFinish, ToolOutcome};
use helix_agents_core::id::{CallId, SessionId};
use helix_agents_core::message::Message;
use helix_agents_core::session::{
    Durability, RunStatus, Session, SessionReader, load, load_events, usage_of_tree,
};
use helix_agents_core::store::{Head, MAX_PAGE, Page, SessionFilter, SessionStatus, StateStore};
use helix_agents_core::stream::StreamManager;

use super::Redelivery;
use super::hooks::HookCall;
use super::notes::Execution;
use super::settle::heads;
use super::story::Stats;
use super::users::AcceptedAnswer;

/// One session of the tree.
struct Member {
    head: Head,
    fold: Session,
    log: Vec<RecordedEvent>,
}

type Members = BTreeMap<SessionId, Member>;

fn finish_of(recorded: &RecordedEvent) -> Option<&ToolFinish> {
    match &recorded.event {
        Event::ToolFinished(finish) => Some(finish),
        _ => None,
    }
}

impl Member {
    /// Returns the events of this session alone, without the history that a fork shares with its origin.
    fn own(&self) -> &[RecordedEvent] {
        let fork =
            self.log.iter().rposition(|recorded| matches!(recorded.event, Event::Forked { .. }));
        &self.log[fork.map_or(0, |index| index + 1)..]
    }

    /// Returns `true` if the session is a fork whose shared history ends with an open run. The fork shows
    /// that run as interrupted.
    fn forked_run_was_open(&self) -> bool {
        let shared = &self.log[..self.log.len() - self.own().len()];
        let last = shared.iter().rev().find_map(|recorded| match recorded.event {
            Event::RunStarted { .. } => Some(true),
            Event::RunEnded { .. } => Some(false),
            _ => None,
        });
        last.unwrap_or_default()
    }

    fn finishes(&self) -> impl Iterator<Item = &ToolFinish> {
        self.own().iter().filter_map(finish_of)
    }

    /// Returns the results that the state reflects, without those that a rewind removed.
    fn effective_finishes(&self) -> Vec<&ToolFinish> {
        let mut effective: Vec<(u64, &ToolFinish)> = Vec::new();
        for recorded in &self.log {
            if let Event::Rewound { to } = recorded.event {
                effective.retain(|(seq, _)| *seq <= to);
            }
            effective.extend(finish_of(recorded).map(|finish| (recorded.seq, finish)));
        }
        effective.into_iter().map(|(_, finish)| finish).collect()
    }

    /// Returns the tool that a call names, even if a rewind removed the call.
    fn tool_of(&self, call: &CallId) -> Option<&str> {
        let replies = self.log.iter().filter_map(|recorded| match &recorded.event {
            Event::ModelReplied(reply) => reply.message.as_ref(),
            _ => None,
        });
        let mut calls = replies.flat_map(|message| &message.tool_calls);
        calls.find(|made| made.id == *call).map(|made| &*made.name)
    }

    fn was_rewound_after(&self, seq: u64) -> bool {
        self.log
            .iter()
            .any(|recorded| recorded.seq > seq && matches!(recorded.event, Event::Rewound { .. }))
    }

    fn finish(&self, call: &CallId) -> Option<&ToolFinish> {
        self.finishes().find(|finish| finish.call == *call)
    }

    fn has(&self, is: impl Fn(&Event) -> bool) -> bool {
        self.own().iter().any(|recorded| is(&recorded.event))
    }

    fn was_aborted(&self) -> bool {
        self.has(|event| matches!(event, Event::AbortRequested { .. }))
    }

    /// Returns `true` if a call ended without the child that it may have started, because of a rewind or
    /// because the call was refused.
    fn abandoned(&self, call: &CallId) -> bool {
        let refused = |error: &ErrorRecord| {
            // One execution of a work item may have started the child before another execution read the usage
            // of a companion.
            let is_late = error.is(ErrorCode::BudgetExceeded) && self.was_repeated();
            is_late || error.is(ErrorCode::CrashLoop)
        };
        let crashed = self.finish(call).is_some_and(
            |finish| matches!(&finish.outcome, ToolOutcome::Error(error) if refused(error)),
        );
        let made = self.log.iter().find(|recorded| match &recorded.event {
            Event::ModelReplied(reply) => Some(reply.step) == call.step(),
            _ => false,
        });
        crashed || made.is_some_and(|made| self.was_rewound_after(made.seq))
    }

    /// Returns `true` if a work item of a run was repeated.
    fn was_repeated(&self) -> bool {
        self.has(|event| matches!(event, Event::WorkItemRepeated { .. }))
    }

    /// Returns `true` if another run superseded a run of this session.
    fn was_taken_over(&self) -> bool {
        self.fold.runs().any(|run| run.status == RunStatus::Superseded)
    }

    /// Returns `true` if a superseded run recorded the result of a call. The later run may have executed the
    /// tool again before it read that result.
    fn was_recorded_late(&self, call: &CallId) -> bool {
        let mut owner = None;
        for recorded in &self.log {
            match &recorded.event {
                Event::RunStarted { run, .. } => owner = Some(run),
                Event::ToolFinished(finish) if finish.call == *call => {
                    return recorded.run.as_ref() != owner;
                }
                _ => {}
            }
        }
        false
    }

    fn runs(&self) -> usize {
        self.fold.runs().count()
    }
}

/// The records that were kept outside the logs.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    /// The answers that were accepted.
    pub answers: Vec<AcceptedAnswer>,
    /// The executions of tools.
    pub trace: Vec<Execution>,
    /// The calls of hooks.
    pub hook_calls: Vec<HookCall>,
    /// Number of crashed processes whose runs an engine continued.
    pub engine_recoveries: usize,
}

/// The conditions against which a tree is checked.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The root session of the tree.
    pub root: SessionId,
    /// The durability, which determines when events were appended.
    pub durability: Durability,
    /// The repetitions that the engine may have made.
    pub redelivery: Redelivery,
    /// Whether stores were unavailable at times. Streams may then be incomplete, because runs do not wait for
    /// them for long, and results of a work item may be missing from the log.
    pub gaps: bool,
    /// Whether two executions of a work item, or their requests, may overlap. A call may then run while the other
    /// execution records its result, and chunks of the same effect may be shown twice or not at all.
    pub overlaps: bool,
    /// Whether another session had the id of the root before. Its calls had the same keys as the calls of
    /// this one.
    pub recreated: bool,
}

/// Checks a tree that has ended.
///
/// # Errors
/// Returns a description of all problems.
pub async fn check(
    store: &dyn StateStore,
    streams: &dyn StreamManager,
    expected: &Expected,
    Observations { answers, trace, hook_calls, engine_recoveries }: &Observations,
) -> Result<Stats, String> {
    let mut members = Members::new();
    let mut problems = Vec::new();
    let (redelivery, root) = (expected.redelivery, &expected.root);
    for head in heads(store, root).await? {
        let id = head.session.clone();
        let fold =
            load(store, &id).await.map_err(|error| format!("{id} cannot be read: {error:?}"))?;
        let log = load_events(store, &id, 0).await.map_err(|error| error.to_string())?;
        let member = Member { head, fold, log };
        problems.extend(of_log(store, &member).await?);
        members.insert(id, member);
    }
    problems.extend(of_usage(store, root, &members).await?);
    effects::check(expected, *engine_recoveries, &members, answers, trace, &mut problems);
    let counted =
        usage_of_tree(SessionReader::of(store), root).await.map_err(|error| error.to_string())?;
    relations::check(&members, &counted, expected.recreated, &mut problems);
    if !expected.recreated {
        hooks::check(&members, redelivery, hook_calls, &mut problems);
    }
    stream::check(streams, expected, &members, &mut problems).await?;
    if problems.is_empty() {
        return Ok(Stats {
            sessions: members.len(),
            deaths: 0,
            answers: answers.len(),
            executions: trace.len(),
            events: members.values().map(|member| member.log.len()).sum(),
        });
    }
    Err(problems.join("\n"))
}

/// Checks that the usage that the store keeps of each session equals that of its log.
async fn of_usage(
    store: &dyn StateStore,
    root: &SessionId,
    members: &Members,
) -> Result<Vec<String>, String> {
    let filter = SessionFilter::new().root(root.clone());
    let page = Page { after: None, limit: MAX_PAGE };
    let kept = store.list_usage(&filter, &page).await.map_err(|error| error.to_string())?;
    let mut problems = Vec::new();
    for stored in kept {
        let Some(member) = members.get(&stored.head.session) else { continue };
        let is = member.fold.usage();
        if stored.usage.as_deref() != Some(is) {
            let (id, said) = (&stored.head.session, stored.usage);
            problems.push(format!("{id}: the store has the usage {said:?}, the log {is:?}"));
        }
    }
    Ok(problems)
}

/// Checks one log: it folds to the same state each time, its head agrees with it, its run has ended, and each
/// call has one result.
async fn of_log(store: &dyn StateStore, member: &Member) -> Result<Vec<String>, String> {
    let (id, fold, head) = (member.fold.id(), &member.fold, &member.head);
    let mut problems = Vec::new();
    let reloaded = load(store, id).await.map_err(|error| error.to_string())?;
    if *fold != reloaded {
        problems.push(format!("{id}: a second fold gives another state"));
    }
    let (said, is) = (&head.summary, fold.summary());
    let same = (said.status, &said.run, &said.runtime, said.pending)
        == (is.status, &is.run, &is.runtime, is.pending)
        && said.wake_at.is_some() == is.wake_at.is_some()
        && head.position == *fold.position();
    if !same {
        problems.push(format!("{id}: the head is {head:?}, the log gives {is:?}"));
    }
    if let Some(run) = fold.runs().find(|run| run.status == RunStatus::Running) {
        problems.push(format!("{id}: the run {} has not ended", run.id));
    }
    if fold.open_step().is_some() && fold.status() != SessionStatus::Failed {
        problems.push(format!("{id}: a step is open: {:?}", fold.open_step()));
    }
    problems.extend(unpaired(fold).into_iter().map(|call| format!("{id}: {call}")));
    Ok(problems)
}

/// Returns the calls without a result directly after their reply, in call order, and results out of place.
fn unpaired(fold: &Session) -> Vec<String> {
    let mut problems = Vec::new();
    let mut open: Vec<&CallId> = Vec::new();
    for message in fold.transcript() {
        match &**message {
            Message::Tool(result) if open.first() == Some(&&result.tool_call_id) => {
                open.remove(0);
            }
            Message::Tool(result) => {
                problems.push(format!("a result for {} out of place", result.tool_call_id));
            }
            Message::Assistant(reply) => {
                problems.extend(open.drain(..).map(|call| format!("no result for {call}")));
                open.extend(reply.tool_calls.iter().map(|call| &call.id));
            }
            _ => problems.extend(open.drain(..).map(|call| format!("no result for {call}"))),
        }
    }
    if fold.open_step().is_none() {
        problems.extend(open.into_iter().map(|call| format!("no result for {call}")));
    }
    problems
}
