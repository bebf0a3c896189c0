//! Opening connections.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use helix_agents_core::error::{Error, ErrorCode, Result};

use crate::config::{Config, Synchronous};
use crate::error::{self, Failure};
use crate::migrations;

/// The number of connections that read concurrently.
const READERS: usize = 2;

/// The capacity of a connection's prepared statement cache. It exceeds the number of statements.
const STATEMENTS: usize = 128;

/// The connections of a store.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(crate) writer: Connection,
    pub(crate) readers: Vec<Connection>,
}

/// Opens the file, migrates its schema, and opens all connections.
pub(crate) fn open_all(config: &Config) -> Result<Connections> {
    try_open_all(config).map_err(|failure| error::opening(failure, &config.path))
}

fn try_open_all(config: &Config) -> Result<Connections, Failure> {
    check_path(config)?;
    let mut writer = connect(config)?;
    if config.read_only {
        migrations::check(&writer)?;
        let readers = (0..READERS).map(|_| open_reader(config)).collect::<Result<_, _>>()?;
        return Ok(Connections { writer, readers });
    }
    if migrations::run(&mut writer, config.busy_timeout)? {
        // `ALTER TABLE` opens SQLite's temporary database, and the connection then includes it in
        // each transaction. A new connection avoids that cost. It reads the file before the other
        // one is closed, because closing the last connection removes the write-ahead log.
        let next = connect(config)?;
        migrations::check(&next)?;
        writer = next;
    }
    configure(&writer, config)?;
    let readers = (0..READERS).map(|_| open_reader(config)).collect::<Result<_, _>>()?;
    Ok(Connections { writer, readers })
}

/// Rejects paths that SQLite does not treat as files.
pub(crate) fn check_path(config: &Config) -> Result<(), Failure> {
    if [":memory:", ""].iter().any(|path| config.path.as_os_str() == *path) {
        let message = "a SQLite store needs a file; use the memory store to keep data in memory";
        return Err(Error::new(ErrorCode::ConfigInvalid, message).into());
    }
    Ok(())
}

/// Opens a connection that only reads.
pub(crate) fn open_reader(config: &Config) -> Result<Connection, Failure> {
    let connection = connect(config)?;
    configure(&connection, config)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Opens a connection that only reads an existing file.
pub(crate) fn open_existing(config: &Config) -> Result<Connection, Failure> {
    let connection = connect_with(config, OpenFlags::empty())?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Opens a connection that has not accessed the file yet.
fn connect(config: &Config) -> Result<Connection, Failure> {
    if config.read_only {
        return connect_to_read(config);
    }
    connect_with(config, OpenFlags::SQLITE_OPEN_CREATE)
}

/// Opens a read-only connection. SQLite creates files next to a database in WAL mode even for
/// reading, unless the write-ahead log already exists or the database is immutable.
fn connect_to_read(config: &Config) -> Result<Connection, Failure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut log = config.path.as_os_str().to_owned();
    log.push("-wal");
    let connection = if Path::new(&log).exists() {
        Connection::open_with_flags(&config.path, flags)?
    } else {
        let mut uri = "file:".to_owned();
        for byte in config.path.as_os_str().as_encoded_bytes() {
            match byte {
                b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
                byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
                byte => uri.push_str(&format!("%{byte:02X}")),
            }
        }
        uri.push_str("?immutable=1");
        Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?
    };
    connection.busy_timeout(busy_timeout(config))?;
    Ok(connection)
}

fn connect_with(config: &Config, more: OpenFlags) -> Result<Connection, Failure> {
    // Each connection stays on one thread, so SQLite does not need a mutex. Without the URI flag,
    // SQLite takes every character of the path literally.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&config.path, flags | more)?;
    connection.busy_timeout(busy_timeout(config))?;
    if let Some(pages) = config.max_pages {
        connection.pragma_update(None, "max_page_count", pages)?;
    }
    Ok(connection)
}

/// Returns the busy timeout. SQLite stores it as an `int` of milliseconds.
fn busy_timeout(config: &Config) -> Duration {
    config.busy_timeout.min(Duration::from_millis(i32::MAX.unsigned_abs().into()))
}

fn configure(connection: &Connection, config: &Config) -> Result<(), Failure> {
    // The writer sets `synchronous` per transaction. On macOS a plain sync stops at the disk's
    // write cache, so these pragmas request a full sync. They have no effect on commits without a
    // sync.
    let forced = config.synchronous == Synchronous::Full;
    connection.pragma_update(None, "fullfsync", forced)?;
    connection.pragma_update(None, "checkpoint_fullfsync", forced)?;
    // Truncate the write-ahead log after one large transaction made it grow.
    connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}
