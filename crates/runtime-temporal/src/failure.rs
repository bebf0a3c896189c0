//! Conversions between Helix errors and Temporal failures, for activities, workflows and callers.

use std::error::Error as StdError;
use std::time::Duration;
use std::{io, iter};

use helix_agents_core::error::{Error, ErrorCode};
use temporalio_client::errors::{ClientConnectError, WorkflowInteractionError, WorkflowStartError};
use temporalio_common::error::{ActivityExecutionError, ApplicationFailure, IncomingError};
use temporalio_sdk::activities::ActivityError;

/// The reason why a workflow stops before its run has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// The workflow was cancelled.
    Cancelled,
    /// A work item failed with a final error.
    Failed { code: String, message: String },
}

/// Converts the error of a work item into the error of its activity. Retryable errors are retried after the wait that
/// they request.
pub(crate) fn activity_error(error: &Error) -> ActivityError {
    let may_pass = error.is_retryable() || is_of_the_process(error);
    failure(error.code().as_str(), error.message(), may_pass, error.retry_after())
}

/// Returns the error of an activity whose worker is shutting down. Another worker can retry it immediately.
pub(crate) fn shutdown_error() -> ActivityError {
    failure(ErrorCode::Closed.as_str(), "the worker was shut down", true, None)
}

/// Returns `true` if an error concerns only this process.
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

/// Returns the failure of a workflow.
pub(crate) fn workflow_failure(code: String, message: String) -> ApplicationFailure {
    ApplicationFailure::builder(message).type_name(code).non_retryable(true).build()
}

/// Converts the error of an activity into the reason why the workflow stops.
pub(crate) fn stopped(error: &ActivityExecutionError) -> Stopped {
    match error {
        ActivityExecutionError::Cancelled(_) => Stopped::Cancelled,
        ActivityExecutionError::Failed(failure) => match failure.cause() {
            Some(cause) => {
                let (code, message) = code_and_message(cause);
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

/// Converts the failure of a workflow into an error.
pub(crate) fn from_failed_workflow(failure: &IncomingError) -> Error {
    let (code, message) = code_and_message(failure);
    let known = ErrorCode::ALL.iter().find(|known| known.as_str() == code);
    Error::new(known.copied().unwrap_or(ErrorCode::Internal), message)
}

/// Returns the error code and the message of a failure.
fn code_and_message(failure: &IncomingError) -> (String, String) {
    let message = failure.failure().message.clone();
    match failure {
        IncomingError::Application(failure) => {
            (failure.type_name().unwrap_or(ErrorCode::Internal.as_str()).to_owned(), message)
        }
        // The workers crashed or timed out in all attempts.
        IncomingError::Timeout(_) => (
            ErrorCode::Closed.as_str().to_owned(),
            format!("no worker completed a work item of the run: {message}"),
        ),
        _ => (ErrorCode::Internal.as_str().to_owned(), message),
    }
}

/// The gRPC status codes `INVALID_ARGUMENT`, `NOT_FOUND`, `PERMISSION_DENIED` and `UNAUTHENTICATED`, for which a retry
/// does not help.
const FINAL: [i32; 4] = [3, 5, 7, 16];

/// Converts a connection error. The result is [`ErrorCode::StoreUnavailable`] if a retry may succeed.
pub(crate) fn not_connected(error: ClientConnectError) -> Error {
    use ClientConnectError::{DnsResolutionError, SystemInfoCallError, TonicTransportError};
    let cause: Option<&(dyn StdError + 'static)> = match &error {
        SystemInfoCallError(status) if FINAL.contains(&i32::from(status.code())) => {
            let message = "Temporal rejected this client; check its API key or its certificate";
            return Error::new(ErrorCode::ConfigInvalid, message).with_source(error);
        }
        SystemInfoCallError(status) => Some(status),
        TonicTransportError(cause) => Some(cause),
        DnsResolutionError { .. } => None,
        _ => {
            let message = "the connection options for Temporal are invalid";
            return Error::new(ErrorCode::ConfigInvalid, message).with_source(error);
        }
    };
    if cause.is_some_and(is_of_tls) {
        let message = "the TLS handshake with Temporal failed: the server's certificate is not trusted, the \
            server rejected the client's certificate, or it does not use TLS; see the cause";
        return Error::new(ErrorCode::ConfigInvalid, message).with_source(error);
    }
    unavailable("Temporal could not be reached").with_source(error)
}

/// Returns `true` if the TLS handshake failed. All such failures appear as invalid data.
fn is_of_tls(error: &(dyn StdError + 'static)) -> bool {
    let mut causes = iter::successors(Some(error), |error| (*error).source());
    causes.any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::InvalidData)
    })
}

/// Converts the error of a workflow start.
pub(crate) fn not_started(error: WorkflowStartError) -> Error {
    match &error {
        WorkflowStartError::PayloadConversion(_) => {
            Error::new(ErrorCode::Internal, "the run could not be encoded for Temporal")
        }
        WorkflowStartError::Rpc(status) if FINAL.contains(&i32::from(status.code())) => Error::new(
            ErrorCode::ConfigInvalid,
            "Temporal rejected the start of a workflow; check the namespace and the permissions of the client",
        ),
        _ => unavailable("the run could not be handed to Temporal; a sweep retries it later"),
    }
    .with_source(error)
}

/// Converts the error of a workflow query.
pub(crate) fn query_failed(error: WorkflowInteractionError) -> Error {
    unavailable("Temporal could not be queried about the run").with_source(error)
}

/// Returns the error of an unavailable Temporal server.
pub(crate) fn unavailable(message: &'static str) -> Error {
    Error::new(ErrorCode::StoreUnavailable, message).with_operation("temporal")
}
