//! The file: records one after another, whole or not at all.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes};
use helix_agents::error::{Error, ErrorCode, Result};

use crate::record::Record;

/// How a file of this store begins.
const MAGIC: &[u8] = b"helix-file-store 1\n";

/// How long to wait while another process writes.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait between looks whether it still does.
const PAUSE: Duration = Duration::from_millis(1);

/// The open file. Whoever reads or writes it holds its lock, so nobody meets half a record of
/// somebody who lives.
#[derive(Debug)]
pub(crate) struct LogFile {
    file: File,
    /// Up to where it was read: whole records only.
    length: u64,
}

impl LogFile {
    /// Opens the file; makes it if there is none.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(classify)?;
        Ok(Self { file, length: 0 })
    }

    /// Keeps other processes, and other handles of this one, off the file.
    pub(crate) fn lock(&self) -> Result<()> {
        let began = Instant::now();
        loop {
            match self.file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(error)) => return Err(classify(error)),
                Err(TryLockError::WouldBlock) if began.elapsed() > PATIENCE => {
                    let message = "another process has locked the file for too long";
                    return Err(Error::new(ErrorCode::StoreBusy, message));
                }
                Err(TryLockError::WouldBlock) => pause(),
            }
        }
    }

    /// Lets others go on.
    pub(crate) fn unlock(&self) -> Result<()> {
        self.file.unlock().map_err(classify)
    }

    /// What was added since the last look. Under the lock, a record that is not whole is one whose
    /// writer died, and nobody was told of it: it is cut off.
    pub(crate) fn catch_up(&mut self) -> Result<Vec<Record>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(self.length)).map_err(classify)?;
        self.file.read_to_end(&mut bytes).map_err(classify)?;
        let mut rest = Bytes::from(bytes);
        if self.length == 0 {
            if rest.len() < MAGIC.len() && MAGIC.starts_with(&rest) {
                // Nobody has got as far as a record.
                self.add(MAGIC, true).map_err(classify)?;
                return Ok(Vec::new());
            }
            if !rest.starts_with(MAGIC) {
                let message = "the file is none of this store";
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

    /// Adds a record. When it returns, the record is on the disk, if anybody is told of it.
    pub(crate) fn write(&mut self, record: &Record) -> Result<()> {
        let head = serde_json::to_vec(record).map_err(|error| {
            Error::new(ErrorCode::Internal, "a record cannot be written as JSON").with_source(error)
        })?;
        let body = record.body();
        let mut bytes = Vec::with_capacity(16 + head.len() + body.len());
        bytes.extend_from_slice(&(head.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(body);
        self.add(&bytes, record.is_promised()).map_err(classify)
    }

    fn add(&mut self, bytes: &[u8], promised: bool) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.length))?;
        let written = self.file.write_all(bytes).and_then(|()| match promised {
            true => self.file.sync_data(),
            false => Ok(()),
        });
        if written.is_err() {
            // What nobody is told of must not be there either. If this fails too, the next one who
            // comes along cuts it off, or finds it whole: then it was taken after all.
            drop(self.file.set_len(self.length));
            return written;
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// A record, and how long it is in the file.
struct Read {
    record: Record,
    size: u64,
}

/// The next record, if it is there as a whole.
fn next(bytes: &mut Bytes) -> Result<Option<Read>> {
    let before = bytes.len();
    let Some((head, body)) = parts(bytes) else { return Ok(None) };
    let record: Record = serde_json::from_slice(&head).map_err(|error| {
        Error::new(ErrorCode::StoreCorrupt, "a record of the file cannot be read")
            .with_source(error)
    })?;
    let size = (before - bytes.len()) as u64;
    Ok(Some(Read { record: record.with_body(body), size }))
}

/// The next record's parts, if they are all there.
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

#[expect(clippy::disallowed_methods, reason = "on a thread that may wait for the disk")]
fn pause() {
    std::thread::sleep(PAUSE);
}

/// What errors of the disk mean, decided here and nowhere else.
fn classify(error: io::Error) -> Error {
    let (code, message) = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            (ErrorCode::StoreFull, "the disk is full")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            (ErrorCode::StoreReadOnly, "the file cannot be written")
        }
        ErrorKind::NotFound | ErrorKind::IsADirectory => {
            (ErrorCode::ConfigInvalid, "the path of the file is not usable")
        }
        _ => (ErrorCode::StoreUnavailable, "the file could not be read or written"),
    };
    Error::new(code, message).with_source(error)
}
