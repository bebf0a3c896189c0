//! What runs left in a SQLite file, read from the file itself.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use helix_agents::event::Event;
use rusqlite::{Connection, OpenFlags};

use crate::job::{Left, StepRows};

/// A reader that keeps the write-ahead log from being reused, so that its length says how much was
/// written.
pub(super) struct Watch {
    reader: Connection,
    wal: PathBuf,
    before: u64,
}

impl Watch {
    /// Begins to read.
    pub(super) fn begin(path: &Path) -> Result<Self> {
        let reader = open(path)?;
        reader.execute_batch("BEGIN; SELECT count(*) FROM sessions;")?;
        let mut wal = path.as_os_str().to_owned();
        wal.push("-wal");
        let wal = PathBuf::from(wal);
        let before = length(&wal);
        Ok(Self { reader, wal, before })
    }

    /// The bytes written since.
    pub(super) fn end(self) -> Result<u64> {
        let written = length(&self.wal).saturating_sub(self.before);
        self.reader.execute_batch("COMMIT")?;
        Ok(written)
    }
}

/// Reads what is in the file.
pub(super) fn read(path: &Path, wal_bytes: u64) -> Result<Left> {
    let connection = open(path)?;
    let chunks = "SELECT count(*), coalesce(sum(length(body)), 0) FROM chunks";
    let (chunk_rows, chunk_bytes) =
        connection.query_row(chunks, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(Left {
        steps: steps(&connection)?,
        chunk_rows,
        chunk_bytes,
        wal_bytes,
        file_bytes: length(path),
    })
}

/// The rows of the log by step. What comes before the first reply is step 0; a row with a reply in
/// it and all after it belong to the reply's step.
fn steps(connection: &Connection) -> Result<Vec<StepRows>> {
    let mut statement = connection.prepare("SELECT body FROM appends ORDER BY key")?;
    let mut rows = statement.query([])?;
    let mut steps: Vec<StepRows> = Vec::new();
    let mut step = 0;
    while let Some(row) = rows.next()? {
        let body: Vec<u8> = row.get(0)?;
        let events: Vec<Event> = serde_json::from_slice(&body).context("a row of the log")?;
        let reply = events.iter().find_map(|event| match event {
            Event::ModelReplied(reply) => Some(reply.step),
            _ => None,
        });
        step = reply.map_or(step, |step| step as usize);
        if steps.len() <= step {
            steps.resize(step + 1, StepRows::default());
        }
        if let Some(rows) = steps.get_mut(step) {
            rows.rows += 1;
            rows.bytes += body.len() as u64;
        }
    }
    Ok(steps)
}

fn open(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).context("the database cannot be opened")
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |it| it.len())
}
