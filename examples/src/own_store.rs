//! A complete custom store: sessions in one append-only file, for the processes of one machine.
//!
//! Acknowledged appends are on the disk. Each operation locks the file, reads the records that
//! other processes added, and adds its own. A record whose writer was killed is truncated, because
//! it was never acknowledged. Streams do not have to survive the process, so the memory store
//! implements them.
//!
//! Every process holds all sessions in memory, which keeps the store simple.

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

/// A store in one file. Clones are handles to the same open file.
///
/// # Durability
///
/// An acknowledged append survives a crash of the process and, provided that the disk keeps what it
/// confirmed, a power loss. Streams are lost with the process.
#[derive(Debug, Clone)]
pub struct FileStore {
    inner: Arc<Mutex<Inner>>,
    streams: MemoryStore,
}

/// The open file and the sessions in it.
#[derive(Debug)]
struct Inner {
    file: LogFile,
    sessions: HashMap<SessionId, Log>,
}

impl FileStore {
    /// Opens the file. Creates it if it does not exist.
    ///
    /// # Errors
    /// Returns [`ErrorCode::StoreForeign`] if the file does not belong to this store,
    /// [`ErrorCode::StoreCorrupt`] if it is unreadable, [`ErrorCode::StoreBusy`] if another process
    /// holds its lock for too long, and disk errors.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_keeping(path, MemoryOptions::default()).await
    }

    /// Opens the file with another retention of streams.
    ///
    /// # Errors
    /// Returns the errors of [`open`](Self::open).
    pub async fn open_keeping(path: impl AsRef<Path>, streams: MemoryOptions) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let inner = blocking(move || Inner::open(&path)).await?;
        let streams = MemoryStore::with_options(streams);
        Ok(Self { inner: Arc::new(Mutex::new(inner)), streams })
    }

    /// Runs `work` with the sessions on a thread for blocking operations.
    ///
    /// Dropping the future does not cancel the work. The contract allows this.
    async fn with<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut Inner) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = Arc::clone(&self.inner);
        let done = blocking(move || lock(&inner).exclusively(work)).await;
        done.map_err(|error| error.with_operation(operation))
    }
}

impl Inner {
    fn open(path: &Path) -> Result<Self> {
        let open = || {
            let mut inner = Self { file: LogFile::open(path)?, sessions: HashMap::new() };
            inner.exclusively(|_| Ok(()))?;
            Ok(inner)
        };
        open().map_err(|error: Error| error.with_context("path", path.display()))
    }

    /// Runs `work` while the file is locked, after applying the records of other processes.
    fn exclusively<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.file.lock()?;
        let done = self.catch_up().and_then(|()| work(self));
        self.file.unlock()?;
        done
    }

    fn catch_up(&mut self) -> Result<()> {
        for record in self.file.catch_up()? {
            self.apply(record);
        }
        Ok(())
    }

    /// Writes a record and then applies it, so that the memory is never ahead of the disk.
    fn write(&mut self, record: Record) -> Result<()> {
        self.file.write(&record)?;
        self.apply(record);
        Ok(())
    }

    /// Applies a record of this process or of another one.
    fn apply(&mut self, record: Record) {
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
                    log.push(append);
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

// Ignoring poison is safe: the panic has already been reported, and the file is authoritative.
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

/// Returns the current time of the store's clock, which decides lease expiry and timestamps
/// appends.
#[expect(clippy::disallowed_methods, reason = "this is the store's own clock")]
fn now() -> Timestamp {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
}
