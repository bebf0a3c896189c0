//! Snapshots, with which readers avoid reading a long log.

use bytes::Bytes;

use super::Position;
use super::append::MAX_APPEND_BYTES;
use crate::error::{Error, ErrorCode, Result};

/// The state of a session up to a position of its log, from which the next reader continues.
///
/// A store treats it as opaque bytes at a position. It is a cache: it can be lost at any time, and
/// its reader verifies it against the log before using it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The log position of the snapshot: the end of an append.
    pub position: Position,
    /// The version of the fold that created it. Other fold versions ignore it.
    pub fold: u32,
    /// The encoded fold.
    pub body: Bytes,
}

impl Snapshot {
    /// Checks the limits that all stores share. Stores call it first.
    ///
    /// # Errors
    /// Returns [`TooLarge`](ErrorCode::TooLarge) if the body has more than [`MAX_APPEND_BYTES`],
    /// and [`IdInvalid`](ErrorCode::IdInvalid) if the position's append has no valid id.
    pub fn check(&self) -> Result<()> {
        self.position.append.check()?;
        if self.body.len() <= MAX_APPEND_BYTES {
            return Ok(());
        }
        let bytes = self.body.len();
        let message = format!("the snapshot has {bytes} bytes; {MAX_APPEND_BYTES} are allowed");
        Err(Error::new(ErrorCode::TooLarge, message))
    }

    /// Returns `true` if a store should keep this snapshot: the log reaches its version, and the
    /// store has no newer snapshot. `end` is the version of the log, `kept` that of the stored
    /// snapshot.
    #[must_use]
    pub fn is_kept(&self, end: u64, kept: Option<u64>) -> bool {
        let version = self.position.version;
        version <= end && kept.is_none_or(|kept| kept <= version)
    }
}
