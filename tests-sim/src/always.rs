//! What must hold after every single append.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::{Event, RecordedEvent, RunOutcome, ToolOutcome, decode};
use helix_agents_core::id::{CallId, RequestId, RunId, SessionId};
use helix_agents_core::session::{RunStatus, Session};
use helix_agents_core::store::StoredAppend;
use helix_agents_core::stream::{Batch, StreamOp};
use helix_agents_testkit::trees::RunProcesses;
use tokio::time::Instant;

use crate::marks::{Mark, Reached};

/// Added to a lease before a takeover of a healthy owner is called wrong: clocks drift, and timers
/// have a grain.
const GRAIN: Duration = Duration::from_millis(300);

/// One session's log so far.
#[derive(Debug)]
struct Watched {
    fold: Session,
    /// The runs after which another one began.
    followed: BTreeSet<Option<RunId>>,
    aborted: bool,
    interrupted: Option<Interrupted>,
    /// How many callers are resuming or executing it: they may overrule an interrupt.
    resumers: usize,
    /// How many model calls it may make, and how many it has made.
    steps: Option<u64>,
    replies: u64,
    /// The messages that were queued, by their requests.
    messages: BTreeSet<RequestId>,
    /// Until when each call waits for people.
    deadlines: BTreeMap<CallId, Timestamp>,
    /// The calls whose children wait for an answer.
    waiting: BTreeSet<CallId>,
}

/// A request to interrupt a session that has not been honoured.
#[derive(Debug)]
struct Interrupted {
    request: RequestId,
    /// How many replies there were since.
    replies: u32,
    /// Whether a caller has resumed or executed the session since.
    resumed: bool,
}

/// Watches all logs.
#[derive(Debug)]
pub(crate) struct Always {
    sessions: BTreeMap<SessionId, Watched>,
    lives: RunProcesses,
    lease: Duration,
    reached: Reached,
    /// Until when something keeps a process from showing that it is alive.
    troubles: BTreeMap<usize, Instant>,
    /// The sessions that were forked from others.
    forks: BTreeSet<SessionId>,
    /// When each run showed last that it is alive; none if its owner gave it up.
    signs: BTreeMap<RunId, Option<Instant>>,
    pub(crate) problems: Vec<String>,
}

impl Always {
    pub(crate) fn new(lives: RunProcesses, lease: Duration, reached: Reached) -> Self {
        let (sessions, troubles, forks, signs, problems) = Default::default();
        Self { sessions, lives, lease, reached, troubles, forks, signs, problems }
    }

    /// Notes that something keeps a process from showing that it is alive for so long from now.
    pub(crate) fn trouble(&mut self, process: usize, lasts: Duration) {
        let until = Instant::now() + lasts;
        let known = self.troubles.entry(process).or_insert(until);
        *known = until.max(*known);
    }

    /// Whether nothing kept a process from showing that it is alive for a lease.
    pub(crate) fn is_healthy(&self, process: usize) -> bool {
        let recovers = self.lease + self.lease / 20 + GRAIN;
        self.troubles.get(&process).is_none_or(|until| Instant::now() > *until + recovers)
    }

    /// Whether something kept a process from showing that it is alive at any time.
    pub(crate) fn was_troubled(&self, process: usize) -> bool {
        self.troubles.contains_key(&process)
    }

    /// Notes that a run shows that it is alive, or that its owner gives it up.
    pub(crate) fn shows(&mut self, run: &RunId, is_alive: bool) {
        let sign = is_alive.then(Instant::now);
        let known = self.signs.entry(run.clone()).or_insert(sign);
        // A renewal that comes twice is no sign of a run that was given up.
        *known = sign.filter(|_| known.is_some());
    }

    /// Whether a run has shown that it is alive since the last trouble of its process, and its owner has
    /// not given it up.
    fn is_carried_out(&self, run: &RunId, process: usize) -> bool {
        let trouble = self.troubles.get(&process);
        let sign = self.signs.get(run).copied().flatten();
        sign.is_some_and(|sign| trouble.is_none_or(|until| sign > *until))
    }

    /// Notes that a caller resumes a session, or has stopped to.
    pub(crate) fn resumes(&mut self, session: &SessionId, begins: bool) {
        let watched = self.watched(session);
        watched.resumers =
            if begins { watched.resumers + 1 } else { watched.resumers.saturating_sub(1) };
        if let Some(interrupted) = &mut watched.interrupted {
            interrupted.resumed = true;
        }
    }

