//! The limit of retries after conflicts with other processes.

use crate::error::{Error, ErrorCode};
use crate::id::SessionId;

/// The number of conflicts after which an operation on a session gives up. Each conflict means that
/// another writer has made progress, so operations rarely have more than one.
pub const MAX_CONFLICTS: u32 = 64;

/// Returns the error of an operation that gave up because of concurrent changes. The operation can
/// be retried.
#[must_use]
pub fn too_many_conflicts(session: &SessionId) -> Error {
    let message = "the session has too many concurrent changes";
    Error::new(ErrorCode::StoreBusy, message).with_context("session", session)
}
