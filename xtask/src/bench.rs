//! `bench`: builds the benchmarks for release and runs them.

use std::process::Command;

use anyhow::{Result, bail};

use crate::{process, workspace};

const PACKAGE: &str = "helix-agents-benches";

/// Runs the benchmarks; the arguments go to their driver.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    if !workspace::has(PACKAGE)? {
        bail!("there are no benchmarks: the package {PACKAGE} in benches/ is missing");
    }
    // With --json nothing but the figures is on the output, so what servers say goes elsewhere.
    let mut servers = Command::new(std::env::current_exe()?);
    if !servers.args(["servers", "up"]).stdout(std::io::stderr()).status()?.success() {
        bail!("the servers that stores are measured on could not be started");
    }
    let run = ["run", "--quiet", "--release", "--package", PACKAGE, "--bin", "helix-bench", "--"];
    // Not `process::run`, which prints what it runs: with --json nothing else is on the output.
    if !process::cargo(run.iter().chain(args)).status()?.success() {
        bail!("the benchmarks failed");
    }
    Ok(())
}
