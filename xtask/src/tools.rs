//! Cargo subcommands and programs that gates need and a bare machine lacks.

use anyhow::Result;

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
