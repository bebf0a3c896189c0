//! Keys of rows that belong to an owner and are numbered within it: appends of sessions and chunks
//! of streams. The rows of an owner are contiguous, so they need no additional index.

use std::ops::RangeInclusive;

use helix_agents_core::error::{Error, ErrorCode};

use crate::error::Failure;

/// The maximum number. Numbers occupy the lower half of a key.
const LAST: u64 = u32::MAX as u64;

/// Returns the key of a row that is about to be written.
pub(crate) fn new(owner: i64, number: u64) -> Result<i64, Failure> {
    let too_large = |message| Err(Error::new(ErrorCode::TooLarge, message).into());
    if number > LAST {
        return too_large("the session has reached its maximum size; start another session");
    }
    if i32::try_from(owner).is_err() {
        return too_large("the file has reached its maximum number of sessions; use another file");
    }
    Ok(up_to(owner, number))
}

/// Returns the keys of an owner, starting at a number.
pub(crate) fn since(owner: i64, number: u64) -> RangeInclusive<i64> {
    up_to(owner, number)..=up_to(owner, LAST)
}

/// Returns all keys of an owner.
pub(crate) fn all(owner: i64) -> RangeInclusive<i64> {
    since(owner, 0)
}

/// Returns the key of the row with this number, or the last key of the owner if the number is too
/// large.
pub(crate) fn up_to(owner: i64, number: u64) -> i64 {
    owner << 32 | i64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Returns the number of a row.
pub(crate) fn number(key: i64) -> u64 {
    key.unsigned_abs() & LAST
}
