//! Threads that own connections, and the queues in front of them.

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

/// The resources that the threads of one store share.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    /// Locked while a connection closes. SQLite checkpoints its log into the file when the last
    /// connection closes, but not if two connections close concurrently.
    closing: Arc<Mutex<()>>,
    /// Dropped when the thread has ended. The channel closes when all threads have dropped it.
    running: mpsc::Sender<Infallible>,
}

impl Shared {
    /// Creates the resources, and the receiver of a channel that closes when all threads have
    /// ended.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Infallible>) {
        let (running, ended) = mpsc::channel(1);
        (Self { closing: Arc::default(), running }, ended)
    }

    /// Closes a thread's connection and marks the thread as ended.
    pub(crate) fn end(self, connection: Option<Connection>) {
        let closing = lock(&self.closing);
        drop(connection);
        drop(closing);
        drop(self.running);
    }
}

/// A queue of jobs for one or more threads. Jobs are taken in the order in which they were sent. It
/// has no limit, because each caller waits for its job, and the jobs of callers that no longer wait
/// are skipped.
pub(crate) struct Queue<J> {
    /// The sender. `None` after the queue was closed.
    jobs: Mutex<Option<mpsc::UnboundedSender<J>>>,
}

impl<J: Send + 'static> Queue<J> {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<J>) {
        let (jobs, taken) = mpsc::unbounded_channel();
        (Self { jobs: Mutex::new(Some(jobs)) }, taken)
    }

    pub(crate) fn send(&self, job: J) -> Result<()> {
        let jobs = lock(&self.jobs);
        jobs.as_ref().and_then(|jobs| jobs.send(job).ok()).ok_or_else(closed)
    }

    /// Ends the threads after they have completed all queued jobs.
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

/// Threads that read. Each has its own connection, and all take jobs from one queue.
#[derive(Debug)]
pub(crate) struct Readers {
    queue: Queue<Job>,
}

impl Readers {
    /// Starts one thread per connection.
    pub(crate) fn start(connections: Vec<Connection>, shared: &Shared) -> Result<Self> {
        let (queue, jobs) = Queue::new();
        let jobs = Arc::new(Mutex::new(jobs));
        for connection in connections {
            let (jobs, shared) = (Arc::clone(&jobs), shared.clone());
            spawn("helix-sqlite-read", move || serve(connection, &jobs, shared))?;
        }
        Ok(Self { queue })
    }

    /// Runs `work` with a connection on one of the reading threads.
    ///
    /// # Cancel safety
    /// If the future is dropped, it is unknown whether the work was done.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // Skip the work if the caller no longer waits.
            if !reply.is_closed() {
                drop(reply.send(work(connection)));
            }
        });
        self.queue.send(job)?;
        match answer.await {
            Ok(result) => result.map_err(Error::from),
            Err(_) => Err(panicked()),
        }
    }

    /// Ends the threads after they have completed all queued jobs.
    pub(crate) fn close(&self) {
        self.queue.close();
    }
}

fn serve(mut connection: Connection, jobs: &Mutex<mpsc::UnboundedReceiver<Job>>, shared: Shared) {
    loop {
        let job = lock(jobs).blocking_recv();
        let Some(job) = job else { break };
        // A panic only affects its own operation. The caller gets an error because the reply
        // channel is dropped, and unwinding has rolled back the transaction.
        drop(catch_unwind(AssertUnwindSafe(|| job(&mut connection))));
    }
    shared.end(Some(connection));
}

/// Runs blocking work once on a new thread.
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
            let message = "the operating system could not start a thread for the store";
            Err(Error::new(ErrorCode::StoreUnavailable, message).with_source(error))
        }
    }
}

pub(crate) fn closed() -> Error {
    Error::new(ErrorCode::Closed, "the store was closed")
}

pub(crate) fn panicked() -> Error {
    Error::new(ErrorCode::Internal, "the store panicked; see the panic message")
}
