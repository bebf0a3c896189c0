//! The only place that maps SQLite errors to framework errors.

use std::path::Path;

use rusqlite::ffi;

use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::id::SessionId;

/// The error of an operation inside the store.
#[derive(Debug)]
pub(crate) enum Failure {
    Driver(rusqlite::Error),
    Own(Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Driver(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Own(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Driver(error) => classify(error),
            Failure::Own(error) => error,
        }
    }
}

impl Failure {
    /// Returns `true` if another connection holds the lock that this one waits for.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Self::Driver(error) if code_of(error) == Some(ErrorCode::StoreBusy))
    }
}

/// Returns the framework error for a driver error.
pub(crate) fn classify(error: rusqlite::Error) -> Error {
    let code = code_of(&error).unwrap_or(ErrorCode::Internal);
    let message = match code {
        ErrorCode::StoreBusy => "the database was locked by another process for too long",
        ErrorCode::StoreFull => "the disk is full, or the database reached its maximum size",
        ErrorCode::StoreReadOnly => "the database cannot be written",
        ErrorCode::StoreCorrupt => "the database is damaged, or not a database",
        ErrorCode::StoreUnavailable => "the database could not be read or written",
        ErrorCode::TooLarge => "a value is larger than the database can hold",
        _ => "the database rejected a statement of the store",
    };
    Error::new(code, message).with_source(error)
}

/// Returns the framework's code for a driver error, or `None` for an error that only a bug in this
/// crate can cause.
fn code_of(error: &rusqlite::Error) -> Option<ErrorCode> {
    use rusqlite::Error as E;
    match error {
        E::SqliteFailure(failure, _) => code_of_failure(*failure),
        // The store cannot have written these values.
        E::FromSqlConversionFailure(..)
        | E::IntegralValueOutOfRange(..)
        | E::InvalidColumnType(..)
        | E::Utf8Error(..)
        | E::QueryReturnedNoRows => Some(ErrorCode::StoreCorrupt),
        _ => None,
    }
}

fn code_of_failure(failure: ffi::Error) -> Option<ErrorCode> {
    use rusqlite::ErrorCode as C;
    // The shared-memory file of the write-ahead log could not grow.
    if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE {
        return Some(ErrorCode::StoreFull);
    }
    Some(match failure.code {
        C::DatabaseBusy | C::DatabaseLocked => ErrorCode::StoreBusy,
        C::DiskFull => ErrorCode::StoreFull,
        C::ReadOnly | C::PermissionDenied => ErrorCode::StoreReadOnly,
        // Rows contradict each other. The store never writes such rows.
        C::DatabaseCorrupt | C::NotADatabase | C::ConstraintViolation => ErrorCode::StoreCorrupt,
        C::TooBig => ErrorCode::TooLarge,
        C::SystemIoFailure
        | C::CannotOpen
        | C::FileLockingProtocolFailed
        | C::OutOfMemory
        | C::SchemaChanged
        | C::OperationAborted
        | C::OperationInterrupted
        | C::NoLargeFileSupport => ErrorCode::StoreUnavailable,
        _ => return None,
    })
}

/// Returns the error of a failure to open the file at `path`.
pub(crate) fn opening(failure: Failure, path: &Path) -> Error {
    let cannot_open = matches!(
        &failure,
        Failure::Driver(rusqlite::Error::SqliteFailure(failure, _))
            if failure.code == rusqlite::ErrorCode::CannotOpen
    );
    let error = if !cannot_open {
        Error::from(failure)
    } else if path.is_dir() {
        Error::new(ErrorCode::ConfigInvalid, "the path of the database is a folder")
    } else if parent(path).is_dir() {
        let message = "the database, or its folder, cannot be written";
        let error = Error::new(ErrorCode::StoreReadOnly, message);
        match failure {
            Failure::Driver(source) => error.with_source(source),
            Failure::Own(source) => error.with_source(source),
        }
    } else {
        Error::new(ErrorCode::ConfigInvalid, "the folder of the database does not exist")
    };
    error.with_operation("store::open").with_context("path", path.display())
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Returns the error for stored data that the store cannot have written. Nothing is deleted; a
/// human has to investigate.
pub(crate) fn corrupt(session: &SessionId, message: &'static str) -> Failure {
    Failure::Own(Error::new(ErrorCode::StoreCorrupt, message).with_context("session", session))
}

/// Adds the session to the error's context, unless it already has one.
pub(crate) fn of_session(error: Error, session: &SessionId) -> Error {
    if error.context().any(|(key, _)| key == "session") {
        return error;
    }
    error.with_context("session", session)
}

/// Returns the error for a session id that does not exist.
pub(crate) fn not_found(session: &SessionId) -> Failure {
    Failure::Own(
        Error::new(ErrorCode::SessionNotFound, "no such session").with_context("session", session),
    )
}

#[cfg(test)]
mod tests;
