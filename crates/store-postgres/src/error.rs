//! The only place that maps errors of PostgreSQL and its driver to framework errors.

use std::io;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::SessionId;

/// The error of an operation inside the store.
#[derive(Debug)]
pub(crate) enum Failure {
    Driver(sqlx::Error),
    Own(Error),
    /// The server did not answer in time.
    TimedOut,
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
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
            Failure::TimedOut => {
                Self::new(ErrorCode::StoreUnavailable, "the server did not answer in time")
            }
        }
    }
}

impl Failure {
    /// Returns `true` if the connection was lost. The operation may succeed on another connection.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Driver(sqlx::Error::Io(error)) => !is_of_tls(error),
            Self::Driver(sqlx::Error::Protocol(_)) => true,
            Self::Driver(sqlx::Error::Database(error)) => {
                error.code().is_some_and(|state| is_lost(&state))
            }
            Self::Driver(_) | Self::Own(_) | Self::TimedOut => false,
        }
    }

    /// Returns `true` if the statement had no effect and may succeed soon, because it conflicted
    /// with another statement or the server had too many connections.
    pub(crate) fn is_transient(&self) -> bool {
        self.state().is_some_and(|state| matches!(state.as_ref(), "40001" | "40P01" | "53300"))
    }

    /// Returns the SQLSTATE code of a server error.
    pub(crate) fn state(&self) -> Option<String> {
        match self {
            Self::Driver(sqlx::Error::Database(error)) => {
                error.code().map(|code| code.into_owned())
            }
            Self::Driver(_) | Self::Own(_) | Self::TimedOut => None,
        }
    }
}

/// Returns `true` if the server is starting or shutting down, ended this connection, or the
/// connection failed.
fn is_lost(state: &str) -> bool {
    matches!(state, "57P01" | "57P02" | "57P03" | "57P05") || state.starts_with("08")
}

/// Returns the framework error for a driver error.
pub(crate) fn classify(error: sqlx::Error) -> Error {
    if is_without_tls(&error) {
        let message = "the TLS handshake failed: the server's certificate is not trusted, the server \
            rejected the client's certificate, or it does not support TLS; see the cause";
        return Error::new(ErrorCode::ConfigInvalid, message).with_source(error);
    }
    let code = code_of(&error).unwrap_or(ErrorCode::Internal);
    let message = match code {
        ErrorCode::StoreBusy => "the server or the connection pool is overloaded; try again",
        ErrorCode::StoreFull => "the server's disk is full, or the database reached a size limit",
        ErrorCode::StoreReadOnly => {
            "the database cannot be written: a standby, a read-only setting, or a missing privilege"
        }
        ErrorCode::StoreCorrupt => "the database is damaged, or another program changed it",
        ErrorCode::StoreUnavailable => "the server could not be reached, or did not answer in time",
        ErrorCode::TooLarge => "a value is larger than the database can hold",
        ErrorCode::InputInvalid => "text contains a character that the database cannot store",
        ErrorCode::ConfigInvalid => {
            "the server rejected this URL, user, password or database; see the cause"
        }
        ErrorCode::Closed => "the pool of connections was closed",
        _ => "the database rejected a statement of the store",
    };
    Error::new(code, message).with_source(error)
}

fn is_without_tls(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => is_of_tls(error),
        error => matches!(error, sqlx::Error::Tls(_)),
    }
}

/// Returns `true` if TLS negotiation failed. The driver reports that as invalid data, whatever the
/// cause.
fn is_of_tls(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData
}

/// Returns the framework's code for a driver error, or `None` for an error that only a bug in this
/// crate can cause.
fn code_of(error: &sqlx::Error) -> Option<ErrorCode> {
    use sqlx::Error as E;
    match error {
        E::Database(error) => code_of_state(&error.code()?),
        E::Io(_) | E::Protocol(_) => Some(ErrorCode::StoreUnavailable),
        E::PoolTimedOut => Some(ErrorCode::StoreBusy),
        E::PoolClosed => Some(ErrorCode::Closed),
        E::Configuration(_) => Some(ErrorCode::ConfigInvalid),
        // The store cannot have written these values.
        E::ColumnDecode { .. } | E::Decode(_) | E::RowNotFound => Some(ErrorCode::StoreCorrupt),
        _ => None,
    }
}

fn code_of_state(state: &str) -> Option<ErrorCode> {
    Some(match state {
        state if is_lost(state) => ErrorCode::StoreUnavailable,
        // A statement timeout.
        "57014" => ErrorCode::StoreUnavailable,
        "53300" | "53000" | "53200" | "55P03" | "40001" | "40P01" => ErrorCode::StoreBusy,
        "53100" | "53400" => ErrorCode::StoreFull,
        "25006" | "42501" => ErrorCode::StoreReadOnly,
        // A tuple or index entry that does not fit on a page.
        "54000" => ErrorCode::TooLarge,
        // A NUL character, which text cannot contain.
        "22021" => ErrorCode::InputInvalid,
        "3D000" | "28000" | "28P01" => ErrorCode::ConfigInvalid,
        // Missing tables or columns, or contradictory rows. The store never causes these.
        "42P01" | "42703" | "3F000" | "23505" | "23514" | "XX001" | "XX002" => {
            ErrorCode::StoreCorrupt
        }
        // System errors, such as file errors, come without details.
        state if state.starts_with("58") => ErrorCode::StoreUnavailable,
        _ => return None,
    })
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

/// Adds the operation and the session to an error.
pub(crate) fn located<T>(
    result: Result<T>,
    operation: &'static str,
    session: &SessionId,
) -> Result<T> {
    result.map_err(|error| of_session(error, session).with_operation(operation))
}

/// Returns the error for a session id that does not exist.
pub(crate) fn not_found(session: &SessionId) -> Failure {
    Failure::Own(
        Error::new(ErrorCode::SessionNotFound, "no such session").with_context("session", session),
    )
}

/// Returns the error of a closed store.
pub(crate) fn closed() -> Error {
    Error::new(ErrorCode::Closed, "the store was closed")
}
