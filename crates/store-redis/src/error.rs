//! What errors of Redis mean, decided here and nowhere else.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

use redis::{ErrorKind, RedisError, ServerErrorKind};

use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::id::SessionId;

/// The error of the framework for one of the driver.
pub(crate) fn classify(error: RedisError) -> Error {
    if is_of_tls(&error) {
        let message = "no connection by TLS: the server's certificate is not trusted, or it does not \
            trust ours; look at the cause";
        return Error::new(ErrorCode::ConfigInvalid, message).with_source(error);
    }
    let code = code_of(&error);
    let message = match code {
        ErrorCode::StoreFull => "Redis has used up its memory; raise maxmemory, or delete sessions",
        ErrorCode::StoreReadOnly => "Redis is a replica and cannot be written; name the primary",
        ErrorCode::StoreBusy => "a script or command of somebody else keeps Redis busy",
        ErrorCode::StoreCorrupt => "keys of the store hold what it does not write",
        ErrorCode::ConfigInvalid => {
            "Redis refuses the user or the password, or does not allow what the store needs"
        }
        ErrorCode::Unsupported => "Redis does not know a command that the store needs",
        ErrorCode::StoreUnavailable => "Redis could not be reached, or cannot work at the moment",
        _ => "Redis did not understand the store",
    };
    // The driver's text may repeat arguments, but not those of scripts.
    Error::new(code, message).with_source(error)
}

/// Whether the two sides did not agree on TLS.
pub(crate) fn is_of_tls(error: &RedisError) -> bool {
    // As the driver wraps it.
    let wrapped =
        error.source().and_then(|it| it.downcast_ref::<Arc<dyn StdError + Send + Sync>>());
    let cause = wrapped.and_then(|it| it.downcast_ref::<io::Error>());
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

/// Errors inside a script begin with their code, too, whatever the driver makes of them.
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

/// What was read back is not what the store writes. Nothing is deleted: a person has to look.
pub(crate) fn corrupt(session: &SessionId, message: &'static str) -> Error {
    Error::new(ErrorCode::StoreCorrupt, message).with_context("session", session)
}

/// Names the session, if the error does not yet.
pub(crate) fn of_session(error: Error, session: &SessionId) -> Error {
    if error.context().any(|(key, _)| key == "session") {
        return error;
    }
    error.with_context("session", session)
}

/// No session has this id.
pub(crate) fn not_found(session: &SessionId) -> Error {
    Error::new(ErrorCode::SessionNotFound, "no such session").with_context("session", session)
}

#[cfg(test)]
mod tests;
