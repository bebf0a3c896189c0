//! Invariants that must hold after every append.

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

use crate::marks::{LONG_LOG, Mark, Reached};

/// Tolerance added to a lease before a takeover from a healthy owner counts as wrong. It covers clock drift and timer
/// granularity.
const TOLERANCE: Duration = Duration::from_millis(300);

/// The log of one session so far, as folded state and as counters for the checks.
#[derive(Debug)]
struct Watched {
    fold: Session,
    /// The predecessors of all runs: each run may be followed by one other run.
    followed: BTreeSet<Option<RunId>>,
    aborted: bool,
    interrupted: Option<Interrupted>,
    /// The limit of model calls, if there is one. `replies` counts the calls that were made.
    steps: Option<u64>,
    replies: u64,
    /// The limit of tokens, if there is one. `used_tokens` counts those of the session's own model calls.
    tokens: Option<u64>,
    used_tokens: u64,
    /// The request ids of the queued messages.
    messages: BTreeSet<RequestId>,
    /// The deadline of each pending call.
    deadlines: BTreeMap<CallId, Timestamp>,
    /// The calls whose children wait for an answer.
    waiting: BTreeSet<CallId>,
    /// Whether a run of the session has written to a stream.
    has_written: bool,
}

/// A request to interrupt a session that no run has honoured yet.
#[derive(Debug)]
struct Interrupted {
    request: RequestId,
    /// The number of model replies since the request.
    replies: u32,
    /// Whether a caller has resumed or executed the session since the request.
    resumed: bool,
}

/// Checks the logs of all sessions.
#[derive(Debug)]
pub(crate) struct Invariants {
    sessions: BTreeMap<SessionId, Watched>,
    /// The number of callers that are resuming or executing each session. They may overrule an interrupt. If the
    /// session is deleted and created again during the call, they resume the new session.
    resumers: BTreeMap<SessionId, usize>,
    lives: RunProcesses,
    lease: Duration,
    reached: Reached,
    /// Per process, the end of the latest fault that keeps it from renewing its leases.
    troubles: BTreeMap<usize, Instant>,
    /// The sessions that are forks of other sessions.
    forks: BTreeSet<SessionId>,
    /// The time of each run's last sign of life. `None` if its owner released the lease.
    signs: BTreeMap<RunId, Option<Instant>>,
    pub(crate) problems: Vec<String>,
}

impl Invariants {
    pub(crate) fn new(lives: RunProcesses, lease: Duration, reached: Reached) -> Self {
        let (sessions, resumers, troubles, forks, signs, problems) = Default::default();
        Self { sessions, resumers, lives, lease, reached, troubles, forks, signs, problems }
    }

    /// Records a fault that keeps a process from renewing its leases for the given time from now.
    pub(crate) fn record_trouble(&mut self, process: usize, lasts: Duration) {
        let until = Instant::now() + lasts;
        let known = self.troubles.entry(process).or_insert(until);
        *known = until.max(*known);
    }

    /// Returns `true` if no fault kept the process from renewing its leases during the last lease.
    pub(crate) fn is_healthy(&self, process: usize) -> bool {
        let recovers = self.lease + self.lease / 20 + TOLERANCE;
        self.troubles.get(&process).is_none_or(|until| Instant::now() > *until + recovers)
    }

    /// Returns `true` if any fault has ever kept the process from renewing its leases.
    pub(crate) fn had_trouble(&self, process: usize) -> bool {
        self.troubles.contains_key(&process)
    }

    /// Records that a run renewed its lease, or that its owner released it.
    pub(crate) fn record_sign(&mut self, run: &RunId, is_alive: bool) {
        let sign = is_alive.then(Instant::now);
        let known = self.signs.entry(run.clone()).or_insert(sign);
        // A repeated renewal is no sign of life of a run whose lease was released.
        *known = sign.filter(|_| known.is_some());
    }

    /// Returns `true` if the run has shown a sign of life since the last fault of its process, and its owner has not
    /// released the lease.
    fn has_sign_of_life(&self, run: &RunId, process: usize) -> bool {
        let trouble = self.troubles.get(&process);
        let sign = self.signs.get(run).copied().flatten();
        sign.is_some_and(|sign| trouble.is_none_or(|until| sign > *until))
    }

