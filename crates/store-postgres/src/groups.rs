//! What many ask for at once, asked for together.
//!
//! While a statement is under way, those who come wait, and the next statement is for all of them: one
//! round trip, one transaction, one wait for the disk. Who comes alone does not wait, and is alone.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use tokio::sync::oneshot::{self, Receiver, Sender};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::lock;

/// How many have their turn at the same time: while one waits for the disk, the server works on the
/// next one.
const TURNS: usize = 2;

/// How long a turn lasts. Who takes longer, for the server is slow or a row is locked, goes on beside
/// the next one.
const TURN: Duration = Duration::from_millis(20);

/// How many ask together at most.
const MOST: usize = 64;

/// How many bytes they bring together at most.
const MOST_BYTES: usize = 1024 * 1024;

/// Who brings more goes alone: others should not wait for it.
pub(crate) const LARGE_BYTES: usize = 64 * 1024;

/// Those who wait to ask, with what they want, `Q`, and what they will be answered, `A`.
#[derive(Debug)]
pub(crate) struct Groups<Q, A> {
    waiting: Mutex<VecDeque<Waiting<Q, A>>>,
    turns: Semaphore,
}

#[derive(Debug)]
struct Waiting<Q, A> {
    wanted: Q,
    bytes: usize,
    answer: Sender<A>,
}

/// One who waits.
#[derive(Debug)]
pub(crate) struct Place<'g, Q, A> {
    groups: &'g Groups<Q, A>,
    answer: Receiver<A>,
}

/// How waiting ends.
#[derive(Debug)]
pub(crate) enum Turn<'g, Q, A> {
    /// Somebody else has asked.
    Answered(A),
    /// It is this one's turn to ask for a group, and then to wait again.
    Ask(Group<'g, Q, A>),
}

/// Those for whom somebody asks.
#[derive(Debug)]
pub(crate) struct Group<'g, Q, A> {
    /// What they want.
    pub(crate) wanted: Vec<Q>,
    /// Where the answers go.
    pub(crate) answers: Answers<A>,
    /// While it is this one's turn.
    pub(crate) turn: Permit<'g>,
}

#[derive(Debug)]
pub(crate) struct Answers<A>(Vec<Sender<A>>);

#[derive(Debug)]
pub(crate) struct Permit<'g> {
    _permit: SemaphorePermit<'g>,
}

impl<Q, A> Default for Groups<Q, A> {
    fn default() -> Self {
        Self { waiting: Mutex::default(), turns: Semaphore::new(TURNS) }
    }
}

impl<Q, A> Groups<Q, A> {
    /// Waits for a turn with this, of so many bytes.
    pub(crate) fn enter(&self, wanted: Q, bytes: usize) -> Place<'_, Q, A> {
        let (sender, answer) = oneshot::channel();
        lock(&self.waiting).push_back(Waiting { wanted, bytes, answer: sender });
        Place { groups: self, answer }
    }

    /// Those who are next.
    fn group<'g>(&'g self, turn: SemaphorePermit<'g>) -> Group<'g, Q, A> {
        let (mut wanted, mut answers) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        let mut waiting = lock(&self.waiting);
        while wanted.len() < MOST
            && let Some(next) =
                waiting.pop_front_if(|it| bytes == 0 || bytes + it.bytes <= MOST_BYTES)
        {
            // Nobody waits for it any more: its runtime was shut down.
            if !next.answer.is_closed() {
                bytes += next.bytes.max(1);
                wanted.push(next.wanted);
                answers.push(next.answer);
            }
        }
        Group { wanted, answers: Answers(answers), turn: Permit { _permit: turn } }
    }
}

impl<'g, Q, A> Place<'g, Q, A> {
    /// Waits until there is an answer, or the turn to ask.
    ///
    /// # Errors
    /// [`ErrorCode::StoreUnavailable`] if the one that asked did not come to its end, for its runtime was
    /// shut down: what was asked for may have been done.
    pub(crate) async fn turn(&mut self) -> Result<Turn<'g, Q, A>> {
        tokio::select! {
            biased;
            answer = &mut self.answer => answer.map(Turn::Answered).map_err(|_| unanswered()),
            turn = self.groups.turns.acquire() => match turn {
                Ok(turn) => Ok(Turn::Ask(self.groups.group(turn))),
                Err(_) => Err(unanswered()),
            },
        }
    }
}

impl Permit<'_> {
    /// Waits for a statement, and lets the next one have its turn if that takes long.
    pub(crate) async fn during<T>(self, statement: impl Future<Output = T>) -> T {
        let mut statement = pin!(statement);
        tokio::select! {
            biased;
            done = &mut statement => return done,
            () = tokio::time::sleep(TURN) => drop(self),
        }
        statement.await
    }
}

impl<A> Answers<A> {
    /// Hands them out, in the order of what was wanted.
    pub(crate) fn give(self, answers: impl IntoIterator<Item = A>) {
        for (sender, answer) in self.0.into_iter().zip(answers) {
            // Who does not wait any more does not need it.
            drop(sender.send(answer));
        }
    }
}

fn unanswered() -> Error {
    let message = "whoever asked for several operations together was stopped in the middle";
    Error::new(ErrorCode::StoreUnavailable, message)
}
