//! Errors on their way through Temporal: ours to activities, theirs to workflows, and back to whoever waits.

use std::error::Error as StdError;
use std::time::Duration;
use std::{io, iter};

use helix_agents_core::error::{Error, ErrorCode};
use temporalio_client::errors::{ClientConnectError, WorkflowInteractionError, WorkflowStartError};
use temporalio_common::error::{ActivityExecutionError, ApplicationFailure, IncomingError};
use temporalio_sdk::activities::ActivityError;

/// Why a workflow stops before its run has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// It was asked to.
    Cancelled,
    /// A part failed for good.
    Failed { code: String, message: String },
}

/// What an activity fails with. What may pass is tried again, when the other side asked for it.
pub(crate) fn of_part(error: &Error) -> ActivityError {
    let may_pass = error.is_retryable() || is_of_the_process(error);
    failure(error.code().as_str(), error.message(), may_pass, error.retry_after())
}

/// What an activity fails with whose worker is being shut down: another one may begin at once.
pub(crate) fn of_shutdown() -> ActivityError {
    failure(ErrorCode::Closed.as_str(), "the worker was shut down", true, None)
}

/// Whether an error says something of the process alone.
fn is_of_the_process(error: &Error) -> bool {
    error.code() == ErrorCode::Closed
}

fn failure(code: &str, message: &str, may_pass: bool, wait: Option<Duration>) -> ActivityError {
    let failure = ApplicationFailure::builder(message.to_owned())
        .type_name(code.to_owned())
        .non_retryable(!may_pass)
        .maybe_next_retry_delay(wait)
        .build();
    ActivityError::Application(Box::new(failure))
}

/// What a workflow fails with.
pub(crate) fn of_workflow(code: String, message: String) -> ApplicationFailure {
    ApplicationFailure::builder(message).type_name(code).non_retryable(true).build()
}

/// Why a part did not come to its end.
pub(crate) fn stopped(error: &ActivityExecutionError) -> Stopped {
    match error {
        ActivityExecutionError::Cancelled(_) => Stopped::Cancelled,
        ActivityExecutionError::Failed(failure) => match failure.cause() {
            Some(cause) => {
                let (code, message) = told(cause);
                Stopped::Failed { code, message }
            }
            None => internal(error.to_string()),
        },
        other => internal(other.to_string()),
    }
}

fn internal(message: String) -> Stopped {
    Stopped::Failed { code: ErrorCode::Internal.as_str().to_owned(), message }
}

/// The error that a failed workflow stopped with.
pub(crate) fn of_failed(failure: &IncomingError) -> Error {
    let (code, message) = told(failure);
    let known = ErrorCode::ALL.iter().find(|known| known.as_str() == code);
    Error::new(known.copied().unwrap_or(ErrorCode::Internal), message)
}

/// Code and message of a failure.
fn told(failure: &IncomingError) -> (String, String) {
    let message = failure.failure().message.clone();
    match failure {
        IncomingError::Application(failure) => {
            (failure.type_name().unwrap_or(ErrorCode::Internal.as_str()).to_owned(), message)
        }
        // Its worker died over it, as often as it was tried.
        IncomingError::Timeout(_) => (
            ErrorCode::Closed.as_str().to_owned(),
            format!("no worker came to the end of a part of the run: {message}"),
        ),
        _ => (ErrorCode::Internal.as_str().to_owned(), message),
    }
}

/// What gRPC calls an invalid argument, something that is not found, a lack of permission and of a login:
/// asking again does not help.
const FINAL: [i32; 4] = [3, 5, 7, 16];

/// There is no connection. [`ErrorCode::StoreUnavailable`] if that may pass.
pub(crate) fn not_connected(error: ClientConnectError) -> Error {
    use ClientConnectError::{DnsResolutionError, SystemInfoCallError, TonicTransportError};
    let cause: Option<&(dyn StdError + 'static)> = match &error {
        SystemInfoCallError(status) if FINAL.contains(&i32::from(status.code())) => {
            let message = "Temporal refuses this client; look at its API key, or its certificate";
            return Error::new(ErrorCode::ConfigInvalid, message).with_source(error);
        }
        SystemInfoCallError(status) => Some(status),
        TonicTransportError(cause) => Some(cause),
        DnsResolutionError { .. } => None,
        _ => {
            let message = "the connection to Temporal is configured in a way that cannot work";
            return Error::new(ErrorCode::ConfigInvalid, message).with_source(error);
        }
    };
    if cause.is_some_and(is_of_tls) {
        let message = "no connection to Temporal by TLS: its certificate is not trusted, it does not \
            trust ours, or has no TLS; look at the cause";
        return Error::new(ErrorCode::ConfigInvalid, message).with_source(error);
    }
    unreachable("Temporal could not be reached").with_source(error)
}

/// Whether the two sides did not agree on TLS. That comes as data that makes no sense, whatever it was.
fn is_of_tls(error: &(dyn StdError + 'static)) -> bool {
    let mut causes = iter::successors(Some(error), |error| (*error).source());
    causes.any(|it| {
        it.downcast_ref::<io::Error>().is_some_and(|it| it.kind() == io::ErrorKind::InvalidData)
    })
}

/// A workflow could not be started.
pub(crate) fn not_started(error: WorkflowStartError) -> Error {
    match &error {
        WorkflowStartError::PayloadConversion(_) => {
            Error::new(ErrorCode::Internal, "the run could not be told to Temporal")
        }
        WorkflowStartError::Rpc(status) if FINAL.contains(&i32::from(status.code())) => Error::new(
            ErrorCode::ConfigInvalid,
            "Temporal refuses to start workflows here; look at the namespace, and at what the client may do",
        ),
        _ => unreachable("the run could not be handed to Temporal; a sweep does it later"),
    }
    .with_source(error)
}

/// Temporal did not answer a question about a workflow.
pub(crate) fn not_told(error: WorkflowInteractionError) -> Error {
    unreachable("Temporal could not be asked about the run").with_source(error)
}

/// Temporal is not there.
pub(crate) fn unreachable(message: &'static str) -> Error {
    Error::new(ErrorCode::StoreUnavailable, message).with_operation("temporal")
}