    /// Records that a caller starts or ends resuming a session.
    pub(crate) fn record_resume(&mut self, session: &SessionId, starts: bool) {
        let resumers = self.resumers.entry(session.clone()).or_default();
        *resumers = if starts { *resumers + 1 } else { resumers.saturating_sub(1) };
        let watched = self.watched(session);
        if let Some(interrupted) = &mut watched.interrupted {
            interrupted.resumed = true;
        }
    }

    /// Forgets deleted sessions. Sessions that are created later under the same ids are unrelated to them.
    pub(crate) fn forget(&mut self, is_gone: impl Fn(&SessionId) -> bool) {
        self.sessions.retain(|session, _| !is_gone(session));
    }

    /// Returns the sessions that are forks of other sessions.
    pub(crate) fn forks(&self) -> impl Iterator<Item = SessionId> {
        self.forks.iter().cloned()
    }

    /// Applies an append that a fork shares with its original. The append was checked when it was written.
    pub(crate) fn shared(&mut self, session: &SessionId, append: &StoredAppend) {
        let events = decode(session, append).unwrap_or_default();
        for recorded in &events {
            if let Err(error) = self.watched(session).fold.apply_recorded(recorded) {
                self.add_problem(session, &format!("a shared event is illegal: {error:?}"));
            }
        }
    }

    /// Checks a new append and applies it.
    pub(crate) fn appended(&mut self, session: &SessionId, append: &StoredAppend) {
        let events = match decode(session, append) {
            Ok(events) => events,
            Err(error) => {
                return self.add_problem(session, &format!("it cannot be read: {error:?}"));
            }
        };
        // The append that creates a fork repeats the end of the shared history.
        let fork =
            events.iter().position(|recorded| matches!(recorded.event, Event::Forked { .. }));
        let is_late = append.run.as_ref().is_some_and(|run| self.is_superseded(session, run));
        if is_late && events.iter().any(|recorded| matches!(recorded.event, Event::ToolFinished(_)))
        {
            self.reached.note(Mark::LateResult);
        }
        if (append.first..append.first + u64::from(append.count)).contains(&LONG_LOG) {
            self.reached.note(Mark::LongLog);
        }
        for (index, recorded) in events.iter().enumerate() {
            if fork.is_none_or(|fork| index >= fork) {
                self.event(session, recorded);
            }
            let watched = self.watched(session);
            if let Err(error) = watched.fold.apply_recorded(recorded) {
                self.add_problem(session, &format!("an event is illegal: {error:?}\n{recorded:?}"));
            }
        }
    }

