//! The folder of a server: what it is configured by, and its data. It begins anew each time the server is started.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use super::account::Account;
use super::daemon;

/// An empty folder that nobody but whom the server runs as can read: beside the record, or among temporary files if the
/// way there is closed to them.
pub(super) fn fresh(name: &str, account: Option<Account>) -> Result<PathBuf> {
    let own = fs::canonicalize(daemon::folder()?).context("could not find our own folder")?;
    let folder = create_anew(own.join(name), account)?;
    match account {
        Some(account) if !account.reaches(&folder) => {
            fs::remove_dir(&folder).context("could not remove an empty folder")?;
            let digest = Sha256::digest(own.as_os_str().as_encoded_bytes());
            let digest: String = digest.iter().take(6).map(|it| format!("{it:02x}")).collect();
            let name = format!("helix-agents-{name}-{digest}");
            create_anew(std::env::temp_dir().join(name), Some(account))
        }
        _ => Ok(folder),
    }
}

fn create_anew(folder: PathBuf, account: Option<Account>) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("could not clear {}", folder.display()))?;
    }
    DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .with_context(|| format!("could not create {}", folder.display()))?;
    if let Some(account) = account {
        account.own(&folder)?;
    }
    Ok(folder)
}

/// Writes a file that the server reads.
pub(super) fn write(path: &Path, text: &str, account: Option<Account>) -> Result<()> {
    fs::write(path, text).with_context(|| format!("could not write {}", path.display()))?;
    account.map_or(Ok(()), |account| account.own(path))
}
