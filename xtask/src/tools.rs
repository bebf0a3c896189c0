//! Cargo subcommands and programs that gates need and that a new machine does not have.

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

/// A Debian package.
pub(crate) struct Package {
    pub name: &'static str,
    /// The program that is missing without it.
    pub provides: &'static str,
    pub needed_for: &'static str,
}

/// Programs that tests call, with the arguments that print their version.
const CALLED_BY_TESTS: [(&str, Package); 2] = [
    ("-V", Package { name: "tmux", provides: "tmux", needed_for: "the tests in a terminal" }),
    ("version", Package { name: "openssl", provides: "openssl", needed_for: "the tests of TLS" }),
];

/// Installs the missing programs that tests call, or fails with instructions.
pub(crate) fn ensure_programs_of_tests() -> Result<()> {
    for (version, package) in &CALLED_BY_TESTS {
        if !process::succeeds(&mut process::program(package.name, [*version])) {
            install(package)?;
        }
    }
    Ok(())
}

/// Installs a package, or fails with instructions.
pub(crate) fn install(package: &Package) -> Result<()> {
    let Package { name, provides, needed_for } = package;
    let has_apt = process::succeeds(&mut process::program("apt-get", ["--version"]));
    let is_root = process::capture(&mut process::program("id", ["-u"]))?.trim() == "0";
    if !has_apt || !is_root {
        bail!(
            "{provides} is missing; {needed_for} need it. Install the package {name}, on Debian \
             with `sudo apt-get install {name}`"
        );
    }
    println!("{provides} is missing; installing {name} for {needed_for}");
    process::run(&mut process::program("apt-get", ["update", "-q"]))?;
    let install = ["install", "-y", "-q", "--no-install-recommends", name];
    process::run(process::program("apt-get", install).env("DEBIAN_FRONTEND", "noninteractive"))
}

impl Tool {
    /// Installs the program if it is missing, and prints that.
    pub(crate) fn ensure(&self) -> Result<()> {
        if process::succeeds(&mut process::program(self.binary, ["--version"])) {
            return Ok(());
        }
        println!("{} is missing; installing it, which takes some minutes", self.binary);
        process::run(&mut process::cargo(["install"].iter().chain(self.install)))
    }
}
