//! Looking at a file without making or changing one.

use rusqlite::Connection;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::store::SessionStatus;

use crate::config::Config;
use crate::error::{self, Failure};
use crate::{clock, connection, migrations};

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The schema of the file; 0 if nothing is in it yet.
    pub schema: u32,
    /// The schema that this version writes. Opening an older file brings it up to date.
    pub newest_schema: u32,
    /// How SQLite keeps changes until they are in the file: `wal`, once the store has opened it.
    pub journal_mode: String,
    /// Whether the file can be written.
    pub writable: bool,
    /// The bytes of the file, with what has not been folded into it yet.
    pub bytes: u64,
    /// Sessions with a run whose owner counts as alive. This and what follows is counted only in a
    /// file of the newest schema.
    pub running: u64,
    /// Sessions with a run that stopped without ending: they can be resumed.
    pub stopped: u64,
    /// Sessions without a run under way, by status.
    pub ended: Vec<(SessionStatus, u64)>,
    /// What sessions ran on last, each kind of runtime once.
    pub runtimes: Vec<String>,
    /// The chunks that are kept of all streams.
    pub chunks: u64,
}

/// Looks at the file; none if there is none.
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
        running: 0,
        stopped: 0,
        ended: Vec::new(),
        runtimes: Vec::new(),
        chunks: 0,
    };
    if schema == inspection.newest_schema {
        count_sessions(&transaction, &mut inspection)?;
        inspection.chunks = transaction.query_row(
            "SELECT coalesce(sum(last_seq - trimmed), 0) FROM streams",
            [],
            |row| row.get(0),
        )?;
    }
    Ok(Some(inspection))
}

fn count_sessions(connection: &Connection, inspection: &mut Inspection) -> Result<(), Failure> {
    (inspection.running, inspection.stopped) = connection.query_row(
        "SELECT count(*) FILTER (WHERE coalesce(lease_until, 0) > ?1),
                count(*) FILTER (WHERE coalesce(lease_until, 0) <= ?1)
         FROM sessions WHERE run IS NOT NULL",
        [clock::now().0],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let mut statement = connection
        .prepare("SELECT status, count(*) FROM sessions WHERE run IS NULL GROUP BY status")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let status = row.get_ref(0)?.as_str().ok().and_then(SessionStatus::parse);
        let status = status.ok_or_else(|| {
            Error::new(ErrorCode::StoreCorrupt, "the status of a session is not known")
        })?;
        inspection.ended.push((status, row.get(1)?));
    }
    let mut statement =
        connection.prepare("SELECT DISTINCT runtime FROM sessions ORDER BY runtime")?;
    inspection.runtimes = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(())
}

/// Of the file and of the log beside it.
fn bytes(config: &Config) -> u64 {
    let mut log = config.path.as_os_str().to_owned();
    log.push("-wal");
    let size = |path: &std::path::Path| std::fs::metadata(path).map_or(0, |it| it.len());
    size(&config.path) + size(log.as_ref())
}
