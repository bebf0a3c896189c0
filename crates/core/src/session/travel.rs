//! Going back to a checkpoint, and going on from one as another session.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::begin::{check_agent, healed};
use super::ledger::{ClosedStep, Ledger, Unpaired};
use super::{BeginRun, Checkpoint, RunStatus, Session};
use crate::agent::AgentDefinition;
use crate::budget::Spent;
use crate::error::{Error, ErrorCode, Result};
use crate::event::{Event, ParentRef, Trigger};
use crate::id::{RunId, SessionId};
use crate::message::{SharedMessage, UserMessage};
use crate::store::SessionStatus;
use crate::usage::{Usage, UsageEntry};

/// Where a session was forked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkOrigin {
    /// The session that it was forked from.
    pub session: SessionId,
    /// The checkpoint: a version of that session's log, and of this one's.
    pub version: u64,
    /// The last step that it shares.
    pub step: u32,
}

/// What going back to a checkpoint takes, beside the checkpoint.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    state: Arc<Value>,
    closed: Arc<ClosedStep>,
    turn_steps: u32,
    corrections: u32,
    model_failures: u32,
}

impl Mark {
    pub(super) fn of(ledger: &Ledger, closed: &Arc<ClosedStep>) -> Self {
        Self {
            state: Arc::clone(&ledger.state),
            closed: Arc::clone(closed),
            turn_steps: ledger.turn_steps,
            corrections: ledger.corrections,
            model_failures: ledger.model_failures,
        }
    }
}

/// What an event cut off, until the store has acknowledged it.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    version: u64,
    /// How many messages and checkpoints were left.
    left: (usize, usize),
    messages: Vec<SharedMessage>,
    checkpoints: Vec<Checkpoint>,
    marks: Vec<Mark>,
    /// What belongs to the session that it was forked from.
    identity: Option<Identity>,
}

/// What belongs to a session and not to a fork of it.
#[derive(Debug, Clone)]
struct Identity {
    tags: BTreeMap<String, String>,
    parent: Option<ParentRef>,
    usage: Vec<UsageEntry>,
}

impl Session {
    /// Where this session was forked, if it was.
    #[must_use]
    pub fn forked(&self) -> Option<&ForkOrigin> {
        self.ledger.forked.as_deref()
    }

    /// The step of that number, as it was when it was closed; also when it means nothing for the turn
    /// any more.
    pub(super) fn step_at_checkpoint(&self, step: u32) -> Option<&ClosedStep> {
        let mut steps = self.marks.iter().rev().map(|mark| &*mark.closed);
        steps.find(|closed| closed.reply.step == step)
    }

    /// The checkpoint at a version.
    ///
    /// # Errors
    /// [`ErrorCode::CheckpointNotFound`] if no step was closed there, or the session went back
    /// behind it.
    pub fn checkpoint(&self, version: u64) -> Result<&Checkpoint> {
        let found = self.checkpoints.binary_search_by_key(&version, |it| it.version).ok();
        found.and_then(|index| self.checkpoints.get(index)).ok_or_else(|| {
            let message = match self.checkpoints.last() {
                Some(last) => {
                    format!(
                        "no step was closed at version {version}; the last one was closed at {}",
                        last.version
                    )
                }
                None => "no step of the session is closed yet".to_owned(),
            };
            Error::new(ErrorCode::CheckpointNotFound, message).with_context("session", &self.id)
        })
    }

    pub(super) fn check_forked(&self, event: &Event, from: &SessionId, at: u64) -> Result<()> {
        let problem = if *from == self.id {
            "a session is no fork of itself"
        } else if self.needs_heal() {
            "calls without a result have to be healed first"
        } else if self.ledger.step.is_some() {
            "a step is open"
        } else if self.checkpoints.last().map(|last| last.version) != Some(at) {
            "no step was closed there"
        } else {
            return Ok(());
        };
        Err(self.illegal(event, problem))
    }

    pub(super) fn check_rewound(&self, event: &Event, to: u64, run: Option<&RunId>) -> Result<()> {
        let current = self.current_run().map(|current| &current.id);
        let problem = if self.needs_heal() {
            "calls without a result have to be healed first"
        } else if current.is_some() && current == run {
            "a run does not go back behind itself"
        } else if self.open_children().next().is_some() {
            "a child is open"
        } else if self.checkpoint(to).is_err() {
            "no step was closed there"
        } else {
            return Ok(());
        };
        Err(self.illegal(event, problem))
    }

    /// From here on the log is this session's: nothing of the original's runs on in it, and what
    /// the original used up is not counted twice.
    pub(super) fn take_fork(&mut self, from: &SessionId, at: u64, tags: &BTreeMap<String, String>) {
        let identity = Identity {
            tags: std::mem::replace(&mut self.tags, tags.clone()),
            parent: self.parent.take(),
            usage: std::mem::take(&mut self.usage_entries),
        };
        let messages = self.transcript.len();
        self.cut(messages, self.checkpoints.len(), Some(identity));
        let ended = self.checkpoints.last().and_then(|last| last.at);
        let ledger = &mut self.ledger;
        let (session, step) = (from.clone(), ledger.last_step);
        ledger.forked = Some(Arc::new(ForkOrigin { session, version: at, step }));
        ledger.usage = Usage::default();
        ledger.tool_calls = 0;
        ledger.recorded_usage = Arc::default();
        ledger.spent = Spent::default();
        ledger.seen = None;
        ledger.short_of_tool_calls = false;
        ledger.companions = Arc::default();
        ledger.queue.clear();
        // The original was asked, not this session.
        ledger.interrupt = None;
        ledger.abort = None;
        ledger.honoured = None;
        ledger.cleared = None;
        if let Some(run) = &mut ledger.run {
            // Its chunks are in the original's stream.
            run.stream_from = 0;
            if run.status == RunStatus::Running {
                run.status = RunStatus::Interrupted;
                run.ended = ended;
            }
        }
        ledger.status = SessionStatus::Interrupted;
    }

