//! The folder of a store file and its disk.

use std::path::{Path, PathBuf};

use serde::Serialize;

/// The folder of a store file and its disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Folder {
    /// The path of the folder.
    pub path: PathBuf,
    /// Whether the folder exists.
    pub exists: bool,
    /// Whether this process can create files in the folder.
    pub writable: bool,
    /// The free space of the disk in bytes; `None` if it is unknown.
    pub free_bytes: Option<u64>,
    /// The type of the network file system, if the folder is known to be on one.
    pub network_file_system: Option<&'static str>,
}

impl Folder {
    /// Inspects the folder of a file. The file need not exist.
    pub(crate) fn of(file: &Path) -> Self {
        let path = match file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Self {
            exists: path.is_dir(),
            writable: is_writable(&path),
            free_bytes: free_bytes(&path),
            network_file_system: network_file_system(&path),
            path,
        }
    }
}

#[cfg(unix)]
fn is_writable(path: &Path) -> bool {
    use rustix::fs::{Access, access};
    access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn is_writable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| !metadata.permissions().readonly())
}

#[cfg(unix)]
fn free_bytes(path: &Path) -> Option<u64> {
    rustix::fs::statvfs(path).ok().map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

/// The magic numbers of network file systems on Linux.
#[cfg(target_os = "linux")]
const NETWORK_FILE_SYSTEMS: [(i128, &str); 8] = [
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
    NETWORK_FILE_SYSTEMS.iter().find(|(remote, _)| *remote == number).map(|(_, name)| *name)
}

#[cfg(not(target_os = "linux"))]
fn network_file_system(_: &Path) -> Option<&'static str> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
