//! Operations that make progress without being polled.

use std::panic::resume_unwind;

use tracing::Instrument as _;

use helix_agents_core::error::{Error, ErrorCode, Result};

/// Runs an operation on a task of its own.
///
/// An operation may hold a connection or a lock that other operations wait for. On the caller's
/// task, an operation stops when the caller awaits something else, as is common with streams and
/// `select!`. The other operations would then be blocked, and the caller would deadlock if it
/// awaits one of them. On a task of its own, the operation continues.
///
/// # Errors
/// Returns the errors of the operation; [`ErrorCode::Closed`] if the tokio runtime was shut down
/// meanwhile.
///
/// # Panics
/// Panics if the operation panics, and outside a tokio runtime.
///
/// # Cancel safety
/// Dropping the future does not stop the operation.
pub(crate) fn detached<T: Send + 'static>(
    operation: impl Future<Output = Result<T>> + Send + 'static,
) -> impl Future<Output = Result<T>> {
    // Spawned here and not by the returned future, so that the future does not have the size of the
    // operation. Boxed, because tokio would otherwise copy the operation several times.
    let task = tokio::spawn(Box::pin(operation).in_current_span());
    async {
        match task.await {
            Ok(done) => done,
            Err(end) if end.is_panic() => resume_unwind(end.into_panic()),
            Err(_) => Err(Error::new(
                ErrorCode::Closed,
                "the tokio runtime was shut down during the operation",
            )),
        }
    }
}
