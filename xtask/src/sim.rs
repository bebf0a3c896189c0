//! `sim`: builds the simulation and runs stories on all cores.

use anyhow::{Result, bail};

use crate::process;

const PACKAGE: &str = "helix-agents-tests-sim";

/// The file of the stories that failed. Every test run runs them again.
const KNOWN: &str = "tests-sim/known.txt";

/// Runs the simulation, with these arguments. Without a seed among them, the first seed follows from the commit, so
/// that every commit is tested with different stories.
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
    // This setting lets tokio use a seed, so that a story can be repeated.
    cargo.env("RUSTFLAGS", "--cfg tokio_unstable");
    if !cargo.status()?.success() {
        bail!("a story failed, or a situation was never reached");
    }
    Ok(())
}

/// Returns the first seed of a commit. Seeds of different commits do not overlap.
fn first_seed(commit: &str) -> Result<u64> {
    match u64::from_str_radix(commit.get(..8).unwrap_or_default(), 16) {
        Ok(number) => Ok(number << 32),
        Err(_) => bail!("`{commit}` is not a commit"),
    }
}

#[cfg(test)]
mod tests;
