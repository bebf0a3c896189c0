//! `bench`: the benchmarks of their own package.

use anyhow::{Result, bail};

use crate::{process, workspace};

const PACKAGE: &str = "helix-agents-benches";

/// Runs the benchmarks; the arguments go to `cargo bench`.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    if !workspace::has(PACKAGE)? {
        bail!("there are no benchmarks yet; they come with the package {PACKAGE} in benches/");
    }
    process::run(&mut process::cargo(["bench", "--package", PACKAGE].iter().chain(args)))
}
