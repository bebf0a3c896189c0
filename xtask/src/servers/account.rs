//! The user account of a server, if it is not the current one.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process;

/// A user without special permissions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// Returns the first of these users that exists if the current user is root, and `None` otherwise.
    ///
    /// # Errors
    ///
    /// If the current user is root and none of these users exists.
    pub(super) fn unprivileged(names: &[&str]) -> Result<Option<Self>> {
        if number(&["-u"]) != Some(0) {
            return Ok(None);
        }
        let account =
            |name: &&str| Some(Self { uid: number(&["-u", name])?, gid: number(&["-g", name])? });
        let found = names.iter().find_map(account);
        let missing =
            || format!("it cannot run as root, and no user is called {}", names.join(" or "));
        found.with_context(missing).map(Some)
    }

    /// Makes a program run as this user, without supplementary groups.
    pub(super) fn apply_to<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.uid(self.uid).gid(self.gid)
    }

    /// Makes this user the owner of a file or folder.
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub(super) fn take_ownership(&self, path: &Path) -> Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
            .with_context(|| format!("could not change the owner of {}", path.display()))
    }

    /// Returns `true` if this user can write to the folder.
    pub(super) fn can_write(&self, folder: &Path) -> bool {
        let mut test = process::program("test", ["-w".as_ref(), folder.as_os_str()]);
        process::succeeds(self.apply_to(&mut test).current_dir("/"))
    }
}

fn number(args: &[&str]) -> Option<u32> {
    let mut id = process::program("id", args);
    let output = id.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
