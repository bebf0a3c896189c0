//! Inspection of a file without creating or changing one.

use rusqlite::Connection;
use serde::Serialize;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::store::{SessionCounts, SessionStatus};

use crate::config::Config;
use crate::error::{self, Failure};
use crate::unsigned::Unsigned;
use crate::{clock, connection, migrations};

/// The contents of a store file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Inspection {
    /// The schema version of the file. It is 0 if the file is empty.
    pub schema: u32,
    /// The schema version that this version of the store writes. Opening an older file migrates it.
    pub newest_schema: u32,
    /// The journal mode of SQLite. It is `wal` after the store has opened the file.
    pub journal_mode: String,
    /// `true` if the file is writable.
    pub writable: bool,
    /// The size of the file and its write-ahead log in bytes.
    pub bytes: u64,
    /// The numbers of sessions. They and the following members are only determined in a file of the
    /// newest schema.
    pub sessions: SessionCounts,
    /// The runtimes that sessions last ran on, without duplicates.
    pub runtimes: Vec<String>,
    /// The number of chunks that are kept, over all streams.
    pub chunks: u64,
}

/// Inspects the file. Returns `None` if it does not exist.
pub(crate) fn inspect(config: &Config) -> Result<Option<Inspection>> {
    try_inspect(config).map_err(|failure| error::opening(failure, &config.path))
}

fn try_inspect(config: &Config) -> Result<Option<Inspection>, Failure> {
    connection::check_path(config)?;
    if !config.path.exists() {
        return Ok(None);
    }
    let mut connection = connection::open_existing(config)?;
    let transaction = connection.transaction()?;
    let schema = migrations::schema(&transaction)?;
    let mut inspection = Inspection {
        schema,
        newest_schema: migrations::newest(),
        journal_mode: transaction.pragma_query_value(None, "journal_mode", |row| row.get(0))?,
        writable: !transaction.is_readonly(rusqlite::MAIN_DB)?,
        bytes: bytes(config),
        sessions: SessionCounts::default(),
        runtimes: Vec::new(),
        chunks: 0,
    };
    if schema == inspection.newest_schema {
        count_sessions(&transaction, &mut inspection)?;
        inspection.chunks = transaction.query_row(
            "SELECT coalesce(sum(last_seq - trimmed), 0) FROM streams",
            [],
            |row| Unsigned::get(row, 0),
        )?;
    }
    Ok(Some(inspection))
}

fn count_sessions(connection: &Connection, inspection: &mut Inspection) -> Result<(), Failure> {
    let sessions = &mut inspection.sessions;
    (sessions.running, sessions.stopped) = connection.query_row(
        "SELECT count(*) FILTER (WHERE coalesce(lease_until, 0) > ?1),
                count(*) FILTER (WHERE coalesce(lease_until, 0) <= ?1)
         FROM sessions WHERE run IS NOT NULL",
        [clock::now().0],
        |row| Ok((Unsigned::get(row, 0)?, Unsigned::get(row, 1)?)),
    )?;
    let mut statement = connection
        .prepare("SELECT status, count(*) FROM sessions WHERE run IS NULL GROUP BY status")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let status = row.get_ref(0)?.as_str().ok().and_then(SessionStatus::parse);
        let status = status.ok_or_else(|| {
            Error::new(ErrorCode::StoreCorrupt, "a session has an unknown status")
        })?;
        sessions.without_run.push((status, Unsigned::get(row, 1)?));
    }
    let mut statement =
        connection.prepare("SELECT DISTINCT runtime FROM sessions ORDER BY runtime")?;
    inspection.runtimes = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(())
}

/// Returns the size of the file and its write-ahead log.
fn bytes(config: &Config) -> u64 {
    let mut log = config.path.as_os_str().to_owned();
    log.push("-wal");
    let size =
        |path: &std::path::Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    size(&config.path) + size(log.as_ref())
}
