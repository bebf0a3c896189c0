//! The writing thread and its group commits.
//!
//! Only one connection writes, because with two, every commit of one would invalidate the page
//! cache of the other. The thread runs all queued jobs in one transaction (group commit), so the
//! cost per job falls with the load, and a lone job does not wait.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use helix_agents_core::error::{Error, Result};

use crate::error::Failure;
use crate::prepared::{Prepared, Tables};
use crate::worker::{self, Queue, Shared};

/// The maximum number of operations in one transaction.
const GROUP: usize = 64;

/// The time after which a transaction accepts no more operations.
const GROUP_TIME: Duration = Duration::from_millis(10);

/// The failures that an acknowledged operation survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Durability {
    /// A crash of the process: the operating system has accepted the write.
    Process,
    /// A crash of the system and a power loss: the disk has confirmed the write.
    System,
}

/// The queue of the writing thread.
pub(crate) struct Writer {
    queue: Queue<Box<dyn Job>>,
}

impl Writer {
    pub(crate) fn start(connection: Connection, shared: &Shared) -> Result<Self> {
        let (queue, jobs) = Queue::new();
        let shared = shared.clone();
        worker::spawn("helix-sqlite-write", move || serve(connection, jobs, shared))?;
        Ok(Self { queue })
    }

    /// Runs `work` in a transaction that is committed if it succeeds. After the commit, runs `then`
    /// with the result, whether or not the caller still waits. `work` may run again if its first
    /// execution was rolled back because of another job.
    ///
    /// # Cancel safety
    /// If the future is dropped, it is unknown whether the work was done.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnMut(&mut Tables<'_>) -> Result<T, Failure> + Send + 'static,
        then: impl FnOnce(&T) + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(QueuedJob { durability, work, then, result: None, reply });
        self.queue.send(job)?;
        answer.await.unwrap_or_else(|_| Err(worker::panicked()))
    }

    /// Ends the thread after it has completed all queued jobs.
    pub(crate) fn close(&self) {
        self.queue.close();
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.queue.fmt(f)
    }
}

/// The interface of a job for the writing thread.
trait Job: Send {
    fn durability(&self) -> Durability;

    /// Returns `true` if the caller still waits for the result.
    fn is_wanted(&self) -> bool;

    /// Runs the job. Returns `true` if its changes are to be committed.
    fn run(&mut self, tables: &mut Tables<'_>) -> bool;

    /// Records that the job's changes were not committed or that the job did not run.
    fn fail(&mut self, error: Error);

    /// Discards the result of an execution that was rolled back.
    fn discard_result(&mut self);

    /// Sends the result to the caller.
    fn answer(self: Box<Self>);
}

struct QueuedJob<T, W, D> {
    durability: Durability,
    work: W,
    then: D,
    result: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, W, D> Job for QueuedJob<T, W, D>
where
    T: Send,
    W: FnMut(&mut Tables<'_>) -> Result<T, Failure> + Send,
    D: FnOnce(&T) + Send,
{
    fn durability(&self) -> Durability {
        self.durability
    }

    fn is_wanted(&self) -> bool {
        !self.reply.is_closed()
    }

    fn run(&mut self, tables: &mut Tables<'_>) -> bool {
        // A panic only affects its own job. Statements are reset by unwinding.
        let result = catch_unwind(AssertUnwindSafe(|| (self.work)(tables)));
        let result = result.unwrap_or_else(|_| Err(worker::panicked().into()));
        let is_kept = result.is_ok();
        self.result = Some(result.map_err(Error::from));
        is_kept
    }

    fn fail(&mut self, error: Error) {
        // The job's own error is more specific.
        if !matches!(self.result, Some(Err(_))) {
            self.result = Some(Err(error));
        }
    }

    fn discard_result(&mut self) {
        self.result = None;
    }

    fn answer(self: Box<Self>) {
        let Self { then, result, reply, .. } = *self;
        let Some(result) = result else { return };
        // `then` runs here and not in the caller, which may have been dropped.
        if let Ok(result) = &result {
            then(result);
        }
        drop(reply.send(result));
    }
}

fn serve(connection: Connection, mut jobs: mpsc::UnboundedReceiver<Box<dyn Job>>, shared: Shared) {
    let mut transactions = Transactions::new(&connection);
    let mut group = Vec::with_capacity(GROUP);
    while jobs.blocking_recv_many(&mut group, GROUP) > 0 {
        transactions.run(&mut group);
    }
    drop(transactions);
    shared.end(Some(connection));
}

struct Transactions<'c> {
    tables: Tables<'c>,
    /// The durability that the connection is configured for.
    durability: Option<Durability>,
    begin: Prepared<'c>,
    commit: Prepared<'c>,
}

/// The reason why a group was not committed.
enum GroupFailure {
    /// The job at this index failed after it had changed something. It holds the error.
    Job(usize),
    /// The transaction failed. The error applies to this number of jobs from the front.
    Transaction(usize, rusqlite::Error),
}

impl<'c> Transactions<'c> {
    fn new(connection: &'c Connection) -> Self {
        let prepared = |sql| Prepared::new(connection, sql);
        Self {
            tables: Tables::new(connection),
            durability: None,
            begin: prepared("BEGIN IMMEDIATE"),
            commit: prepared("COMMIT"),
        }
    }

