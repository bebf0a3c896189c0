//! The only place that maps Redis errors to framework errors.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

use redis::{ErrorKind, RedisError, ServerErrorKind};

use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::id::SessionId;

/// Returns the framework error for a driver error.
pub(crate) fn classify(error: RedisError) -> Error {
    if is_of_tls(&error) {
        let message = "no TLS connection: the server's certificate is not trusted, or the server does not \
            trust the client's; see the cause";
        return Error::new(ErrorCode::ConfigInvalid, message).with_source(error);
    }
    let code = code_of(&error);
    let message = match code {
        ErrorCode::StoreFull => "Redis is out of memory; increase maxmemory or delete sessions",
        ErrorCode::StoreReadOnly => "Redis is a read-only replica; use the URL of the primary",
        ErrorCode::StoreBusy => "Redis is busy with a script or command of another client",
        ErrorCode::StoreCorrupt => "data under this prefix is damaged, or another program wrote it",
        ErrorCode::ConfigInvalid => {
            "Redis rejected the user or the password, or the user lacks a permission"
        }
        ErrorCode::Unsupported => "Redis does not support a command that the store needs",
        ErrorCode::StoreUnavailable => "Redis is unreachable or temporarily unavailable",
        _ => "Redis rejected a command of the store",
    };
    // The driver's text may repeat arguments, but not those of scripts, so it contains no session
    // data.
    Error::new(code, message).with_source(error)
}

/// Returns `true` if TLS negotiation failed.
pub(crate) fn is_of_tls(error: &RedisError) -> bool {
    // The driver wraps the cause like this.
    let wrapped =
        error.source().and_then(|source| source.downcast_ref::<Arc<dyn StdError + Send + Sync>>());
    let cause = wrapped.and_then(|source| source.downcast_ref::<io::Error>());
    cause
        .and_then(io::Error::get_ref)
        .is_some_and(<dyn StdError + Send + Sync>::is::<rustls::Error>)
}

fn code_of(error: &RedisError) -> ErrorCode {
    use ServerErrorKind as S;
    match error.kind() {
        ErrorKind::Server(kind) => match kind {
            S::BusyLoading | S::TryAgain | S::ClusterDown | S::MasterDown | S::Moved | S::Ask => {
                ErrorCode::StoreUnavailable
            }
            S::ReadOnly => ErrorCode::StoreReadOnly,
            S::NoPerm => ErrorCode::ConfigInvalid,
            _ => code_of_text(error),
        },
        ErrorKind::Extension => code_of_text(error),
        ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => {
            ErrorCode::ConfigInvalid
        }
        ErrorKind::Io | ErrorKind::Parse | ErrorKind::ClusterConnectionNotFound => {
            ErrorCode::StoreUnavailable
        }
        ErrorKind::UnexpectedReturnType => ErrorCode::StoreCorrupt,
        _ => ErrorCode::Internal,
    }
}

/// Returns the framework's code for an error by its text. The text also contains the codes of
/// errors inside a script, whatever kind the driver assigns to them.
fn code_of_text(error: &RedisError) -> ErrorCode {
    let text = error.to_string();
    let says = |word: &str| text.contains(word);
    if error.code() == Some("OOM") || says("OOM ") || says("'maxmemory'") {
        ErrorCode::StoreFull
    } else if says("READONLY") {
        ErrorCode::StoreReadOnly
    } else if says("BUSY") {
        ErrorCode::StoreBusy
    } else if says("WRONGTYPE") || says("smaller than the target stream") {
        ErrorCode::StoreCorrupt
    } else if says("NOAUTH") || says("WRONGPASS") || says("NOPERM") {
        ErrorCode::ConfigInvalid
    } else if says("MISCONF") || says("NOREPLICAS") || says("LOADING") || says("CLUSTERDOWN") {
        ErrorCode::StoreUnavailable
    } else if says("unknown command") {
        ErrorCode::Unsupported
    } else {
        ErrorCode::Internal
    }
}

/// Returns the error for stored data that the store cannot have written. Nothing is deleted; a
/// human has to investigate.
pub(crate) fn corrupt(session: &SessionId, message: &'static str) -> Error {
    Error::new(ErrorCode::StoreCorrupt, message).with_context("session", session)
}

/// Adds the session to the error's context, unless it already has one.
pub(crate) fn of_session(error: Error, session: &SessionId) -> Error {
    if error.context().any(|(key, _)| key == "session") {
        return error;
    }
    error.with_context("session", session)
}

/// Returns the error for a session id that does not exist.
pub(crate) fn not_found(session: &SessionId) -> Error {
    Error::new(ErrorCode::SessionNotFound, "no such session").with_context("session", session)
}

#[cfg(test)]
mod tests;