    /// What was used up stays used up, and numbers of steps stay taken.
    pub(super) fn rewind(&mut self, to: u64) {
        let index = self.checkpoints.partition_point(|it| it.version < to);
        let found = self.checkpoints.get(index).zip(self.marks.get(index));
        let Some((checkpoint, mark)) = found.map(|(at, mark)| (at.clone(), mark.clone())) else {
            return;
        };
        self.cut(checkpoint.messages, index + 1, None);
        let ledger = &mut self.ledger;
        if let Some(step) = ledger.step.take() {
            let open = step.pairs().filter(|(_, state)| state.finish.is_none());
            let open = open.map(|(call, _)| call.id.clone());
            Arc::make_mut(&mut ledger.dropped).extend(open);
        }
        ledger.turn = checkpoint.turn;
        ledger.state = mark.state;
        ledger.turn_steps = mark.turn_steps;
        ledger.corrections = mark.corrections;
        // What failed is asked again, as when a failed run is resumed.
        let failed = mark.closed.reply.error.is_some();
        ledger.model_failures = if failed { 0 } else { mark.model_failures };
        ledger.closed = (!failed).then_some(mark.closed);
        ledger.rewound = true;
        if ledger.run.as_ref().is_none_or(|run| run.status != RunStatus::Running) {
            ledger.status = SessionStatus::Interrupted;
        }
    }

    fn cut(&mut self, messages: usize, checkpoints: usize, identity: Option<Identity>) {
        fn tail<T>(of: &mut Vec<T>, from: usize) -> Vec<T> {
            of.split_off(from.min(of.len()))
        }
        self.cuts.push(Cut {
            version: self.ledger.position.version,
            left: (messages, checkpoints),
            messages: tail(&mut self.transcript, messages),
            checkpoints: tail(&mut self.checkpoints, checkpoints),
            marks: tail(&mut self.marks, checkpoints),
            identity,
        });
    }

    /// Undoes every cut that was made after a version; for a rollback, which undoes the rest.
    pub(super) fn mend(&mut self, version: u64) {
        while let Some(cut) = self.cuts.pop_if(|cut| cut.version > version) {
            // What came after the cut is no part of what it was cut off from.
            let (messages, checkpoints) = cut.left;
            self.transcript.truncate(messages);
            self.checkpoints.truncate(checkpoints);
            self.marks.truncate(checkpoints);
            self.transcript.extend(cut.messages);
            self.checkpoints.extend(cut.checkpoints);
            self.marks.extend(cut.marks);
            if let Some(Identity { tags, parent, usage }) = cut.identity {
                (self.tags, self.parent, self.usage_entries) = (tags, parent, usage);
            }
        }
    }

    /// Every message after the last step of an imported log that has to be healed moves.
    pub(super) fn shift_checkpoints(&mut self, healed: &[Unpaired]) {
        for checkpoint in &mut self.checkpoints {
            let before = healed.iter().filter(|it| it.insert_at <= checkpoint.messages).count();
            checkpoint.messages += before;
        }
    }

    /// Undoes [`shift_checkpoints`](Self::shift_checkpoints).
    pub(super) fn unshift_checkpoints(&mut self, healed: &[Unpaired]) {
        for checkpoint in &mut self.checkpoints {
            let places = healed.iter().zip(0..).map(|(it, shift)| it.insert_at + shift);
            checkpoint.messages -= places.filter(|place| *place < checkpoint.messages).count();
        }
    }
}

/// What goes back to a checkpoint and on from there, in one append. `after` is the last run as the
/// caller saw it. Whether that run is alive is for the store to say, when the run starts.
///
/// A step that ended the turn ends it again, unless there is a message.
///
/// # Errors
/// [`ErrorCode::AlreadyResumed`] if another run has begun since,
/// [`ErrorCode::CheckpointNotFound`], [`ErrorCode::ChildrenOpen`] if a sub-agent is not done,
/// [`ErrorCode::AgentMismatch`], and [`ErrorCode::StateInvalid`].
pub fn rewind_events(
    session: &Session,
    agent: &AgentDefinition,
    begin: &BeginRun,
    after: Option<&RunId>,
    to: u64,
    message: Option<&UserMessage>,
) -> Result<Vec<Event>> {
    check_agent(session, agent)?;
    super::begin::check_after(session, after)?;
    session.checkpoint(to)?;
    let children: Vec<_> = session.open_children().map(|child| child.session.as_str()).collect();
    if !children.is_empty() {
        let message = "a sub-agent is not done: resume the session, or abort it first";
        return Err(Error::new(ErrorCode::ChildrenOpen, message)
            .with_context("session", session.id())
            .with_context("children", children.join(", ")));
    }
    let mut events: Vec<_> = healed(session).into_iter().collect();
    events.push(Event::Rewound { to });
    let mut back = session.clone();
    for event in &events {
        back.apply(event, None)?;
    }
    agent.check_state(back.state())?;
    let trigger = match session.current_run() {
        Some(_) => Trigger::Recover,
        None => Trigger::Resume,
    };
    events.push(begin.started(after.cloned(), trigger));
    events.extend(message.map(|message| Event::UserMessages { messages: vec![message.clone()] }));
    Ok(events)
}
