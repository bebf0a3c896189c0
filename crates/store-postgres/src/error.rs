//! What errors of PostgreSQL and its driver mean, decided here and nowhere else.

use std::io;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::SessionId;

/// How an operation inside the store fails.
#[derive(Debug)]
pub(crate) enum Failure {
    Driver(sqlx::Error),
    Own(Error),
    /// The server did not answer in time.
    TooLate,
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
            Failure::TooLate => {
                Self::new(ErrorCode::StoreUnavailable, "the server did not answer in time")
            }
        }
    }
}

impl Failure {
    /// Whether the connection, and with it the answer, was lost: on another one it may go on.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Driver(sqlx::Error::Io(error)) => !is_of_tls(error),
            Self::Driver(sqlx::Error::Protocol(_)) => true,
            Self::Driver(sqlx::Error::Database(error)) => {
                error.code().is_some_and(|it| is_lost(&it))
            }
            Self::Driver(_) | Self::Own(_) | Self::TooLate => false,
        }
    }

    /// Whether it had no effect, and may go well in a moment: the statement stood in the way of another one, or there were
    /// too many connections.
    pub(crate) fn is_passing(&self) -> bool {
        self.state().is_some_and(|it| matches!(it.as_ref(), "40001" | "40P01" | "53300"))
    }

    /// The server's code for what went wrong.
    pub(crate) fn state(&self) -> Option<String> {
        match self {
            Self::Driver(sqlx::Error::Database(error)) => error.code().map(|it| it.into_owned()),
            Self::Driver(_) | Self::Own(_) | Self::TooLate => None,
        }
    }
}

/// The server shuts down or starts, it ended this connection, or the connection failed.
fn is_lost(state: &str) -> bool {
    matches!(state, "57P01" | "57P02" | "57P03" | "57P05") || state.starts_with("08")
}

/// The error of the framework for one of the driver.
pub(crate) fn classify(error: sqlx::Error) -> Error {
    if is_without_tls(&error) {
        let message = "no connection by TLS: the server's certificate is not trusted, the server does \
            not trust ours, or has no TLS; look at the cause";
        return Error::new(ErrorCode::ConfigInvalid, message).with_source(error);
    }
    let code = code_of(&error).unwrap_or(ErrorCode::Internal);
    let message = match code {
        ErrorCode::StoreBusy => "the server, or the pool of connections, is too busy; try again",
        ErrorCode::StoreFull => "the server's disk, or the room for the database, is full",
        ErrorCode::StoreReadOnly => {
            "the database cannot be written: a standby, a read-only setting, or a missing right"
        }
        ErrorCode::StoreCorrupt => "the database is damaged, or not as the store left it",
        ErrorCode::StoreUnavailable => "the server could not be reached, or did not answer in time",
        ErrorCode::TooLarge => "a value is larger than the database can hold",
        ErrorCode::InputInvalid => "text contains what the database cannot keep",
        ErrorCode::ConfigInvalid => {
            "the server refuses this URL, user, password or database; look at the cause"
        }
        ErrorCode::Closed => "the pool of connections was closed",
        _ => "the database did not understand the store",
    };
    Error::new(code, message).with_source(error)
}

fn is_without_tls(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => is_of_tls(error),
        error => matches!(error, sqlx::Error::Tls(_)),
    }
}

/// Whether the two sides did not agree on TLS. That comes as data that makes no sense, whatever it was.
fn is_of_tls(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData
}

/// The framework's code for an error of the driver; none for what only a bug of ours can cause.
fn code_of(error: &sqlx::Error) -> Option<ErrorCode> {
    use sqlx::Error as E;
    match error {
        E::Database(error) => code_of_state(&error.code()?),
        E::Io(_) | E::Protocol(_) => Some(ErrorCode::StoreUnavailable),
        E::PoolTimedOut => Some(ErrorCode::StoreBusy),
        E::PoolClosed => Some(ErrorCode::Closed),
        E::Configuration(_) => Some(ErrorCode::ConfigInvalid),
        // The values that were read are not ones that the store writes.
        E::ColumnDecode { .. } | E::Decode(_) | E::RowNotFound => Some(ErrorCode::StoreCorrupt),
        _ => None,
    }
}

fn code_of_state(state: &str) -> Option<ErrorCode> {
    Some(match state {
        state if is_lost(state) => ErrorCode::StoreUnavailable,
        // A statement that took too long.
        "57014" => ErrorCode::StoreUnavailable,
        "53300" | "53000" | "53200" | "55P03" | "40001" | "40P01" => ErrorCode::StoreBusy,
        "53100" | "53400" => ErrorCode::StoreFull,
        "25006" | "42501" => ErrorCode::StoreReadOnly,
        // A tuple or index entry that fits on no page.
        "54000" => ErrorCode::TooLarge,
        // A NUL, which text cannot have.
        "22021" => ErrorCode::InputInvalid,
        "3D000" | "28000" | "28P01" => ErrorCode::ConfigInvalid,
        // Tables or columns that are gone, or rows that contradict each other: the store never does that.
        "42P01" | "42703" | "3F000" | "23505" | "23514" | "XX001" | "XX002" => {
            ErrorCode::StoreCorrupt
        }
        // Without their reason: the system's own errors, such as those of files.
        state if state.starts_with("58") => ErrorCode::StoreUnavailable,
        _ => return None,
    })
}

/// What was read back is not what the store writes. Nothing is deleted: a person has to look.
pub(crate) fn corrupt(session: &SessionId, message: &'static str) -> Failure {
    Failure::Own(Error::new(ErrorCode::StoreCorrupt, message).with_context("session", session))
}

/// Names the session, if the error does not yet.
pub(crate) fn of_session(error: Error, session: &SessionId) -> Error {
    if error.context().any(|(key, _)| key == "session") {
        return error;
    }
    error.with_context("session", session)
}

/// Says where something failed.
pub(crate) fn located<T>(
    result: Result<T>,
    operation: &'static str,
    session: &SessionId,
) -> Result<T> {
    result.map_err(|error| of_session(error, session).with_operation(operation))
}

/// No session has this id.
pub(crate) fn not_found(session: &SessionId) -> Failure {
    Failure::Own(
        Error::new(ErrorCode::SessionNotFound, "no such session").with_context("session", session),
    )
}

/// The store was closed.
pub(crate) fn closed() -> Error {
    Error::new(ErrorCode::Closed, "the store was closed")
}
