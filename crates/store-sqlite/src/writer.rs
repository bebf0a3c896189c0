//! The thread that writes, and how what it is asked for shares transactions.
//!
//! One connection writes, because each of two would find its pages stale after every commit of the
//! other. It does everything that waits in one transaction (a group commit): the more there is to
//! do, the less each of it costs, and a lone operation waits for nothing.

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

/// The most operations in one transaction.
const GROUP: usize = 64;

/// How long a transaction takes in more of them.
const GROUP_TIME: Duration = Duration::from_millis(10);

/// What an acknowledged operation survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Durability {
    /// A crash of the process: the operating system has it.
    Process,
    /// A crash of the system, and a loss of power: the disk has it.
    System,
}

/// The queue before the thread that writes.
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

    /// Does something within a transaction that is kept if it succeeds, and `then` with the result once
    /// that is committed, whether the caller still waits or not. `work` may be done again if it was undone because of others.
    ///
    /// # Cancel safety
    /// Dropping the future leaves open whether the work is done.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnMut(&mut Tables<'_>) -> Result<T, Failure> + Send + 'static,
        then: impl FnOnce(&T) + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Asked { durability, work, then, result: None, reply });
        self.queue.send(job).await?;
        answer.await.unwrap_or_else(|_| Err(worker::panicked()))
    }

    /// Ends the thread once it has done what is in the queue.
    pub(crate) fn close(&self) {
        self.queue.close();
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.queue.fmt(f)
    }
}

/// Something to do, seen from the thread that writes.
trait Job: Send {
    fn durability(&self) -> Durability;

    /// Whether anybody still waits for it.
    fn is_wanted(&self) -> bool;

    /// Does it; whether it is to be kept.
    fn run(&mut self, tables: &mut Tables<'_>) -> bool;

    /// What it did is not kept, or it could not be done at all.
    fn fail(&mut self, error: Error);

    /// Tells the caller.
    fn answer(self: Box<Self>);
}

struct Asked<T, W, D> {
    durability: Durability,
    work: W,
    then: D,
    result: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, W, D> Job for Asked<T, W, D>
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
        // A panic is one operation's. Statements are reset on the way.
        let result = catch_unwind(AssertUnwindSafe(|| (self.work)(tables)));
        let result = result.unwrap_or_else(|_| Err(worker::panicked().into()));
        let is_kept = result.is_ok();
        self.result = Some(result.map_err(Error::from));
        is_kept
    }

    fn fail(&mut self, error: Error) {
        // Its own error says more.
        if !matches!(self.result, Some(Err(_))) {
            self.result = Some(Err(error));
        }
    }

    fn answer(self: Box<Self>) {
        let Self { then, result, reply, .. } = *self;
        let Some(result) = result else { return };
        // Here and not by the caller, who may be gone.
        if let Ok(result) = &result {
            then(result);
        }
        drop(reply.send(result));
    }
}

fn serve(connection: Connection, mut jobs: mpsc::Receiver<Box<dyn Job>>, shared: Shared) {
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
    /// What the connection is set to.
    durability: Option<Durability>,
    begin: Prepared<'c>,
    commit: Prepared<'c>,
    save: Prepared<'c>,
    undo: Prepared<'c>,
    release: Prepared<'c>,
}

/// Why a group was not committed as it is.
enum Broken {
    /// SQLite rolled all of it back because of the job at this place, which knows.
    By(usize),
    /// Nothing was kept of so many jobs.
    All(usize, rusqlite::Error),
}

impl<'c> Transactions<'c> {
    fn new(connection: &'c Connection) -> Self {
        let prepared = |sql| Prepared::new(connection, sql);
        Self {
            tables: Tables::new(connection),
            durability: None,
            begin: prepared("BEGIN IMMEDIATE"),
            commit: prepared("COMMIT"),
            save: prepared("SAVEPOINT job"),
            undo: prepared("ROLLBACK TO job"),
            release: prepared("RELEASE job"),
        }
    }

