//! The footprint of runs in a SQLite file.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rusqlite::{Connection, OpenFlags};

use crate::job::Traces;

/// A reader that prevents the write-ahead log from being reset, so that its length shows how much
/// was written.
pub(in crate::measure) struct Watch {
    reader: Connection,
    path: PathBuf,
    wal: PathBuf,
    written_before: u64,
    kept_before: u64,
}

impl Watch {
    pub(super) fn begin(path: &Path) -> Result<Self> {
        let reader = open(path)?;
        let kept_before = kept(&reader)?;
        reader.execute_batch("BEGIN; SELECT count(*) FROM sessions;")?;
        let mut wal = path.as_os_str().to_owned();
        wal.push("-wal");
        let wal = PathBuf::from(wal);
        let written_before = length(&wal);
        Ok(Self { reader, path: path.to_owned(), wal, written_before, kept_before })
    }

    pub(super) fn end(self) -> Result<Traces> {
        let written_bytes = length(&self.wal).saturating_sub(self.written_before);
        self.reader.execute_batch("COMMIT")?;
        let now = open(&self.path)?;
        let count = |tables| -> Result<u64> {
            let sum = format!("SELECT {tables}");
            let count: i64 = now.query_row(&sum, [], |row| row.get(0))?;
            Ok(u64::try_from(count)?)
        };
        Ok(Traces {
            rows: count("(SELECT count(*) FROM sessions) + (SELECT count(*) FROM appends)")?,
            stream_rows: count("(SELECT count(*) FROM streams) + (SELECT count(*) FROM chunks)")?,
            written_bytes,
            kept_bytes: kept(&now)?.saturating_sub(self.kept_before),
        })
    }
}

/// Returns the size of the file's pages, including those that are still in the write-ahead log.
fn kept(connection: &Connection) -> Result<u64> {
    let number = |name: &str| -> Result<u64> {
        let value: i64 = connection.pragma_query_value(None, name, |row| row.get(0))?;
        Ok(u64::try_from(value)?)
    };
    Ok(number("page_count")? * number("page_size")?)
}

fn open(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).context("the database could not be opened")
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}
