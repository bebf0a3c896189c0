//! Group commit: concurrent requests share one statement.
//!
//! While a statement is in progress, new requests queue up, and the next statement executes all of
//! them: one round trip, one transaction, one wait for the disk. A lone request does not wait and
//! gets a statement of its own.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode};
use tokio::sync::oneshot::error::RecvError;
use tokio::sync::oneshot::{self, Receiver, Sender};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::lock;

/// The number of concurrent turns. While one statement waits for the disk, the server works on the
/// next one.
const TURNS: usize = 2;

/// The duration of a turn. A statement that takes longer, because the server is slow or a row is
/// locked, continues while the next turn starts.
const TURN: Duration = Duration::from_millis(20);

/// The maximum number of requests in one group.
const MAX_REQUESTS: usize = 64;

/// The maximum total size of a group in bytes.
const MAX_BYTES: usize = 1024 * 1024;

/// Larger requests are executed individually, so that others do not wait for them.
pub(crate) const LARGE_BYTES: usize = 64 * 1024;

/// A queue of requests `Q` with their answers `A`.
#[derive(Debug)]
pub(crate) struct Groups<Q, A> {
    queue: Mutex<Queue<Q, A>>,
    turns: Semaphore,
}

#[derive(Debug)]
struct Queue<Q, A> {
    queued: VecDeque<QueuedRequest<Q, A>>,
    /// The number of requests that have left the queue.
    removed: u64,
}

#[derive(Debug)]
struct QueuedRequest<Q, A> {
    request: Q,
    bytes: usize,
    answer: Sender<Answer<Q, A>>,
}

#[derive(Debug)]
enum Answer<Q, A> {
    Done(Result<A, Error>),
    Alone(Q),
}

/// A queued request, held by its caller.
#[derive(Debug)]
pub(crate) struct Waiter<'g, Q, A> {
    groups: &'g Groups<Q, A>,
    /// The value of `removed` at which this request is the first in the queue.
    number: u64,
    answer: Receiver<Answer<Q, A>>,
}

/// The end of a wait.
#[derive(Debug)]
pub(crate) enum Turn<'g, Q, A> {
    /// The request was executed.
    Done(Result<A, Error>),
    /// The request could not be executed in a group and must be executed individually.
    Alone(Q),
    /// The caller has a turn: it executes a group, which may include its own request, and then
    /// waits again.
    Lead(Group<'g, Q, A>),
}

/// The requests of one turn, at least one.
#[derive(Debug)]
pub(crate) struct Group<'g, Q, A> {
    /// The requests.
    pub(crate) requests: Vec<Q>,
    /// The channels for the answers.
    pub(crate) answers: Answers<Q, A>,
    /// The permit of the turn.
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
        let queue = Queue { queued: VecDeque::new(), removed: 0 };
        Self { queue: Mutex::new(queue), turns: Semaphore::new(TURNS) }
    }
}

impl<Q, A> Groups<Q, A> {
    /// Queues a request of the given size.
    pub(crate) fn enqueue(&self, request: Q, bytes: usize) -> Waiter<'_, Q, A> {
        let (sender, answer) = oneshot::channel();
        let mut queue = lock(&self.queue);
        let number = queue.removed + queue.queued.len() as u64;
        queue.queued.push_back(QueuedRequest { request, bytes, answer: sender });
        Waiter { groups: self, number, answer }
    }

    /// Takes the next group from the queue. Returns `None` if the request with this number has left
    /// the queue: another caller executes it, so its own caller only has to wait for the answer.
    fn group<'g>(&'g self, number: u64, turn: SemaphorePermit<'g>) -> Option<Group<'g, Q, A>> {
        let (mut requests, mut answers) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        let mut queue = lock(&self.queue);
        if queue.removed > number {
            return None;
        }
        while requests.len() < MAX_REQUESTS
            && let Some(next) =
                queue.queued.pop_front_if(|next| bytes == 0 || bytes + next.bytes <= MAX_BYTES)
        {
            queue.removed += 1;
            // Skip requests whose caller no longer waits, because its runtime was shut down.
            if !next.answer.is_closed() {
                bytes += next.bytes.max(1);
                requests.push(next.request);
                answers.push(next.answer);
            }
        }
        Some(Group { requests, answers: Answers(answers), turn: Permit { _permit: turn } })
    }
}

impl<'g, Q, A> Waiter<'g, Q, A> {
    /// Waits for the answer or for a turn.
    ///
    /// # Errors
    /// Returns [`ErrorCode::StoreUnavailable`] if the task that executed the request was stopped
    /// because its runtime was shut down. The request may have been executed.
    pub(crate) async fn turn(&mut self) -> Result<Turn<'g, Q, A>, Error> {
        let turn = tokio::select! {
            biased;
            answer = &mut self.answer => return answered(answer),
            turn = self.groups.turns.acquire() => turn.map_err(|_| unanswered())?,
        };
        match self.groups.group(self.number, turn) {
            Some(group) => Ok(Turn::Lead(group)),
            None => answered((&mut self.answer).await),
        }
    }
}

impl Permit<'_> {
    /// Waits for a statement. Releases the turn if the statement takes long.
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
    /// Answers the only request of the group.
    pub(crate) fn one(self, done: Result<A, Error>) {
        self.give([Answer::Done(done)]);
    }

    /// Answers each request of the group, in order. Requests without an outcome are executed
    /// individually. After an error, all requests are executed individually, because the error may
    /// concern only one of them. The exception is an error that applies to the whole group, such as
    /// an unavailable server: it is the answer to every request, and the requests may have been
    /// executed.
    pub(crate) fn each(self, requests: Vec<Q>, done: Result<Vec<Option<A>>, Error>) {
        match done {
            Ok(done) => {
                self.give(requests.into_iter().zip(done).map(|(request, done)| match done {
                    Some(done) => Answer::Done(Ok(done)),
                    None => Answer::Alone(request),
                }))
            }
            Err(error) if applies_to_all(error.code()) => self.give(requests.iter().map(|_| {
                let message = format!("in a group of operations: {error}");
                Answer::Done(Err(Error::new(error.code(), message)))
            })),
            Err(_) => self.give(requests.into_iter().map(Answer::Alone)),
        }
    }

    fn give(self, answers: impl IntoIterator<Item = Answer<Q, A>>) {
        for (sender, answer) in self.0.into_iter().zip(answers) {
            // The caller may no longer wait.
            drop(sender.send(answer));
        }
    }
}

const fn applies_to_all(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::StoreUnavailable | ErrorCode::StoreBusy | ErrorCode::Closed)
}

fn answered<'g, Q, A>(answer: Result<Answer<Q, A>, RecvError>) -> Result<Turn<'g, Q, A>, Error> {
    match answer {
        Ok(Answer::Done(done)) => Ok(Turn::Done(done)),
        Ok(Answer::Alone(request)) => Ok(Turn::Alone(request)),
        Err(_) => Err(unanswered()),
    }
}

fn unanswered() -> Error {
    let message = "the task that executed this group of operations was stopped";
    Error::new(ErrorCode::StoreUnavailable, message)
}
