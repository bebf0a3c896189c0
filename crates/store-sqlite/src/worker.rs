//! Threads that own connections, and the queues before them.

use std::convert::Infallible;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use helix_agents_core::error::{Error, ErrorCode, Result};

use crate::error::Failure;
use crate::lock;

/// How many operations may wait for a connection; further callers wait for a place.
const QUEUE: usize = 256;

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// What the threads of one store have in common.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    /// Held while writing: two connections of one process would otherwise find each other's lock
    /// on the file, and sleep until it is gone, instead of waiting in line. And while closing:
    /// SQLite folds its log into the file when the last connection closes, but not if two are
    /// about to be the last.
    turn: Arc<Mutex<()>>,
    /// Held until the thread has ended.
    running: mpsc::Sender<Infallible>,
}

impl Shared {
    /// And what ends when all threads have.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Infallible>) {
        let (running, ended) = mpsc::channel(1);
        (Self { turn: Arc::default(), running }, ended)
    }

    /// Ends what a thread does.
    pub(crate) fn end(self, connection: Option<Connection>) {
        let turn = lock(&self.turn);
        drop(connection);
        drop(turn);
        drop(self.running);
    }
}

/// Whether a worker's connections write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// One or more threads with a connection each that take their work from one queue.
pub(crate) struct Worker {
    /// Where work is put; none once it was closed.
    queue: Mutex<Option<mpsc::Sender<Job>>>,
}

impl Worker {
    /// Starts a thread per connection.
    pub(crate) fn start(
        name: &str,
        access: Access,
        connections: Vec<Connection>,
        shared: &Shared,
    ) -> Result<Self> {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let jobs = Arc::new(Mutex::new(jobs));
        for connection in connections {
            let (jobs, shared) = (Arc::clone(&jobs), shared.clone());
            spawn(name, move || serve(connection, access, &jobs, shared))?;
        }
        Ok(Self { queue: Mutex::new(Some(queue)) })
    }

    /// Does something with a connection, on a thread of the worker.
    ///
    /// # Cancel safety
    /// Dropping the future leaves open whether the work is done.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        let queue = lock(&self.queue).clone().ok_or_else(closed)?;
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // Nobody waits any more: it need not be done.
            if !reply.is_closed() {
                drop(reply.send(work(connection)));
            }
        });
        queue.send(job).await.map_err(|_| closed())?;
        drop(queue);
        match answer.await {
            Ok(result) => result.map_err(Error::from),
            Err(_) => Err(Error::new(ErrorCode::Internal, "the store panicked; see its message")),
        }
    }

    /// Ends the threads once they have done what is in the queue.
    pub(crate) fn close(&self) {
        drop(lock(&self.queue).take());
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = lock(&self.queue).is_some();
        f.debug_struct("Worker").field("open", &open).finish_non_exhaustive()
    }
}

fn serve(
    mut connection: Connection,
    access: Access,
    jobs: &Mutex<mpsc::Receiver<Job>>,
    shared: Shared,
) {
    loop {
        let job = lock(jobs).blocking_recv();
        let Some(job) = job else { break };
        let _turn = (access == Access::Write).then(|| lock(&shared.turn));
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
    answer.await.unwrap_or_else(|_| {
        Err(Error::new(ErrorCode::Internal, "the store panicked; see its message"))
    })
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