    /// Some sessions are gone; those that begin under their ids are others.
    pub(crate) fn forget(&mut self, is_gone: impl Fn(&SessionId) -> bool) {
        self.sessions.retain(|session, _| !is_gone(session));
    }

    /// The sessions that were forked from others.
    pub(crate) fn forks(&self) -> impl Iterator<Item = SessionId> {
        self.forks.iter().cloned()
    }

    /// Takes in the history that a fork shares with its original. It was judged when it happened.
    pub(crate) fn shared(&mut self, session: &SessionId, append: &StoredAppend) {
        let events = decode(session, append).unwrap_or_default();
        for recorded in &events {
            if let Err(error) = self.watched(session).fold.apply_recorded(recorded) {
                self.wrong(session, &format!("a shared event is not legal: {error:?}"));
            }
        }
    }

    /// Takes a new append in.
    pub(crate) fn appended(&mut self, session: &SessionId, append: &StoredAppend) {
        let events = match decode(session, append) {
            Ok(events) => events,
            Err(error) => return self.wrong(session, &format!("it cannot be read: {error:?}")),
        };
        // The append that makes a fork repeats the end of the shared history.
        let fork = events.iter().position(|it| matches!(it.event, Event::Forked { .. }));
        let is_late = append.run.as_ref().is_some_and(|run| self.is_superseded(session, run));
        if is_late && events.iter().any(|it| matches!(it.event, Event::ToolFinished(_))) {
            self.reached.note(Mark::LateResult);
        }
        for (index, recorded) in events.iter().enumerate() {
            if fork.is_none_or(|fork| index >= fork) {
                self.event(session, recorded);
            }
            let watched = self.watched(session);
            if let Err(error) = watched.fold.apply_recorded(recorded) {
                self.wrong(session, &format!("an event is not legal: {error:?}\n{recorded:?}"));
            }
        }
    }

    fn event(&mut self, session: &SessionId, recorded: &RecordedEvent) {
        let watched = self.watched(session);
        match &recorded.event {
            Event::RunStarted { after, clears, budget, .. } => {
                watched.steps = budget.as_ref().map_or(watched.steps, |budget| budget.steps);
                let owner = watched.fold.current_run().map(|run| run.id.clone());
                let child = watched.fold.open_children().next().is_some();
                let waits = child && !watched.waiting.is_empty();
                let asked = watched.aborted || watched.interrupted.is_some();
                let first = watched.followed.insert(after.clone());
                let is_root = watched.fold.parent().is_none();
                let cleared = watched
                    .interrupted
                    .take_if(|interrupted| clears.as_ref() == Some(&interrupted.request));
                if is_root && cleared.is_some_and(|interrupted| !interrupted.resumed) {
                    self.wrong(session, "its interrupt was cleared, and no caller had resumed it");
                }
                if !first {
                    self.wrong(session, &format!("two runs began after {after:?}"));
                }
                if owner.is_some() && waits {
                    self.reached.note(Mark::TakeoverWithWaitingChild);
                }
                if let Some(owner) = owner {
                    self.taken_over(session, &owner, child, asked);
                }
            }
            // The turn goes on, and with it the requests.
            Event::RunEnded { outcome: RunOutcome::Suspended { on } } if !watched.aborted => {
                for pending in &on.calls {
                    if let Some(deadline) = pending.deadline {
                        watched.deadlines.insert(pending.call.clone(), deadline);
                    }
                }
            }
            Event::RunEnded { outcome } => {
                let is_lost = watched.aborted && !matches!(outcome, RunOutcome::Aborted { .. });
                (watched.aborted, watched.interrupted) = (false, None);
                if let RunOutcome::Failed { error } = outcome {
                    if error.is(ErrorCode::BudgetExceeded) {
                        self.reached.note(Mark::BudgetUsedUp);
                    }
                    if error.is(ErrorCode::CrashLoop) {
                        self.reached.note(Mark::CrashLoop);
                    }
                }
                if is_lost {
                    self.wrong(session, &format!("it was to be aborted, and ended: {outcome:?}"));
                }
            }
            Event::AbortRequested { .. } => {
                watched.aborted = true;
                self.reached.note(Mark::Abort);
            }
            Event::InterruptRequested { request, .. } => {
                // A later request takes the place of an earlier one.
                let replies = watched.interrupted.take().map_or(0, |earlier| earlier.replies);
                let (request, resumed) = (request.clone(), watched.resumers > 0);
                watched.interrupted = Some(Interrupted { request, replies, resumed });
                self.reached.note(Mark::Interrupt);
            }
            Event::ModelReplied(reply) => {
                watched.replies += 1;
                let over = watched.steps.filter(|steps| watched.replies > *steps);
                let replies = watched.interrupted.as_mut().map_or(0, |interrupted| {
                    interrupted.replies += 1;
                    interrupted.replies
                });
                if let Some(steps) = over {
                    self.wrong(session, &format!("it may make {steps} model calls, and made more"));
                }
                if replies > 1 {
                    let step = reply.step;
                    self.wrong(session, &format!("it was interrupted, and went on to step {step}"));
                }
            }
            Event::Submitted { call, .. } => {
                let is_late = watched.deadlines.get(call).is_some_and(|it| recorded.at > *it);
                self.reached.note(Mark::Answer);
                if is_late {
                    self.wrong(session, &format!("{call} was answered after its deadline"));
                }
            }
            Event::MessageQueued { from, request, .. } => {
                let is_new = watched.messages.insert(request.clone());
                if from.is_none() {
                    self.reached.note(Mark::Message);
                }
                if !is_new {
                    self.wrong(session, &format!("the message {request} was queued twice"));
                }
            }
            Event::ChildWaiting { call } => {
                watched.waiting.insert(call.clone());
            }
            Event::ToolFinished(finish) => {
                watched.waiting.remove(&finish.call);
                if let ToolOutcome::Error(error) = &finish.outcome {
                    let deadline = watched.deadlines.get(&finish.call);
                    if deadline.is_some_and(|deadline| recorded.at > *deadline) {
                        self.reached.note(Mark::DeadlinePassed);
                    }
                    if error.is(ErrorCode::ToolOutcomeUnknown) {
                        self.reached.note(Mark::OutcomeUnknown);
                    }
                }
            }
            Event::Rewound { .. } => self.reached.note(Mark::Rewind),
            Event::Forked { .. } => {
                self.reached.note(Mark::Fork);
                self.forks.insert(session.clone());
            }
            _ => {}
        }
    }

