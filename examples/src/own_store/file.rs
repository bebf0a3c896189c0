//! The file, a sequence of complete records.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes};
use helix_agents::error::{Error, ErrorCode, Result};

use super::record::Record;

/// The first bytes of a store file.
const MAGIC: &[u8] = b"helix-file-store 1\n";

/// The maximum time to wait for the lock of another process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval between two attempts to lock the file.
const PAUSE: Duration = Duration::from_millis(1);

/// The open file. Readers and writers hold its lock, so they never see a partial record of a
/// running process.
#[derive(Debug)]
pub(crate) struct LogFile {
    file: File,
    /// The end of the records that were read so far.
    length: u64,
}

impl LogFile {
    /// Opens the file. Creates it if it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(classify)?;
        Ok(Self { file, length: 0 })
    }

    /// Locks the file against other processes and other handles of this process.
    pub(crate) fn lock(&self) -> Result<()> {
        let started = Instant::now();
        loop {
            match self.file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(error)) => return Err(classify(error)),
                Err(TryLockError::WouldBlock) if started.elapsed() > LOCK_TIMEOUT => {
                    let message = "another process locked the file for too long";
                    return Err(Error::new(ErrorCode::StoreBusy, message));
                }
                Err(TryLockError::WouldBlock) => pause(),
            }
        }
    }

    /// Unlocks the file.
    pub(crate) fn unlock(&self) -> Result<()> {
        self.file.unlock().map_err(classify)
    }

    /// Reads the records that were added since the last call. The caller holds the lock, so an
    /// incomplete record belongs to a crashed writer and was never acknowledged: it is truncated.
    pub(crate) fn catch_up(&mut self) -> Result<Vec<Record>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(self.length)).map_err(classify)?;
        self.file.read_to_end(&mut bytes).map_err(classify)?;
        let mut rest = Bytes::from(bytes);
        if self.length == 0 {
            if rest.len() < MAGIC.len() && MAGIC.starts_with(&rest) {
                // The file is new, or its creator crashed before the first record.
                self.add(MAGIC, true).map_err(classify)?;
                return Ok(Vec::new());
            }
            if !rest.starts_with(MAGIC) {
                let message = "the file does not belong to this store";
                return Err(Error::new(ErrorCode::StoreForeign, message));
            }
            rest.advance(MAGIC.len());
            self.length = MAGIC.len() as u64;
        }
        let mut records = Vec::new();
        while let Some(record) = next(&mut rest)? {
            self.length += record.size;
            records.push(record.record);
        }
        if !rest.is_empty() {
            self.file.set_len(self.length).map_err(classify)?;
        }
        Ok(records)
    }

    /// Writes a record. If the record has to be durable, it is on the disk when this returns.
    pub(crate) fn write(&mut self, record: &Record) -> Result<()> {
        let head = serde_json::to_vec(record).map_err(|error| {
            Error::new(ErrorCode::Internal, "a record cannot be serialized as JSON")
                .with_source(error)
        })?;
        let body = record.body();
        let mut bytes = Vec::with_capacity(16 + head.len() + body.len());
        bytes.extend_from_slice(&(head.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(body);
        self.add(&bytes, record.is_durable()).map_err(classify)
    }

    fn add(&mut self, bytes: &[u8], durable: bool) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.length))?;
        let written = self.file.write_all(bytes).and_then(|()| match durable {
            true => self.file.sync_data(),
            false => Ok(()),
        });
        if written.is_err() {
            // Remove a record that will not be acknowledged. If this fails, too, the next caller
            // either truncates the record or finds it complete. In the latter case, the write
            // succeeded after all.
            drop(self.file.set_len(self.length));
            return written;
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// A record and its length in the file.
struct Read {
    record: Record,
    size: u64,
}

/// Reads the next record, if it is complete.
fn next(bytes: &mut Bytes) -> Result<Option<Read>> {
    let before = bytes.len();
    let Some((head, body)) = parts(bytes) else { return Ok(None) };
    let record: Record = serde_json::from_slice(&head).map_err(|error| {
        Error::new(ErrorCode::StoreCorrupt, "a record of the file is unreadable").with_source(error)
    })?;
    let size = (before - bytes.len()) as u64;
    Ok(Some(Read { record: record.with_body(body), size }))
}

/// Splits off the parts of the next record, if they are complete.
fn parts(bytes: &mut Bytes) -> Option<(Bytes, Bytes)> {
    let mut lengths = bytes.get(..16)?;
    let (head, body) = (lengths.get_u64_le(), lengths.get_u64_le());
    let (head, body) = (usize::try_from(head).ok()?, usize::try_from(body).ok()?);
    if bytes.len() - 16 < head.checked_add(body)? {
        return None;
    }
    bytes.advance(16);
    Some((bytes.split_to(head), bytes.split_to(body)))
}

#[expect(clippy::disallowed_methods, reason = "runs on a thread for blocking operations")]
fn pause() {
    std::thread::sleep(PAUSE);
}

/// The only place that maps disk errors to framework errors.
fn classify(error: io::Error) -> Error {
    let (code, message) = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            (ErrorCode::StoreFull, "the disk is full")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            (ErrorCode::StoreReadOnly, "the file is not writable")
        }
        ErrorKind::NotFound | ErrorKind::IsADirectory => {
            (ErrorCode::ConfigInvalid, "the path of the file is not usable")
        }
        _ => (ErrorCode::StoreUnavailable, "the file could not be read or written"),
    };
    Error::new(code, message).with_source(error)
}
