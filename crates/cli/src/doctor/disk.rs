//! Checks the disk of the database.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, statvfs};
use serde::Serialize;

/// The folder of the database and its disk.
#[derive(Debug, Serialize)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) exists: bool,
    pub(super) writable: bool,
    /// The free space in bytes; `None` if unknown.
    pub(super) free_bytes: Option<u64>,
    /// The type of the network file system, if the folder is known to be on one.
    pub(super) network_file_system: Option<&'static str>,
}

impl Folder {
    /// Inspects the folder of a file that need not exist.
    pub(super) fn of(file: &Path) -> Self {
        let path = match file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let free = statvfs(&path).ok().map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize));
        Self {
            exists: path.is_dir(),
            writable: access(&path, Access::WRITE_OK | Access::EXEC_OK).is_ok(),
            free_bytes: free,
            network_file_system: network_file_system(&path),
            path,
        }
    }
}

/// The magic numbers of network file systems on Linux.
#[cfg(target_os = "linux")]
const REMOTE: [(i128, &str); 8] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0102_1997, "9P"),
    (0x5346_414f, "AFS"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
];

#[cfg(target_os = "linux")]
fn network_file_system(path: &Path) -> Option<&'static str> {
    // The type of `f_type` depends on the architecture.
    name_of(i128::from(rustix::fs::statfs(path).ok()?.f_type))
}

#[cfg(target_os = "linux")]
fn name_of(number: i128) -> Option<&'static str> {
    // On some architectures it is a signed 32-bit number.
    let number = number & 0xffff_ffff;
    REMOTE.iter().find(|(remote, _)| *remote == number).map(|(_, name)| *name)
}

#[cfg(not(target_os = "linux"))]
fn network_file_system(_: &Path) -> Option<&'static str> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
