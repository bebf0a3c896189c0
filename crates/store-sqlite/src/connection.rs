//! Opening connections.

use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use helix_agents_core::error::{Error, ErrorCode, Result};

use crate::config::{Config, Synchronous};
use crate::error::{self, Failure};
use crate::migrations;

/// How many connections read at the same time.
const READERS: usize = 2;

/// How many statements a connection keeps prepared. There are fewer.
const STATEMENTS: usize = 128;

/// The connections of a store.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(crate) writer: Connection,
    pub(crate) readers: Vec<Connection>,
}

/// Opens the file, brings it up to date, and opens all connections.
pub(crate) fn open_all(config: &Config) -> Result<Connections> {
    try_open_all(config).map_err(|failure| error::opening(failure, &config.path))
}

fn try_open_all(config: &Config) -> Result<Connections, Failure> {
    check_path(config)?;
    let mut writer = connect(config)?;
    migrations::run(&mut writer, config.busy_timeout)?;
    configure(&writer, config)?;
    let readers = (0..READERS).map(|_| open_reader(config)).collect::<Result<_, _>>()?;
    Ok(Connections { writer, readers })
}

/// Refuses paths that are none to SQLite.
pub(crate) fn check_path(config: &Config) -> Result<(), Failure> {
    if [":memory:", ""].iter().any(|it| config.path.as_os_str() == *it) {
        let message = "a SQLite store needs a file; in memory there is the memory store";
        return Err(Error::new(ErrorCode::ConfigInvalid, message).into());
    }
    Ok(())
}

/// A connection that only reads.
pub(crate) fn open_reader(config: &Config) -> Result<Connection, Failure> {
    let connection = connect(config)?;
    configure(&connection, config)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// A connection that only reads a file which has to be there.
pub(crate) fn open_existing(config: &Config) -> Result<Connection, Failure> {
    let connection = connect_with(config, OpenFlags::empty())?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// A connection that has not touched the file yet.
fn connect(config: &Config) -> Result<Connection, Failure> {
    connect_with(config, OpenFlags::SQLITE_OPEN_CREATE)
}

fn connect_with(config: &Config, more: OpenFlags) -> Result<Connection, Failure> {
    // Each connection stays on one thread, so SQLite need not lock it. Without the URI flag a path
    // means itself, whatever characters it has.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&config.path, flags | more)?;
    // SQLite keeps it as an `int` of milliseconds.
    let longest = Duration::from_millis(i32::MAX.unsigned_abs().into());
    connection.busy_timeout(config.busy_timeout.min(longest))?;
    if let Some(pages) = config.max_pages {
        connection.pragma_update(None, "max_page_count", pages)?;
    }
    Ok(connection)
}

fn configure(connection: &Connection, config: &Config) -> Result<(), Failure> {
    // The writer sets `synchronous` for each transaction. On macOS a plain sync stops at the disk's
    // own memory; where nothing is synced this means nothing.
    let forced = config.synchronous == Synchronous::Full;
    connection.pragma_update(None, "fullfsync", forced)?;
    connection.pragma_update(None, "checkpoint_fullfsync", forced)?;
    // One large transaction must not leave a large file behind for ever.
    connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}
