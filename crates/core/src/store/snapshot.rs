//! Snapshots: what a store keeps for those who would otherwise read a long log.

use bytes::Bytes;

use super::Position;
use super::append::MAX_APPEND_BYTES;
use crate::error::{Error, ErrorCode, Result};

/// The fold of a log up to a position, so that the next reader starts there.
///
/// To a store it is bytes beside a position. It is a cache: it can be lost at any time, and its reader
/// compares it with the log before using it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The end of the append up to which the log was read.
    pub position: Position,
    /// Which fold made it. Another fold does not read it.
    pub fold: u32,
    /// The fold of the log, encoded.
    pub body: Bytes,
}

impl Snapshot {
    /// Refuses a snapshot that no store keeps; for stores to call first.
    ///
    /// # Errors
    /// [`TooLarge`](ErrorCode::TooLarge) if the body has more than [`MAX_APPEND_BYTES`], and
    /// [`IdInvalid`](ErrorCode::IdInvalid) if the position's append has no valid id.
    pub fn check(&self) -> Result<()> {
        self.position.append.check()?;
        if self.body.len() <= MAX_APPEND_BYTES {
            return Ok(());
        }
        let bytes = self.body.len();
        let message = format!("the snapshot has {bytes} bytes; {MAX_APPEND_BYTES} are allowed");
        Err(Error::new(ErrorCode::TooLarge, message))
    }

    /// Returns `true` if a store keeps this snapshot: its log has come as far, and what is kept is not
    /// newer. `end` is the version of the log, `kept` that of the snapshot that is kept.
    #[must_use]
    pub fn is_kept(&self, end: u64, kept: Option<u64>) -> bool {
        let version = self.position.version;
        version <= end && kept.is_none_or(|kept| kept <= version)
    }
}
