//! Files with licences: whether they still say what a person read in them.

use super::config::LicenseFile;
use crate::workspace::Package;

/// Whether all these files are in the package as they were read.
pub(super) fn are_unchanged(package: &Package, files: &[LicenseFile]) -> bool {
    let Some(folder) = package.manifest_path.parent() else { return false };
    let is_unchanged = |file: &LicenseFile| {
        std::fs::read(folder.join(&file.path)).is_ok_and(|text| crc32(&text) == file.hash)
    };
    !files.is_empty() && files.iter().all(is_unchanged)
}

/// The sum by which cargo-deny knows a file.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xEDB8_8320 & (sum & 1).wrapping_neg())
        })
    })
}
