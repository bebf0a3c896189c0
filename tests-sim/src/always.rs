//! What must hold after every single append.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use helix_agents_core::event::{Event, RecordedEvent, RunOutcome, Trigger, decode};
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::session::{RunStatus, Session};
use helix_agents_core::store::StoredAppend;
use helix_agents_testkit::trees::Lives;
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
    /// How many replies there were since the run was asked to stop.
    interrupted: Option<u32>,
    /// How many callers are resuming it: they may overrule an interrupt.
    resumers: usize,
}

/// Watches all logs.
#[derive(Debug)]
pub(crate) struct Always {
    sessions: BTreeMap<SessionId, Watched>,
    lives: Lives,
    lease: Duration,
    reached: Reached,
    /// Until when something keeps a process from showing that it is alive.
    troubles: BTreeMap<usize, Instant>,
    pub(crate) problems: Vec<String>,
}

impl Always {
    pub(crate) fn new(lives: Lives, lease: Duration, reached: Reached) -> Self {
        let (sessions, troubles, problems) = Default::default();
        Self { sessions, lives, lease, reached, troubles, problems }
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

    /// Notes that a caller resumes a session, or has stopped to.
    pub(crate) fn resumes(&mut self, session: &SessionId, begins: bool) {
        let watched = self.watched(session);
        watched.resumers = if begins { watched.resumers + 1 } else { watched.resumers - 1 };
    }

    /// A session is gone; one that begins under its id is another one.
    pub(crate) fn forget(&mut self, session: &SessionId) {
        self.sessions.remove(session);
    }

    /// Takes a new append in.
    pub(crate) fn appended(&mut self, session: &SessionId, append: &StoredAppend) {
        let events = match decode(session, append) {
            Ok(events) => events,
            Err(error) => return self.wrong(session, &format!("it cannot be read: {error:?}")),
        };
        for recorded in &events {
            self.event(session, recorded);
            let watched = self.watched(session);
            if let Err(error) = watched.fold.apply_recorded(recorded) {
                self.wrong(session, &format!("an event is not legal: {error:?}\n{recorded:?}"));
            }
        }
    }

    fn event(&mut self, session: &SessionId, recorded: &RecordedEvent) {
        let watched = self.watched(session);
        match &recorded.event {
            Event::RunStarted { after, trigger, .. } => {
                let owner = watched.fold.current_run().map(|run| run.id.clone());
                let child = watched.fold.open_children().next().is_some();
                let asked = watched.aborted || watched.interrupted.is_some();
                let first = watched.followed.insert(after.clone());
                if watched.resumers > 0 || !matches!(trigger, Trigger::Recover) {
                    watched.interrupted = None;
                }
                if !first {
                    self.wrong(session, &format!("two runs began after {after:?}"));
                }
                if let Some(owner) = owner {
                    self.taken_over(session, &owner, child, asked);
                }
            }
            Event::RunEnded { outcome } => {
                let is_lost = watched.aborted && !matches!(outcome, RunOutcome::Aborted { .. });
                (watched.aborted, watched.interrupted) = (false, None);
                if is_lost {
                    self.wrong(session, &format!("it was to be aborted, and ended: {outcome:?}"));
                }
            }
            Event::AbortRequested { .. } => {
                watched.aborted = true;
                self.reached.note(Mark::Abort);
            }
            Event::InterruptRequested { .. } => {
                watched.interrupted.get_or_insert(0);
                self.reached.note(Mark::Interrupt);
            }
            Event::ModelReplied(reply) => {
                let replies = watched.interrupted.as_mut().map(|replies| {
                    *replies += 1;
                    *replies
                });
                if replies.is_some_and(|replies| replies > 1) {
                    let step = reply.step;
                    self.wrong(session, &format!("it was interrupted, and went on to step {step}"));
                }
            }
            Event::Submitted { .. } => self.reached.note(Mark::Answer),
            Event::MessageQueued { from: None, .. } => self.reached.note(Mark::Message),
            Event::Rewound { .. } => self.reached.note(Mark::Rewind),
            Event::Forked { .. } => self.reached.note(Mark::Fork),
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
        } else if self.is_healthy(life.number()) {
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

    fn watched(&mut self, session: &SessionId) -> &mut Watched {
        self.sessions.entry(session.clone()).or_insert_with(|| Watched {
            fold: Session::new(session.clone()),
            followed: BTreeSet::new(),
            aborted: false,
            interrupted: None,
            resumers: 0,
        })
    }

    pub(crate) fn wrong(&mut self, session: &SessionId, what: &str) {
        self.problems.push(format!("{session}: {what}"));
    }
}
