//! What many ask for at once, asked for together.
//!
//! While a statement is under way, those who come wait, and the next statement is for all of them: one
//! round trip, one transaction, one wait for the disk. Who comes alone does not wait, and is alone.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode};
use tokio::sync::oneshot::error::RecvError;
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

/// Those who wait to ask, with what they want, `Q`, and what they will have, `A`.
#[derive(Debug)]
pub(crate) struct Groups<Q, A> {
    queue: Mutex<Queue<Q, A>>,
    turns: Semaphore,
}

#[derive(Debug)]
struct Queue<Q, A> {
    waiting: VecDeque<Waiting<Q, A>>,
    /// How many have left it.
    left: u64,
}

#[derive(Debug)]
struct Waiting<Q, A> {
    wanted: Q,
    bytes: usize,
    answer: Sender<Answer<Q, A>>,
}

#[derive(Debug)]
enum Answer<Q, A> {
    Done(Result<A, Error>),
    Alone(Q),
}

/// One who waits.
#[derive(Debug)]
pub(crate) struct Place<'g, Q, A> {
    groups: &'g Groups<Q, A>,
    /// How many have left the queue when this one is the first.
    number: u64,
    answer: Receiver<Answer<Q, A>>,
}

/// How waiting ends.
#[derive(Debug)]
pub(crate) enum Turn<'g, Q, A> {
    /// It has been asked for.
    Done(Result<A, Error>),
    /// It could not be had together with others, and has to be asked for alone.
    Alone(Q),
    /// It is this one's turn to ask, for itself and maybe others, and then to wait again.
    Ask(Group<'g, Q, A>),
}

/// Those for whom somebody asks; at least one.
#[derive(Debug)]
pub(crate) struct Group<'g, Q, A> {
    /// What they want.
    pub(crate) wanted: Vec<Q>,
    /// Where the answers go.
    pub(crate) answers: Answers<Q, A>,
    /// While it is this one's turn.
    pub(crate) turn: Permit<'g>,
}

#[derive(Debug)]
pub(crate) struct Answers<Q, A>(Vec<Sender<Answer<Q, A>>>);

#[derive(Debug)]
pub(crate) struct Permit<'g> {
    _permit: SemaphorePermit<'g>,
}

impl<Q, A> Default for Groups<Q, A> {
    fn default() -> Self {
        let queue = Queue { waiting: VecDeque::new(), left: 0 };
        Self { queue: Mutex::new(queue), turns: Semaphore::new(TURNS) }
    }
}

impl<Q, A> Groups<Q, A> {
    /// Waits for a turn with this, of so many bytes.
    pub(crate) fn enter(&self, wanted: Q, bytes: usize) -> Place<'_, Q, A> {
        let (sender, answer) = oneshot::channel();
        let mut queue = lock(&self.queue);
        let number = queue.left + queue.waiting.len() as u64;
        queue.waiting.push_back(Waiting { wanted, bytes, answer: sender });
        Place { groups: self, number, answer }
    }

    /// Those who are next, unless the one of this number has left the queue: who is asked for by somebody
    /// else has only to wait, and should not wait for others.
    fn group<'g>(&'g self, number: u64, turn: SemaphorePermit<'g>) -> Option<Group<'g, Q, A>> {
        let (mut wanted, mut answers) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        let mut queue = lock(&self.queue);
        if queue.left > number {
            return None;
        }
        while wanted.len() < MOST
            && let Some(next) =
                queue.waiting.pop_front_if(|it| bytes == 0 || bytes + it.bytes <= MOST_BYTES)
        {
            queue.left += 1;
            // Nobody waits for it any more: its runtime was shut down.
            if !next.answer.is_closed() {
                bytes += next.bytes.max(1);
                wanted.push(next.wanted);
                answers.push(next.answer);
            }
        }
        Some(Group { wanted, answers: Answers(answers), turn: Permit { _permit: turn } })
    }
}

impl<'g, Q, A> Place<'g, Q, A> {
    /// Waits until there is an answer, or the turn to ask.
    ///
    /// # Errors
    /// [`ErrorCode::StoreUnavailable`] if the one that asked did not come to its end, for its runtime was
    /// shut down: what was asked for may have been done.
    pub(crate) async fn turn(&mut self) -> Result<Turn<'g, Q, A>, Error> {
        let turn = tokio::select! {
            biased;
            answer = &mut self.answer => return answered(answer),
            turn = self.groups.turns.acquire() => turn.map_err(|_| unanswered())?,
        };
        match self.groups.group(self.number, turn) {
            Some(group) => Ok(Turn::Ask(group)),
            None => answered((&mut self.answer).await),
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

impl<Q, A> Answers<Q, A> {
    /// What came of the only one.
    pub(crate) fn one(self, done: Result<A, Error>) {
        self.give([Answer::Done(done)]);
    }

    /// What came of each, in their order: those that have none go on alone. So do all of them after an error
    /// that may be about one of them; one about the server is everybody's, and whatever was asked for may have
    /// been done.
    pub(crate) fn each(self, wanted: Vec<Q>, done: Result<Vec<Option<A>>, Error>) {
        match done {
            Ok(done) => self.give(wanted.into_iter().zip(done).map(|(wanted, done)| match done {
                Some(done) => Answer::Done(Ok(done)),
                None => Answer::Alone(wanted),
            })),
            Err(error) if is_everybodys(error.code()) => self.give(wanted.iter().map(|_| {
                let message = format!("what was asked for together with others: {error}");
                Answer::Done(Err(Error::new(error.code(), message)))
            })),
            Err(_) => self.give(wanted.into_iter().map(Answer::Alone)),
        }
    }

    fn give(self, answers: impl IntoIterator<Item = Answer<Q, A>>) {
        for (sender, answer) in self.0.into_iter().zip(answers) {
            // Who does not wait any more does not need it.
            drop(sender.send(answer));
        }
    }
}

const fn is_everybodys(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::StoreUnavailable | ErrorCode::StoreBusy | ErrorCode::Closed)
}

fn answered<'g, Q, A>(answer: Result<Answer<Q, A>, RecvError>) -> Result<Turn<'g, Q, A>, Error> {
    match answer {
        Ok(Answer::Done(done)) => Ok(Turn::Done(done)),
        Ok(Answer::Alone(wanted)) => Ok(Turn::Alone(wanted)),
        Err(_) => Err(unanswered()),
    }
}

fn unanswered() -> Error {
    let message = "whoever asked for several operations together was stopped in the middle";
    Error::new(ErrorCode::StoreUnavailable, message)
}
