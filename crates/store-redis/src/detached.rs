//! Operations that need nobody to poll them.

use std::panic::resume_unwind;

use tracing::Instrument as _;

use helix_agents_core::error::{Error, ErrorCode, Result};

/// Carries an operation out on a task of its own.
///
/// What an operation holds on its way, such as a connection or a lock, others wait for. A caller that
/// began it and then awaits something else, as one does with streams and in `select!`, would hold them
/// up; and itself for good, if that something needs the same. On a task of its own it goes on.
///
/// # Errors
/// Those of the operation; [`ErrorCode::Closed`] if the runtime that it ran on was shut down.
///
/// # Panics
/// As the operation does; and outside a tokio runtime.
///
/// # Cancel safety
/// Dropping the future does not stop the operation.
pub(crate) fn detached<T: Send + 'static>(
    operation: impl Future<Output = Result<T>> + Send + 'static,
) -> impl Future<Output = Result<T>> {
    // Not by the future that is returned: whoever waits would have room for the operation, too.
    let task = tokio::spawn(operation.in_current_span());
    async {
        match task.await {
            Ok(done) => done,
            Err(end) if end.is_panic() => resume_unwind(end.into_panic()),
            Err(_) => Err(Error::new(ErrorCode::Closed, "its runtime was shut down in the middle")),
        }
    }
}