    fn event(&mut self, session: &SessionId, recorded: &RecordedEvent) {
        let has_resumers = self.resumers.get(session).is_some_and(|resumers| *resumers > 0);
        let watched = self.watched(session);
        match &recorded.event {
            Event::RunStarted { after, clears, budget, .. } => {
                if let Some(budget) = budget {
                    (watched.steps, watched.tokens) = (budget.steps, budget.tokens);
                }
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
                    self.add_problem(
                        session,
                        "its interrupt was cleared, and no caller had resumed it",
                    );
                }
                if !first {
                    self.add_problem(session, &format!("two runs started after {after:?}"));
                }
                if owner.is_some() && waits {
                    self.reached.note(Mark::TakeoverWithWaitingChild);
                }
                if let Some(owner) = owner {
                    self.taken_over(session, &owner, child, asked);
                }
            }
            // The turn continues, and its requests stay valid.
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
                    self.add_problem(
                        session,
                        &format!("an abort was requested, and it ended: {outcome:?}"),
                    );
                }
            }
            Event::AbortRequested { .. } => {
                watched.aborted = true;
                self.reached.note(Mark::Abort);
            }
            Event::InterruptRequested { request, .. } => {
                // A later request replaces an earlier one.
                let replies = watched.interrupted.take().map_or(0, |earlier| earlier.replies);
                let (request, resumed) = (request.clone(), has_resumers);
                watched.interrupted = Some(Interrupted { request, replies, resumed });
                self.reached.note(Mark::Interrupt);
            }
            Event::ModelReplied(reply) => {
                watched.replies += 1;
                let over = watched.steps.filter(|steps| watched.replies > *steps);
                let used = watched.used_tokens;
                let used_up = watched.tokens.filter(|tokens| used >= *tokens);
                watched.used_tokens += reply.usage.total();
                let replies = watched.interrupted.as_mut().map_or(0, |interrupted| {
                    interrupted.replies += 1;
                    interrupted.replies
                });
                if let Some(steps) = over {
                    self.add_problem(
                        session,
                        &format!("its limit is {steps} model calls, and it made more"),
                    );
                }
                if let Some(tokens) = used_up {
                    self.add_problem(
                        session,
                        &format!(
                            "its limit is {tokens} tokens, and it called the model after {used}"
                        ),
                    );
                }
                if replies > 1 {
                    let step = reply.step;
                    self.add_problem(
                        session,
                        &format!("it was interrupted, and continued with step {step}"),
                    );
                }
            }
            Event::Submitted { call, .. } => {
                let is_late =
                    watched.deadlines.get(call).is_some_and(|deadline| recorded.at > *deadline);
                self.reached.note(Mark::Answer);
                if is_late {
                    self.add_problem(session, &format!("{call} was answered after its deadline"));
                }
            }
            Event::MessageQueued { from, request, .. } => {
                let is_new = watched.messages.insert(request.clone());
                if from.is_none() {
                    self.reached.note(Mark::Message);
                }
                if !is_new {
                    self.add_problem(session, &format!("the message {request} was queued twice"));
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
                    if error.is(ErrorCode::ToolResultTooLarge) {
                        self.reached.note(Mark::Replaced);
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

    /// Checks a run that started although its predecessor had not ended. The takeover is legal if the predecessor's
    /// process had crashed, was stalled, or could not reach the store.
    fn taken_over(&mut self, session: &SessionId, owner: &RunId, child: bool, asked: bool) {
        let Some(life) = self.lives.of(owner) else { return };
        if life.is_over() {
            self.reached.note(Mark::TakeoverOfDead);
        } else if life.is_still() {
            self.reached.note(Mark::TakeoverOfStill);
        } else if self.is_healthy(life.number()) && self.has_sign_of_life(owner, life.number()) {
            let number = life.number();
            self.add_problem(
                session,
                &format!("{owner} of the healthy process {number} was taken over"),
            );
        }
        if child {
            self.reached.note(Mark::TakeoverWithChild);
        }
        if asked {
            self.reached.note(Mark::TakeoverAfterRequest);
        }
    }

    /// Returns `true` if another run has superseded this run.
    pub(crate) fn is_superseded(&self, session: &SessionId, run: &RunId) -> bool {
        let watched = self.sessions.get(session);
        let run = watched.and_then(|watched| watched.fold.run(run));
        run.is_some_and(|run| run.status == RunStatus::Superseded)
    }

    /// Returns `true` if the batch belongs to a run of a deleted session. A new session may use its id.
    pub(crate) fn is_of_deleted(&self, batch: &Batch) -> bool {
        let Some(run) = run_of(batch) else { return false };
        let watched = self.sessions.get(&batch.writer.session);
        watched.is_none_or(|watched| watched.fold.run(run).is_none())
    }

    /// Returns `true` if the batch belongs to a run of a deleted session, and no run of the new session has written to
    /// a stream yet.
    pub(crate) fn is_before_successor(&self, batch: &Batch) -> bool {
        let watched = self.sessions.get(&batch.writer.session);
        self.is_of_deleted(batch) && watched.is_some_and(|watched| !watched.has_written)
    }

    /// Records that a stream store accepted this batch.
    pub(crate) fn record_write(&mut self, batch: &Batch) {
        let Some(watched) = self.sessions.get_mut(&batch.writer.session) else { return };
        watched.has_written |= run_of(batch).is_some_and(|run| watched.fold.run(run).is_some());
    }

    fn watched(&mut self, session: &SessionId) -> &mut Watched {
        self.sessions.entry(session.clone()).or_insert_with(|| Watched {
            fold: Session::new(session.clone()),
            followed: BTreeSet::new(),
            aborted: false,
            interrupted: None,
            steps: None,
            replies: 0,
            tokens: None,
            used_tokens: 0,
            messages: BTreeSet::new(),
            deadlines: BTreeMap::new(),
            waiting: BTreeSet::new(),
            has_written: false,
        })
    }

    pub(crate) fn add_problem(&mut self, session: &SessionId, what: &str) {
        self.problems.push(format!("{session}: {what}"));
    }
}

/// Returns the run that writes the batch.
fn run_of(batch: &Batch) -> Option<&RunId> {
    batch.ops.iter().find_map(|op| match op {
        StreamOp::Begin { origin, .. } => Some(&origin.run),
        StreamOp::Chunks { chunks, .. } => chunks.first().map(|chunk| &chunk.run),
        StreamOp::Watermark(mark) => Some(&mark.origin.run),
    })
}
