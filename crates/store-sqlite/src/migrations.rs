//! The schema of the file, and how older files get it.
//!
//! The file says that it is ours by its `application_id`, and its schema by its `user_version`.
//! Migrations only go forward. A released one is never changed: add another.

use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior};

use helix_agents_core::error::{Error, ErrorCode};

use crate::error::Failure;

/// `HLXA`: a file of this store.
const APPLICATION_ID: i32 = 0x484c_5841;

/// What makes schema n + 1 of schema n.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
    include_str!("migrations/6.sql"),
];

/// What kind of file it is.
enum Found {
    /// Nothing is in it yet.
    Empty,
    /// One of ours, with this many migrations done.
    Ours(usize),
}

/// Brings the file up to date. Leaves files of others, and of newer versions, as they are.
pub(crate) fn run(connection: &mut Connection, patience: Duration) -> Result<(), Failure> {
    patiently(patience, || inspect_alone(connection).map(drop))?;
    if connection.is_readonly(rusqlite::MAIN_DB)? {
        let message = "the database file cannot be written";
        return Err(Error::new(ErrorCode::StoreReadOnly, message).into());
    }
    // SQLite does not wait for its lock here if that could be a deadlock with another process that
    // does the same.
    patiently(patience, || use_wal(connection))?;
    if matches!(inspect_alone(connection)?, Found::Ours(done) if done == MIGRATIONS.len()) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    let done = match inspect(&transaction)? {
        Found::Empty => 0,
        Found::Ours(done) => done,
    };
    for migration in MIGRATIONS.iter().skip(done) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", MIGRATIONS.len())?;
    transaction.commit()?;
    Ok(())
}

/// Checks that the file needs no change to be read.
pub(crate) fn check(connection: &Connection) -> Result<(), Failure> {
    match inspect_alone(connection)? {
        Found::Ours(done) if done == MIGRATIONS.len() => Ok(()),
        _ => {
            let message = "the database has to be brought up to date first, and cannot be written";
            Err(Error::new(ErrorCode::StoreReadOnly, message).into())
        }
    }
}

/// The schema that this version writes.
pub(crate) fn newest() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// The schema of a file of ours, within a transaction; 0 if nothing is in it yet.
pub(crate) fn schema(connection: &Connection) -> Result<u32, Failure> {
    Ok(match inspect(connection)? {
        Found::Empty => 0,
        Found::Ours(done) => u32::try_from(done).unwrap_or(u32::MAX),
    })
}

fn use_wal(connection: &Connection) -> Result<(), Failure> {
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    let message = "the file system does not let processes share memory; use a local disk";
    Err(Error::new(ErrorCode::Unsupported, message).with_context("journal_mode", mode).into())
}

/// All of it at one moment.
fn inspect_alone(connection: &Connection) -> Result<Found, Failure> {
    let transaction = connection.unchecked_transaction()?;
    inspect(&transaction)
}

/// Within a transaction.
fn inspect(connection: &Connection) -> Result<Found, Failure> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    if application == APPLICATION_ID {
        return match usize::try_from(version) {
            Ok(done) if done <= MIGRATIONS.len() => Ok(Found::Ours(done)),
            _ => {
                let message = "a newer version wrote the database; upgrade this program";
                Err(Error::new(ErrorCode::StoreNewer, message)
                    .with_context("schema", version)
                    .with_context("known", MIGRATIONS.len())
                    .into())
            }
        };
    }
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    if (application, version, tables) == (0, 0, 0) {
        return Ok(Found::Empty);
    }
    let message = "the file is a database of another program";
    Err(Error::new(ErrorCode::StoreForeign, message).into())
}

/// Repeats something while other processes are in the way, as long as `patience` lasts.
fn patiently(
    patience: Duration,
    mut action: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let start = Instant::now();
    loop {
        match action() {
            Err(failure) if failure.is_busy() && start.elapsed() < patience => {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "this is a thread of the store's, no task"
                )]
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}
