//! The schema of the file and the migrations of older files.
//!
//! The `application_id` of the file identifies the store, and the `user_version` is the schema
//! version. Migrations only go forward. Never change a released migration; add another one.

use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior};

use helix_agents_core::error::{Error, ErrorCode};

use crate::error::Failure;

/// `HLXA`, the application id of this store's files.
const APPLICATION_ID: i32 = 0x484c_5841;

/// The migrations. The one at index n turns schema n into schema n + 1.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
    include_str!("migrations/6.sql"),
    include_str!("migrations/7.sql"),
];

/// The kind of a file.
enum FileKind {
    /// The file is empty.
    Empty,
    /// A file of this store, with the number of completed migrations.
    Ours(usize),
}

/// Migrates the file to the newest schema. Returns `true` if the file was empty or had an older
/// schema. Does not change files of other programs or newer versions.
pub(crate) fn run(connection: &mut Connection, timeout: Duration) -> Result<bool, Failure> {
    retry_while_busy(timeout, || inspect_alone(connection).map(drop))?;
    if connection.is_readonly(rusqlite::MAIN_DB)? {
        let message = "the database file cannot be written";
        return Err(Error::new(ErrorCode::StoreReadOnly, message).into());
    }
    // SQLite does not wait for this lock, because two processes that do so could deadlock.
    retry_while_busy(timeout, || use_wal(connection))?;
    if matches!(inspect_alone(connection)?, FileKind::Ours(done) if done == MIGRATIONS.len()) {
        return Ok(false);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated the file meanwhile.
    let done = match inspect(&transaction)? {
        FileKind::Empty => 0,
        FileKind::Ours(done) => done,
    };
    for migration in MIGRATIONS.iter().skip(done) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", newest())?;
    transaction.commit()?;
    Ok(true)
}

/// Checks that the file can be read without a migration.
pub(crate) fn check(connection: &Connection) -> Result<(), Failure> {
    match inspect_alone(connection)? {
        FileKind::Ours(done) if done == MIGRATIONS.len() => Ok(()),
        _ => {
            let message = "the database needs a migration, but it is opened read-only";
            Err(Error::new(ErrorCode::StoreReadOnly, message).into())
        }
    }
}

/// Returns the schema version that this version of the store writes.
pub(crate) fn newest() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// Returns the schema version of a file of this store, or 0 if the file is empty. Runs in the
/// caller's transaction.
pub(crate) fn schema(connection: &Connection) -> Result<u32, Failure> {
    Ok(match inspect(connection)? {
        FileKind::Empty => 0,
        FileKind::Ours(done) => u32::try_from(done).unwrap_or(u32::MAX),
    })
}

fn use_wal(connection: &Connection) -> Result<(), Failure> {
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    let message =
        "the file system does not support shared memory between processes; use a local disk";
    Err(Error::new(ErrorCode::Unsupported, message).with_context("journal_mode", mode).into())
}

/// Inspects the file in a transaction of its own.
fn inspect_alone(connection: &Connection) -> Result<FileKind, Failure> {
    let transaction = connection.unchecked_transaction()?;
    inspect(&transaction)
}

/// Inspects the file in the caller's transaction.
fn inspect(connection: &Connection) -> Result<FileKind, Failure> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    if application == APPLICATION_ID {
        return match usize::try_from(version) {
            Ok(done) if done <= MIGRATIONS.len() => Ok(FileKind::Ours(done)),
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
        return Ok(FileKind::Empty);
    }
    let message = "the file is a database of another program";
    Err(Error::new(ErrorCode::StoreForeign, message).into())
}

/// Retries `action` while other processes hold a lock, until the timeout.
fn retry_while_busy(
    timeout: Duration,
    mut action: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let start = Instant::now();
    loop {
        match action() {
            Err(failure) if failure.is_busy() && start.elapsed() < timeout => {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "this is a dedicated thread, not a task"
                )]
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}
