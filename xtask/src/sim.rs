//! `sim`: builds the simulation and tells stories on all cores.

use anyhow::{Result, bail};

use crate::process;

const PACKAGE: &str = "helix-agents-tests-sim";

/// Where stories that failed are kept; every run of the tests tells them.
const KNOWN: &str = "tests-sim/known.txt";

/// Runs the simulation; the arguments go to it. Unless a seed is among them, the seeds follow from the
/// commit, so that every commit is tried by stories of its own.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let commit = process::capture(&mut process::program("git", ["rev-parse", "HEAD"]))?;
    let commit = commit.trim();
    let seed = first_seed(commit)?.to_string();
    let short: String = commit.chars().take(7).collect();
    let mut own = vec!["--known", KNOWN, "--commit", &short];
    if !args.contains(&"--seed") {
        own.extend(["--seed", &seed]);
    }
    let run =
        ["run", "--quiet", "--profile", "sim", "--package", PACKAGE, "--bin", "helix-sim", "--"];
    let mut cargo = process::cargo(run.iter().chain(&own).chain(args));
    // With it tokio takes a seed, so that a story can be told again.
    cargo.env("RUSTFLAGS", "--cfg tokio_unstable");
    if !cargo.status()?.success() {
        bail!("a story failed, or a situation was never reached");
    }
    Ok(())
}

/// The first seed of a commit: far enough from those of others.
fn first_seed(commit: &str) -> Result<u64> {
    match u64::from_str_radix(commit.get(..8).unwrap_or_default(), 16) {
        Ok(number) => Ok(number << 32),
        Err(_) => bail!("`{commit}` is no commit"),
    }
}

#[cfg(test)]
mod tests;
