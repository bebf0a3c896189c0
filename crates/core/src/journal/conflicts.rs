//! The limit of retries after conflicts with other processes.

use crate::error::{Error, ErrorCode};
use crate::id::SessionId;

/// The maximum number of attempts at an operation on a session that other processes can interfere
/// with. Each conflict means that one of them has succeeded, so few operations need more than two
/// attempts.
pub const MAX_CONFLICTS: u32 = 64;

/// Returns the error of an operation that had [`MAX_CONFLICTS`] conflicts. It can be retried.
#[must_use]
pub fn too_many_conflicts(session: &SessionId) -> Error {
    let message = "gave up after too many concurrent changes of the session by other processes";
    Error::new(ErrorCode::StoreBusy, message).with_context("session", session)
}
