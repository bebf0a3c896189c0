//! `bench`: builds the benchmarks for release and runs them.

use anyhow::{Result, bail};

use crate::{process, workspace};

const PACKAGE: &str = "helix-agents-benches";

/// Runs the benchmarks; the arguments go to their driver.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    if !workspace::has(PACKAGE)? {
        bail!("there are no benchmarks: the package {PACKAGE} in benches/ is missing");
    }
    let run = ["run", "--quiet", "--release", "--package", PACKAGE, "--bin", "helix-bench", "--"];
    // Not `process::run`, which prints what it runs: with --json nothing else is on the output.
    if !process::cargo(run.iter().chain(args)).status()?.success() {
        bail!("the benchmarks failed");
    }
    Ok(())
}
