//! Keys of rows that belong to an owner and have a number there: appends of sessions, chunks of
//! streams. An owner's rows lie one behind the other, and need no index beside them.

use std::ops::RangeInclusive;

use helix_agents_core::error::{Error, ErrorCode};

use crate::error::Failure;

/// Numbers have the lower half of a key.
const LAST: u64 = u32::MAX as u64;

/// The key of a row to be written.
pub(crate) fn of(owner: i64, number: u64) -> Result<i64, Failure> {
    if number > LAST || i32::try_from(owner).is_err() {
        let message = "the database has no room for more; begin another session, in a new file \
            if it has 2,147,483,647 of them";
        return Err(Error::new(ErrorCode::TooLarge, message).with_context("number", number).into());
    }
    Ok(up_to(owner, number))
}

/// The keys of an owner from a number on.
pub(crate) fn since(owner: i64, number: u64) -> RangeInclusive<i64> {
    up_to(owner, number)..=up_to(owner, LAST)
}

/// The keys of an owner.
pub(crate) fn all(owner: i64) -> RangeInclusive<i64> {
    since(owner, 0)
}

/// The key of the row with this number, or if there is no such number, of the last one.
pub(crate) fn up_to(owner: i64, number: u64) -> i64 {
    owner << 32 | i64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// The number of a row.
pub(crate) fn number(key: i64) -> u64 {
    key.unsigned_abs() & LAST
}
