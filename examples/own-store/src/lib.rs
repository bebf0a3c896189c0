//! A complete store of one's own: sessions in one append-only file, for the processes of one
//! machine.
//!
//! What is acknowledged is on the disk. Whoever does something locks the file, takes in what others
//! have added, and adds to it. A record whose writer was killed in the middle is cut off: nobody was
//! told of it. Streams, which promise nothing beyond the process, are handed to the memory store.
//!
//! Every process holds all of it in memory, which is what makes it small.

mod file;
mod log;
mod record;
mod state;
mod streams;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use helix_agents::clock::Timestamp;
use helix_agents::error::{Error, ErrorCode, Result};
use helix_agents::id::SessionId;
use helix_agents::store_memory::{MemoryOptions, MemoryStore};

use file::LogFile;
use log::Log;
use record::Record;

/// A store in one file. Clones are handles of the same open file.
///
/// # Durability
///
/// An acknowledged append survives the process and, as far as the disk tells the truth, a loss of
/// power. Streams are gone with the process.
#[derive(Debug, Clone)]
pub struct FileStore {
    inner: Arc<Mutex<Inner>>,
    streams: MemoryStore,
}

/// What is in the file, and the file.
#[derive(Debug)]
struct Inner {
    file: LogFile,
    sessions: HashMap<SessionId, Log>,
}

impl FileStore {
    /// Opens the file; makes it if there is none.
    ///
    /// # Errors
    /// [`ErrorCode::StoreForeign`] if it is no file of this store, [`ErrorCode::StoreCorrupt`] if
    /// it cannot be read, [`ErrorCode::StoreBusy`] if another process has it locked for too long,
    /// and those of the disk.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_keeping(path, MemoryOptions::default()).await
    }

    /// The same, with another retention of streams.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_keeping(path: impl AsRef<Path>, streams: MemoryOptions) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let inner = blocking(move || Inner::open(&path)).await?;
        let streams = MemoryStore::with_options(streams);
        Ok(Self { inner: Arc::new(Mutex::new(inner)), streams })
    }

    /// Does something with what is in the file, on a thread that may wait for the disk.
    ///
    /// A future that is dropped does not stop it: what was asked for takes place, as the contract
    /// allows.
    async fn with<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut Inner) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = Arc::clone(&self.inner);
        let done = blocking(move || lock(&inner).alone(work)).await;
        done.map_err(|error| error.with_operation(operation))
    }
}

impl Inner {
    fn open(path: &Path) -> Result<Self> {
        let open = || {
            let mut inner = Self { file: LogFile::open(path)?, sessions: HashMap::new() };
            inner.alone(|_| Ok(()))?;
            Ok(inner)
        };
        open().map_err(|error: Error| error.with_context("path", path.display()))
    }

    /// Does something while no other process does, and on top of what they did.
    fn alone<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.file.lock()?;
        let done = self.catch_up().and_then(|()| work(self));
        self.file.unlock()?;
        done
    }

    fn catch_up(&mut self) -> Result<()> {
        for record in self.file.catch_up()? {
            self.take(record);
        }
        Ok(())
    }

    /// Writes a record, and then takes it in: what is in memory is never ahead of the disk.
    fn write(&mut self, record: Record) -> Result<()> {
        self.file.write(&record)?;
        self.take(record);
        Ok(())
    }

    /// Takes in a record: one that was just written, or one of another process.
    fn take(&mut self, record: Record) {
        match record {
            Record::Created { new, append } => {
                self.sessions.insert(append.session.clone(), Log::new(new, append));
            }
            Record::Forked { from, new, append } => {
                if let Some(original) = self.sessions.get(&from) {
                    let log = original.fork(new, append);
                    self.sessions.insert(log.head.session.clone(), log);
                }
            }
            Record::Appended(append) => {
                if let Some(log) = self.sessions.get_mut(&append.session) {
                    log.take(append);
                }
            }
            Record::Renewed { session, until } => {
                if let Some(log) = self.sessions.get_mut(&session) {
                    log.renew(until);
                }
            }
            Record::Deleted { sessions } => {
                for session in sessions {
                    self.sessions.remove(&session);
                }
            }
        }
    }

    fn log(&self, session: &SessionId) -> Result<&Log> {
        self.sessions.get(session).ok_or_else(|| {
            Error::new(ErrorCode::SessionNotFound, "no such session")
                .with_context("session", session)
        })
    }
}

// A panic under this lock is a bug that was reported already; the file is what counts.
fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Error::new(ErrorCode::Internal, "the store panicked").with_source(error)),
    }
}

/// The store's clock: leases and times of appends are of this one and of no other.
#[expect(clippy::disallowed_methods, reason = "a store has a clock of its own; this is it")]
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