    /// Does all jobs and answers them.
    fn run(&mut self, jobs: &mut Vec<Box<dyn Job>>) {
        while !jobs.is_empty() {
            // Nobody waits any more: it need not be done.
            jobs.retain(|job| job.is_wanted());
            let ended = self.run_some(jobs);
            for job in jobs.drain(..ended) {
                // What a caller does when it is woken must not end the thread.
                drop(catch_unwind(AssertUnwindSafe(|| job.answer())));
            }
        }
    }

    /// Does the first of the jobs; returns how many.
    fn run_some(&mut self, jobs: &mut [Box<dyn Job>]) -> usize {
        match self.run_together(jobs) {
            Ok(ended) => ended,
            Err(Broken::By(place)) => {
                // The others must not suffer: each on its own.
                for job in jobs.iter_mut().take(place) {
                    self.run_alone(job);
                }
                place + 1
            }
            Err(Broken::All(ended, error)) => {
                fail_all(jobs.iter_mut().take(ended), error);
                ended
            }
        }
    }

    fn run_alone(&mut self, job: &mut Box<dyn Job>) {
        if let Err(Broken::All(_, error)) = self.run_together(slice::from_mut(job)) {
            fail_all([job], error);
        }
    }

    /// Does the first of the jobs in one transaction; returns how many.
    fn run_together(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<usize, Broken> {
        let Some(durability) = jobs.iter().map(|job| job.durability()).max() else { return Ok(0) };
        self.begin(durability).map_err(|error| Broken::All(jobs.len(), error))?;
        let ended = match jobs {
            [job] => {
                if !job.run(&mut self.tables) {
                    self.roll_back();
                    return Ok(1);
                }
                1
            }
            jobs => self.run_each(jobs).inspect_err(|_| self.roll_back())?,
        };
        match run(&mut self.commit) {
            Ok(()) => Ok(ended),
            Err(error) => {
                self.roll_back();
                Err(Broken::All(ended, error))
            }
        }
    }

    /// Does jobs so that each can be undone alone.
    fn run_each(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<usize, Broken> {
        let start = Instant::now();
        for (place, job) in jobs.iter_mut().enumerate() {
            if place > 0 && start.elapsed() >= GROUP_TIME {
                return Ok(place);
            }
            if !job.is_wanted() {
                continue;
            }
            let broken = |error| Broken::All(place + 1, error);
            run(&mut self.save).map_err(broken)?;
            let is_kept = job.run(&mut self.tables);
            // As for a full disk.
            if self.tables.connection.is_autocommit() {
                return Err(Broken::By(place));
            }
            if !is_kept {
                run(&mut self.undo).map_err(broken)?;
            }
            run(&mut self.release).map_err(broken)?;
        }
        Ok(jobs.len())
    }

    /// Begins a transaction whose commit makes it so durable. At `NORMAL`, SQLite leaves a commit
    /// to the operating system; at `FULL` it forces its log to the disk, with all earlier commits
    /// in it, before anybody sees this one. Checkpoints sync alike at both, so what was durable
    /// stays so. To change the level costs a hundredth of a sync, and leaves to SQLite what a sync
    /// of our own would have to prove. A pragma takes effect when it is prepared, so it is each
    /// time.
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
        // If even that fails, the next one cannot begin, and says so.
        if !connection.is_autocommit() {
            drop(connection.execute_batch("ROLLBACK"));
        }
    }
}

fn run(statement: &mut Prepared<'_>) -> rusqlite::Result<()> {
    statement.get()?.execute([]).map(drop)
}

/// The first gets the error itself, with its source.
fn fail_all<'j>(jobs: impl IntoIterator<Item = &'j mut Box<dyn Job>>, error: rusqlite::Error) {
    let error = Error::from(Failure::from(error));
    let (code, message) = (error.code(), "what was written together with this could not be");
    let others = std::iter::repeat_with(|| Error::new(code, message));
    for (job, error) in jobs.into_iter().zip(std::iter::once(error).chain(others)) {
        job.fail(error);
    }
}

#[cfg(test)]
mod tests;
