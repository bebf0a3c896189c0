//! What must hold of a tree when nothing of it can go on any more.

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

use super::Again;
use super::hooks::Told;
use super::notes::Execution;
use super::people::Taken;
use super::settle::heads;
use super::story::Tally;

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
    /// The events of this session alone, without the history that a fork shares with its original.
    fn own(&self) -> &[RecordedEvent] {
        let fork = self.log.iter().rposition(|it| matches!(it.event, Event::Forked { .. }));
        &self.log[fork.map_or(0, |index| index + 1)..]
    }

    /// Whether the session is a fork, and the run was under way in the history that it shares. The fork shows
    /// that run as interrupted.
    fn forked_run_was_open(&self) -> bool {
        let shared = &self.log[..self.log.len() - self.own().len()];
        let last = shared.iter().rev().find_map(|it| match it.event {
            Event::RunStarted { .. } => Some(true),
            Event::RunEnded { .. } => Some(false),
            _ => None,
        });
        last.unwrap_or_default()
    }

    fn finishes(&self) -> impl Iterator<Item = &ToolFinish> {
        self.own().iter().filter_map(finish_of)
    }

    /// The results that the state reflects: not those that the session has gone back behind.
    fn standing(&self) -> Vec<&ToolFinish> {
        let mut standing: Vec<(u64, &ToolFinish)> = Vec::new();
        for recorded in &self.log {
            if let Event::Rewound { to } = recorded.event {
                standing.retain(|(seq, _)| *seq <= to);
            }
            standing.extend(finish_of(recorded).map(|finish| (recorded.seq, finish)));
        }
        standing.into_iter().map(|(_, finish)| finish).collect()
    }

    /// The tool that a call names, also if the session has gone back behind the call.
    fn tool_of(&self, call: &CallId) -> Option<&str> {
        let replies = self.log.iter().filter_map(|it| match &it.event {
            Event::ModelReplied(reply) => reply.message.as_ref(),
            _ => None,
        });
        let mut calls = replies.flat_map(|message| &message.tool_calls);
        calls.find(|made| made.id == *call).map(|made| &*made.name)
    }

    fn went_back_after(&self, seq: u64) -> bool {
        self.log.iter().any(|it| it.seq > seq && matches!(it.event, Event::Rewound { .. }))
    }

    fn finish(&self, call: &CallId) -> Option<&ToolFinish> {
        self.finishes().find(|finish| finish.call == *call)
    }

    fn has(&self, is: impl Fn(&Event) -> bool) -> bool {
        self.own().iter().any(|it| is(&it.event))
    }

    fn was_aborted(&self) -> bool {
        self.has(|event| matches!(event, Event::AbortRequested { .. }))
    }

    /// Whether a call was left without the child that it may have started: the session went back behind it, or
    /// gave it up.
    fn gave_up(&self, call: &CallId) -> bool {
        let refused = |error: &ErrorRecord| {
            // One execution of a part may have started the child before another one learned what a companion used.
            let is_late = error.is(ErrorCode::BudgetExceeded) && self.was_repeated();
            is_late || error.is(ErrorCode::CrashLoop)
        };
        let crashed = self.finish(call).is_some_and(
            |finish| matches!(&finish.outcome, ToolOutcome::Error(error) if refused(error)),
        );
        let made = self.log.iter().find(|it| match &it.event {
            Event::ModelReplied(reply) => Some(reply.step) == call.step(),
            _ => false,
        });
        crashed || made.is_some_and(|made| self.went_back_after(made.seq))
    }

    /// Whether a part of a run was tried again.
    fn was_repeated(&self) -> bool {
        self.has(|event| matches!(event, Event::PartRepeated { .. }))
    }

    /// Whether a run was superseded by another one.
    fn was_taken_over(&self) -> bool {
        self.fold.runs().any(|run| run.status == RunStatus::Superseded)
    }

    /// Whether the result of a call was recorded by a run that another one had superseded. The later run may have
    /// called the tool again before it read that result.
    fn was_handed_in(&self, call: &CallId) -> bool {
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

/// What was noted beside the logs.
#[derive(Debug, Clone, Default)]
pub struct Noted {
    /// Answers that were taken.
    pub answers: Vec<Taken>,
    /// What tools did.
    pub trace: Vec<Execution>,
    /// What hooks were told.
    pub told: Vec<Told>,
    /// How many processes died whose runs an engine went on with.
    pub outlived: usize,
}

/// What a tree is measured by.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The session at its top.
    pub root: SessionId,
    /// When facts were appended.
    pub durability: Durability,
    /// What its engine may have done again.
    pub again: Again,
    /// Whether stores did not answer at times. What streams show may be incomplete then, because runs do not
    /// wait for them for long, and results that an engine's part had may not get into the log.
    pub gaps: bool,
    /// Whether two executions of a part may write to the stream in turn. What they show of the same effect may be shown
    /// twice, or not at all.
    pub overlaps: bool,
    /// Whether another session had the root's id before. Its calls had the keys of this one's calls.
    pub reborn: bool,
}

