//! Checks that licence files have not changed since their review.

use super::config::LicenseFile;
use crate::workspace::Package;

/// Returns `true` if the package contains all these files unchanged.
pub(super) fn are_unchanged(package: &Package, files: &[LicenseFile]) -> bool {
    let Some(folder) = package.manifest_path.parent() else { return false };
    let is_unchanged = |file: &LicenseFile| {
        std::fs::read(folder.join(&file.path)).is_ok_and(|text| crc32(&text) == file.hash)
    };
    !files.is_empty() && files.iter().all(is_unchanged)
}

/// Returns the checksum by which cargo-deny identifies a file.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xEDB8_8320 & (sum & 1).wrapping_neg())
        })
    })
}
