//! `bench`: builds the benchmarks in release mode and runs them.

use std::process::Command;

use anyhow::{Result, bail};

use crate::{process, workspace};

const PACKAGE: &str = "helix-agents-benches";

/// Runs the benchmarks. The arguments are passed to their driver.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    if !workspace::has(PACKAGE)? {
        bail!("there are no benchmarks: the package {PACKAGE} in benches/ is missing");
    }
    // With `--json` the output has only the figures, so the messages of the servers go to standard error.
    let mut servers = Command::new(std::env::current_exe()?);
    if !servers.args(["servers", "up"]).stdout(std::io::stderr()).status()?.success() {
        bail!("could not start the servers of the measured stores");
    }
    let run = ["run", "--quiet", "--release", "--package", PACKAGE, "--bin", "helix-bench", "--"];
    // `process::run` prints the command, but with `--json` the output has only the figures.
    if !process::cargo(run.iter().chain(args)).status()?.success() {
        bail!("the benchmarks failed");
    }
    Ok(())
}
