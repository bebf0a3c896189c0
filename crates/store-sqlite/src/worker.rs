//! Threads that own connections, and the queues before them.

use std::convert::Infallible;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;

use rusqlite::Connection;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use helix_agents_core::error::{Error, ErrorCode, Result};

use crate::error::Failure;
use crate::lock;

/// How many operations may wait for a connection; further callers wait for a place.
const QUEUE: usize = 256;

/// What the threads of one store have in common.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    /// Held while closing: SQLite folds its log into the file when the last connection closes, but
    /// not if two are about to be the last.
    closing: Arc<Mutex<()>>,
    /// Held until the thread has ended.
    running: mpsc::Sender<Infallible>,
}

impl Shared {
    /// And what ends when all threads have.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Infallible>) {
        let (running, ended) = mpsc::channel(1);
        (Self { closing: Arc::default(), running }, ended)
    }

    /// Ends what a thread does.
    pub(crate) fn end(self, connection: Option<Connection>) {
        let closing = lock(&self.closing);
        drop(connection);
        drop(closing);
        drop(self.running);
    }
}

/// Where work is put until a thread takes it.
pub(crate) struct Queue<J> {
    /// None once it was closed.
    jobs: Mutex<Option<mpsc::Sender<J>>>,
}

impl<J: Send + 'static> Queue<J> {
    pub(crate) fn new() -> (Self, mpsc::Receiver<J>) {
        let (jobs, taken) = mpsc::channel(QUEUE);
        (Self { jobs: Mutex::new(Some(jobs)) }, taken)
    }

    pub(crate) async fn send(&self, job: J) -> Result<()> {
        let jobs = lock(&self.jobs).clone().ok_or_else(closed)?;
        match jobs.try_send(job) {
            Ok(()) => Ok(()),
            Err(TrySendError::Closed(_)) => Err(closed()),
            // Who waits for a place is given it, whether it still polls or not.
            Err(TrySendError::Full(job)) => {
                let sent = tokio::spawn(async move { jobs.send(job).await });
                sent.await.is_ok_and(|sent| sent.is_ok()).then_some(()).ok_or_else(closed)
            }
        }
    }

    /// Ends the threads once they have done what is in the queue.
    pub(crate) fn close(&self) {
        drop(lock(&self.jobs).take());
    }
}

impl<J> fmt::Debug for Queue<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = lock(&self.jobs).is_some();
        f.debug_struct("Queue").field("open", &open).finish_non_exhaustive()
    }
}

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// Threads that read, with a connection each, and take their work from one queue.
#[derive(Debug)]
pub(crate) struct Readers {
    queue: Queue<Job>,
}

impl Readers {
    /// Starts a thread per connection.
    pub(crate) fn start(connections: Vec<Connection>, shared: &Shared) -> Result<Self> {
        let (queue, jobs) = Queue::new();
        let jobs = Arc::new(Mutex::new(jobs));
        for connection in connections {
            let (jobs, shared) = (Arc::clone(&jobs), shared.clone());
            spawn("helix-sqlite-read", move || serve(connection, &jobs, shared))?;
        }
        Ok(Self { queue })
    }

    /// Does something with a connection, on a thread of its own.
    ///
    /// # Cancel safety
    /// Dropping the future leaves open whether the work is done.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // Nobody waits any more: it need not be done.
            if !reply.is_closed() {
                drop(reply.send(work(connection)));
            }
        });
        self.queue.send(job).await?;
        match answer.await {
            Ok(result) => result.map_err(Error::from),
            Err(_) => Err(panicked()),
        }
    }

    /// Ends the threads once they have done what is in the queue.
    pub(crate) fn close(&self) {
        self.queue.close();
    }
}

fn serve(mut connection: Connection, jobs: &Mutex<mpsc::Receiver<Job>>, shared: Shared) {
    loop {
        let job = lock(jobs).blocking_recv();
        let Some(job) = job else { break };
        // A panic is one operation's, whose caller learns of it because its answer is dropped; the
        // transaction was rolled back on the way. Others go on.
        drop(catch_unwind(AssertUnwindSafe(|| job(&mut connection))));
    }
    shared.end(Some(connection));
}

/// Does something that blocks, once, on a thread of its own.
pub(crate) async fn once<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (reply, answer) = oneshot::channel();
    spawn(name, move || drop(reply.send(work())))?;
    answer.await.unwrap_or_else(|_| Err(panicked()))
}

/// Starts a thread.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().name(name.to_owned());
    match thread.spawn(work) {
        Ok(_) => Ok(()),
        Err(error) => {
            let message = "the system has no thread left for the store";
            Err(Error::new(ErrorCode::StoreUnavailable, message).with_source(error))
        }
    }
}

pub(crate) fn closed() -> Error {
    Error::new(ErrorCode::Closed, "the store was closed")
}

pub(crate) fn panicked() -> Error {
    Error::new(ErrorCode::Internal, "the store panicked; see its message")
}
