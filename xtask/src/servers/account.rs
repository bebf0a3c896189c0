//! Who a server runs as, if not as us.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process;

/// A user who may do nothing in particular.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// The first of these users that exists, if we are root and so have to become somebody else.
    ///
    /// # Errors
    ///
    /// If we are root and there is none of them.
    pub(super) fn unprivileged(names: &[&str]) -> Result<Option<Self>> {
        if number(&["-u"]) != Some(0) {
            return Ok(None);
        }
        let account =
            |name: &&str| Some(Self { uid: number(&["-u", name])?, gid: number(&["-g", name])? });
        let found = names.iter().find_map(account);
        let missing =
            || format!("root may not run it, and no user is called {}", names.join(" or "));
        found.with_context(missing).map(Some)
    }

    /// Lets a program run as this user, in no further group.
    pub(super) fn take<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.uid(self.uid).gid(self.gid)
    }

    /// Gives a file or folder to this user.
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub(super) fn own(&self, path: &Path) -> Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
            .with_context(|| format!("could not give {} away", path.display()))
    }

    /// Whether this user can write there: nothing on the way is closed to them.
    pub(super) fn reaches(&self, folder: &Path) -> bool {
        let mut test = process::program("test", ["-w".as_ref(), folder.as_os_str()]);
        process::succeeds(self.take(&mut test).current_dir("/"))
    }
}

fn number(args: &[&str]) -> Option<u32> {
    let mut id = process::program("id", args);
    let output = id.output().ok().filter(|it| it.status.success())?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
