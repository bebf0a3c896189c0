//! `telemetry`: checks the spans that the command `helix` exports, in Arize Phoenix.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::python::{self, Environment};
use crate::test::tier::Tier;
use crate::{process, servers};

mod options;

#[cfg(test)]
mod tests;

use options::{Options, Store};

/// The folder with the tests in Python.
const TESTS: &str = "tests-telemetry";

/// The file with the version of Phoenix.
const REQUIREMENTS: &str = "tests-telemetry/requirements.txt";

/// The folder of the virtual environment.
const ENVIRONMENT: &str = "target/telemetry/venv";

/// The copy of the command `helix`.
const HELIX: &str = "target/telemetry/helix";

/// The oldest version of Python that the tests support.
const PYTHON: (u32, u32) = (3, 11);

/// Runs the tests with each selected store.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let options = Options::read(args)?;
    let environment = environment()?;
    let helix = build_helix()?;
    let failed: Vec<&str> = options
        .stores
        .iter()
        .filter(|store| {
            println!("\nTelemetry with {}:", store.name());
            let tested = run_tests(&environment, &helix, **store, options.only.as_deref());
            tested.inspect_err(|error| eprintln!("{error:#}")).is_err()
        })
        .map(|store| store.name())
        .collect();
    if failed.is_empty() { Ok(()) } else { bail!("failed with {}", failed.join(", ")) }
}

/// Runs all tests with SQLite in the deep tier, and none before.
pub(crate) fn run_for_ci(tier: Tier) -> Result<()> {
    if tier == Tier::Deep {
        return run(&[]);
    }
    println!("telemetry: only with --deep");
    Ok(())
}

fn run_tests(
    environment: &Environment,
    helix: &Path,
    store: Store,
    only: Option<&str>,
) -> Result<()> {
    let mut tests =
        process::program(std::path::absolute(environment.python())?, ["-m", "unittest", "-v"]);
    tests.args(options::files(only)).current_dir(TESTS);
    // Compiled files do not belong into the folder of the tests.
    tests.env("PYTHONDONTWRITEBYTECODE", "1").env("HELIX_BINARY", helix);
    match store {
        Store::Sqlite => tests.env_remove(options::DATABASE),
        Store::Postgres => {
            servers::up_only(store.name())?;
            tests.env(options::DATABASE, servers::url(store.name())?)
        }
    };
    process::run(&mut tests)
}

/// Builds the command, and returns the path of a copy. A build during the tests does not replace that.
fn build_helix() -> Result<PathBuf> {
    let built = process::build("helix-agents-cli", "helix", &[])?;
    let copy = std::path::absolute(HELIX)?;
    std::fs::copy(&built, &copy).with_context(|| format!("could not write {HELIX}"))?;
    Ok(copy)
}

/// Returns the virtual environment with Phoenix, which is installed if it is missing.
fn environment() -> Result<Environment> {
    let environment = Environment::at(PathBuf::from(ENVIRONMENT));
    let required = std::fs::read_to_string(REQUIREMENTS)
        .with_context(|| format!("could not read {REQUIREMENTS}"))?;
    if environment.has(&required) {
        return Ok(environment);
    }
    let version = process::capture(&mut process::program("python3", ["--version"]))
        .context("the tests of telemetry need Python")?;
    if servers::version(&version).is_none_or(|version| version < PYTHON) {
        let (major, minor) = PYTHON;
        bail!(
            "the tests of telemetry need Python {major}.{minor} or newer; this is {}",
            version.trim()
        );
    }
    if !python::can_create_environments() {
        bail!("missing: python3-venv; on Debian: apt-get install python3-venv");
    }
    println!("installing Phoenix into {ENVIRONMENT}, which takes some minutes");
    environment.create()?;
    environment.pip(&["--quiet", "--requirement", REQUIREMENTS], &[])?;
    environment.mark_complete(&required)?;
    Ok(environment)
}
