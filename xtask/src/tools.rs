//! Cargo subcommands and programs that gates need and a bare machine lacks.

use anyhow::{Result, bail};

use crate::process;

/// A program that `cargo install` provides.
pub(crate) struct Tool {
    pub binary: &'static str,
    pub install: &'static [&'static str],
}

pub(crate) const NEXTEST: Tool =
    Tool { binary: "cargo-nextest", install: &["cargo-nextest", "--locked"] };

pub(crate) const MDBOOK: Tool =
    Tool { binary: "mdbook", install: &["mdbook", "--locked", "--no-default-features"] };

/// A program of the system's.
pub(crate) struct SystemTool {
    pub binary: &'static str,
    /// What makes it tell its version.
    pub version: &'static str,
    /// The Debian package.
    pub package: &'static str,
    pub needed_for: &'static str,
}

pub(crate) const TMUX: SystemTool = SystemTool {
    binary: "tmux",
    version: "-V",
    package: "tmux",
    needed_for: "the tests in a terminal",
};

impl SystemTool {
    /// Installs the program if it is missing and that is possible here; else says what to do.
    pub(crate) fn ensure(&self) -> Result<()> {
        if process::succeeds(&mut process::program(self.binary, [self.version])) {
            return Ok(());
        }
        let Self { binary, package, needed_for, .. } = self;
        let has_apt = process::succeeds(&mut process::program("apt-get", ["--version"]));
        let is_root = process::capture(&mut process::program("id", ["-u"]))?.trim() == "0";
        if !has_apt || !is_root {
            bail!(
                "{binary} is missing, which {needed_for} need; install the package {package}, on \
                 Debian with `sudo apt-get install {package}`"
            );
        }
        println!("{binary} is missing; installing it for {needed_for}");
        process::run(&mut process::program("apt-get", ["update", "-q"]))?;
        let install = ["install", "-y", "-q", "--no-install-recommends", package];
        process::run(process::program("apt-get", install).env("DEBIAN_FRONTEND", "noninteractive"))
    }
}

impl Tool {
    /// Installs the program if it is missing, and says so.
    pub(crate) fn ensure(&self) -> Result<()> {
        if process::succeeds(&mut process::program(self.binary, ["--version"])) {
            return Ok(());
        }
        println!("{} is missing; installing it, which takes some minutes", self.binary);
        process::run(&mut process::cargo(["install"].iter().chain(self.install)))
    }
}
