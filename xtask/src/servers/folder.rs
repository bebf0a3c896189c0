//! The folder of a server's configuration and data. It is recreated each time the server starts.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use super::account::Account;
use super::daemon;

/// Creates an empty folder that only the server's user can read. It is next to the record, or in the temporary folder
/// if the user cannot access that path.
pub(super) fn fresh(name: &str, account: Option<Account>) -> Result<PathBuf> {
    let own =
        fs::canonicalize(daemon::folder()?).context("could not find the folder of the servers")?;
    let folder = recreate(own.join(name), account)?;
    match account {
        Some(account) if !account.can_write(&folder) => {
            fs::remove_dir(&folder).context("could not remove an empty folder")?;
            let digest = Sha256::digest(own.as_os_str().as_encoded_bytes());
            let digest: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
            let name = format!("helix-agents-{name}-{digest}");
            recreate(std::env::temp_dir().join(name), Some(account))
        }
        _ => Ok(folder),
    }
}

fn recreate(folder: PathBuf, account: Option<Account>) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("could not clear {}", folder.display()))?;
    }
    DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .with_context(|| format!("could not create {}", folder.display()))?;
    if let Some(account) = account {
        account.take_ownership(&folder)?;
    }
    Ok(folder)
}

/// Writes a file that the server reads.
pub(super) fn write(path: &Path, text: &str, account: Option<Account>) -> Result<()> {
    fs::write(path, text).with_context(|| format!("could not write {}", path.display()))?;
    account.map_or(Ok(()), |account| account.take_ownership(path))
}