/// Checks a tree that has come to its end.
///
/// # Errors
/// What is wrong, for people.
pub async fn check(
    store: &dyn StateStore,
    streams: &dyn StreamManager,
    expected: &Expected,
    Noted { answers, trace, told, outlived }: &Noted,
) -> Result<Tally, String> {
    let mut members = Members::new();
    let mut problems = Vec::new();
    let (again, root) = (expected.again, &expected.root);
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
    effects::check(expected, *outlived, &members, answers, trace, &mut problems);
    let counted =
        usage_of_tree(SessionReader::of(store), root).await.map_err(|error| error.to_string())?;
    relations::check(&members, &counted, &mut problems);
    if !expected.reborn {
        hooks::check(&members, again, told, &mut problems);
    }
    stream::check(streams, expected, &members, &mut problems).await?;
    if problems.is_empty() {
        return Ok(Tally {
            sessions: members.len(),
            deaths: 0,
            answers: answers.len(),
            executions: trace.len(),
            events: members.values().map(|member| member.log.len()).sum(),
        });
    }
    Err(problems.join("\n"))
}

/// The usage that the store keeps of each session is the one that its log says.
async fn of_usage(
    store: &dyn StateStore,
    root: &SessionId,
    members: &Members,
) -> Result<Vec<String>, String> {
    let filter = SessionFilter { root: Some(root.clone()), ..SessionFilter::default() };
    let page = Page { after: None, limit: MAX_PAGE };
    let kept = store.list_usage(&filter, &page).await.map_err(|error| error.to_string())?;
    let mut problems = Vec::new();
    for found in kept {
        let Some(member) = members.get(&found.head.session) else { continue };
        let is = member.fold.usage_rollup();
        if found.usage.as_deref() != Some(&is) {
            let (id, said) = (&found.head.session, found.usage);
            problems.push(format!("{id}: the store keeps the usage {said:?}, the log says {is:?}"));
        }
    }
    Ok(problems)
}

/// Of each log by itself: it folds, always to the same, its head agrees, it has ended, and no call
/// is without its one result.
async fn of_log(store: &dyn StateStore, member: &Member) -> Result<Vec<String>, String> {
    let (id, fold, head) = (member.fold.id(), &member.fold, &member.head);
    let mut problems = Vec::new();
    let again = load(store, id).await.map_err(|error| error.to_string())?;
    if format!("{fold:?}") != format!("{again:?}") {
        problems.push(format!("{id}: folded again it is another"));
    }
    let (said, is) = (&head.summary, fold.summary());
    let same = (said.status, &said.run, &said.runtime, said.pending)
        == (is.status, &is.run, &is.runtime, is.pending)
        && said.wake_at.is_some() == is.wake_at.is_some()
        && head.position == *fold.position();
    if !same {
        problems.push(format!("{id}: the head says {head:?}, the log {is:?}"));
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

/// Every reply's calls have their results right after it, each one, in call order.
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