    /// Runs all jobs and answers their callers.
    fn run(&mut self, jobs: &mut Vec<Box<dyn Job>>) {
        while !jobs.is_empty() {
            // Skip jobs whose caller no longer waits.
            jobs.retain(|job| job.is_wanted());
            let completed = self.run_some(jobs);
            for job in jobs.drain(..completed) {
                // A panic in a caller's waker must not end the thread.
                drop(catch_unwind(AssertUnwindSafe(|| job.answer())));
            }
        }
    }

    /// Runs jobs from the front. Returns how many need no further execution.
    fn run_some(&mut self, jobs: &mut [Box<dyn Job>]) -> usize {
        match self.run_together(jobs) {
            Ok(completed) => completed,
            Err(GroupFailure::Job(0)) => 1,
            Err(GroupFailure::Job(place)) => {
                // Run the jobs up to the failed one individually, so that it does not affect the
                // others. A job whose caller has stopped waiting in between does not run again.
                for job in jobs.iter_mut().take(place + 1) {
                    job.discard_result();
                    self.run_alone(job);
                }
                place + 1
            }
            Err(GroupFailure::Transaction(completed, error)) => {
                fail_all(jobs.iter_mut().take(completed), error);
                completed
            }
        }
    }

    fn run_alone(&mut self, job: &mut Box<dyn Job>) {
        if let Err(GroupFailure::Transaction(_, error)) = self.run_together(slice::from_mut(job)) {
            fail_all([job], error);
        }
    }

    /// Runs jobs from the front in one transaction, and returns how many it committed or skipped. If a job fails after
    /// it changed something, or if the transaction fails, nothing is committed.
    fn run_together(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<usize, GroupFailure> {
        let Some(durability) = jobs.iter().map(|job| job.durability()).max() else { return Ok(0) };
        self.begin(durability).map_err(|error| GroupFailure::Transaction(jobs.len(), error))?;
        let completed = self.run_each(jobs).inspect_err(|_| self.roll_back())?;
        match run(&mut self.commit) {
            Ok(()) => Ok(completed),
            Err(error) => {
                self.roll_back();
                Err(GroupFailure::Transaction(completed, error))
            }
        }
    }

    /// Runs jobs from the front, and returns how many it ran or skipped. It uses no savepoints,
    /// because a savepoint costs as much as a small write and few jobs fail. Most of those that fail
    /// have changed nothing, so the others are not affected.
    fn run_each(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<usize, GroupFailure> {
        let start = Instant::now();
        for (place, job) in jobs.iter_mut().enumerate() {
            if place > 0 && start.elapsed() >= GROUP_TIME {
                return Ok(place);
            }
            if !job.is_wanted() {
                continue;
            }
            let connection = self.tables.connection;
            let changes = connection.total_changes();
            let is_kept = job.run(&mut self.tables);
            // SQLite itself rolls back the transaction in some cases, for example if the disk is full.
            let is_rolled_back = connection.is_autocommit();
            if !is_kept && (is_rolled_back || connection.total_changes() != changes) {
                return Err(GroupFailure::Job(place));
            }
        }
        Ok(jobs.len())
    }

    /// Begins a transaction whose commit has this durability. At `NORMAL`, SQLite leaves a commit
    /// to the operating system. At `FULL`, it syncs its log, with all earlier commits, before other
    /// connections see the commit. Checkpoints sync in both modes, so durable commits stay durable.
    /// Changing the level costs about a hundredth of a sync, and all syncing remains with SQLite. A
    /// pragma takes effect when it is prepared, so it is not kept as a prepared statement.
    fn begin(&mut self, durability: Durability) -> rusqlite::Result<()> {
        if self.durability != Some(durability) {
            let level = match durability {
                Durability::Process => "PRAGMA synchronous = NORMAL",
                Durability::System => "PRAGMA synchronous = FULL",
            };
            self.tables.connection.execute_batch(level)?;
            self.durability = Some(durability);
        }
        run(&mut self.begin)
    }

    fn roll_back(&self) {
        let connection = self.tables.connection;
        // If the rollback fails, the next transaction cannot begin and reports the error.
        if !connection.is_autocommit() {
            drop(connection.execute_batch("ROLLBACK"));
        }
    }
}

fn run(statement: &mut Prepared<'_>) -> rusqlite::Result<()> {
    statement.get()?.execute([]).map(drop)
}

/// Fails all jobs. The first one gets the error with its source.
fn fail_all<'j>(jobs: impl IntoIterator<Item = &'j mut Box<dyn Job>>, error: rusqlite::Error) {
    let error = Error::from(Failure::from(error));
    let (code, message) = (error.code(), "the transaction that contained this write failed");
    let others = std::iter::repeat_with(|| Error::new(code, message));
    for (job, error) in jobs.into_iter().zip(std::iter::once(error).chain(others)) {
        job.fail(error);
    }
}

#[cfg(test)]
mod tests;