    /// A run that had not ended has another one after it: its owner was dead, stood still, or could
    /// not reach the store.
    fn taken_over(&mut self, session: &SessionId, owner: &RunId, child: bool, asked: bool) {
        let Some(life) = self.lives.of(owner) else { return };
        if life.is_over() {
            self.reached.note(Mark::TakeoverOfDead);
        } else if life.is_still() {
            self.reached.note(Mark::TakeoverOfStill);
        } else if self.is_healthy(life.number()) && self.is_carried_out(owner, life.number()) {
            let number = life.number();
            self.wrong(session, &format!("{owner} of the healthy process {number} was taken over"));
        }
        if child {
            self.reached.note(Mark::TakeoverWithChild);
        }
        if asked {
            self.reached.note(Mark::TakeoverAfterRequest);
        }
    }

    /// Whether a run was superseded by another one.
    pub(crate) fn is_superseded(&self, session: &SessionId, run: &RunId) -> bool {
        let watched = self.sessions.get(session);
        let run = watched.and_then(|watched| watched.fold.run(run));
        run.is_some_and(|run| run.status == RunStatus::Superseded)
    }

    /// Whether a batch is of a run whose session was deleted, while another session has its id.
    pub(crate) fn is_of_deleted(&self, batch: &Batch) -> bool {
        let Some(watched) = self.sessions.get(&batch.writer.session) else { return false };
        let run = batch.ops.iter().find_map(|op| match op {
            StreamOp::Begin { origin, .. } => Some(&origin.run),
            StreamOp::Chunks { chunks, .. } => chunks.first().map(|chunk| &chunk.run),
            StreamOp::Watermark(mark) => Some(&mark.origin.run),
        });
        let has_runs = watched.fold.last_run().is_some();
        has_runs && run.is_some_and(|run| watched.fold.run(run).is_none())
    }

    fn watched(&mut self, session: &SessionId) -> &mut Watched {
        self.sessions.entry(session.clone()).or_insert_with(|| Watched {
            fold: Session::new(session.clone()),
            followed: BTreeSet::new(),
            aborted: false,
            interrupted: None,
            resumers: 0,
            steps: None,
            replies: 0,
            messages: BTreeSet::new(),
            deadlines: BTreeMap::new(),
            waiting: BTreeSet::new(),
        })
    }

    pub(crate) fn wrong(&mut self, session: &SessionId, what: &str) {
        self.problems.push(format!("{session}: {what}"));
    }
}
