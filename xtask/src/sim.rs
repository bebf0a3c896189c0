//! `sim`: builds the simulation and runs stories on all cores.

use std::process::Command;

use anyhow::{Result, bail};

use crate::{process, tools};

const PACKAGE: &str = "helix-agents-tests-sim";

/// The file of the stories that failed. Every test run runs them again.
const KNOWN: &str = "tests-sim/known.txt";

/// The exit code of nextest if a test failed.
const TEST_FAILED: i32 = 100;

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
    own.extend(args);
    if !simulation(&own).status()?.success() {
        bail!("a story failed, or a situation was never reached");
    }
    let all_mutants = args.contains(&"--mutants") && !args.contains(&"--mutant");
    if all_mutants { run_mutant_tests() } else { Ok(()) }
}

fn simulation(args: &[&str]) -> Command {
    let run =
        ["run", "--quiet", "--profile", "sim", "--package", PACKAGE, "--bin", "helix-sim", "--"];
    let mut cargo = process::cargo(run.iter().chain(args));
    // This setting lets tokio use a seed, so that a story can be repeated.
    cargo.env("RUSTFLAGS", "--cfg tokio_unstable");
    cargo
}

/// Runs the tests of the mutants that no story detects. Each test must pass without its mutant and fail with it.
fn run_mutant_tests() -> Result<()> {
    tools::NEXTEST.ensure()?;
    let tests = process::capture(&mut simulation(&["--mutant-tests"]))?;
    if tests.is_empty() {
        bail!("no mutant is left to a test");
    }
    for line in tests.lines() {
        let [mutant, package, test] = line.split(' ').collect::<Vec<_>>()[..] else {
            bail!("`{line}` does not name a mutant, a package and a test");
        };
        let filter = format!("test(={test})");
        let features = match package {
            "helix-agents-core" => "mutants",
            _ => "helix-agents-core/mutants",
        };
        let nextest =
            ["nextest", "run", "--package", package, "--features", features, "-E", &filter];
        process::run(&mut process::cargo(nextest))?;
        println!("the same test with the mutant `{mutant}`, which has to fail:");
        let status = process::cargo(nextest).env("HELIX_MUTANT", mutant).status()?;
        if status.code() != Some(TEST_FAILED) {
            bail!("the test `{test}` does not detect the mutant `{mutant}`");
        }
    }
    println!("all {} tests detect their mutants", tests.lines().count());
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
