//! `e2e`: runs the end-to-end tests and the parity suite, and prints the matrix of the survived kills.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::{process, report, servers, tools, workspace};

mod matrix;
mod options;
mod page;

#[cfg(test)]
mod tests;

use options::Page;

const PACKAGE: &str = "helix-agents-tests-e2e";

/// The folder in which each test leaves its report.
const REPORTS: &str = "target/e2e";

/// The report of one scenario on one runtime and store.
#[derive(Deserialize)]
struct Report {
    runtime: String,
    store: String,
    /// The checked property, such as the kill matrix.
    holds: String,
    scenario: String,
    /// The durability mode.
    mode: String,
    fault_points: Vec<FaultPoint>,
}

/// One fault point: where a worker was killed, and whether the run recovered.
#[derive(Deserialize)]
struct FaultPoint {
    name: String,
    ok: bool,
}

/// Runs the tests, prints the matrix whether they passed or not, and runs the parity suite of the same runtimes and
/// stores.
///
/// With `--store all` or `--full` it writes the results into the guide, into the columns of the runtimes and stores that
/// ran. Without them it runs a sample on the servers and compares the guide with the results. `--check` runs no tests: it
/// compares the guide with the reports of the last run.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    if args == ["--check"] {
        return report::gate("e2e", complaints);
    }
    let options = options::Options::read(args)?;
    if !workspace::has(PACKAGE)? {
        bail!(
            "there are no end-to-end tests yet; they come with the package {PACKAGE} in tests-e2e/"
        );
    }
    tools::NEXTEST.ensure()?;
    servers::up()?;
    forget_reports()?;
    let mut tests = process::cargo(["nextest", "run", "--package", PACKAGE]);
    if options.full {
        tests.env("HELIX_FULL", "1").args(["--profile", "full"]);
    }
    if let Some(store) = &options.store {
        tests.env("HELIX_STORE", store);
    }
    if let Some((name, number)) = &options.seeds {
        tests.env(name, number);
    }
    tests.args(["-E", &options.filter()]);
    let tested = process::run(&mut tests);
    let shown = show();
    let parity = options.parity().map_or(Ok(()), |args| {
        println!("\nThe parity suite:");
        process::run(process::cargo(["nextest", "run"]).args(args))
    });
    tested.and(shown).and(parity)?;
    match options.page() {
        Page::Written => page::write(&reports()?, page::Run::Usual),
        Page::WrittenInFull => page::write(&reports()?, page::Run::Full),
        Page::Compared => report::gate("e2e", complaints),
        Page::LeftAlone => Ok(()),
    }
}

/// Returns the differences between the guide and the reports of the last run.
pub(crate) fn complaints() -> Result<Vec<String>> {
    let reports = reports()?;
    if reports.is_empty() {
        bail!("the tests left no report in {REPORTS}; `cargo xtask test --gate` runs them");
    }
    page::complaints(&page::read()?, &reports)
}

/// Removes the reports of an earlier run, so that they are not mistaken for this one's.
pub(crate) fn forget_reports() -> Result<()> {
    if Path::new(REPORTS).exists() {
        std::fs::remove_dir_all(REPORTS).with_context(|| format!("could not clear {REPORTS}"))?;
    }
    Ok(())
}

fn show() -> Result<()> {
    let reports = reports()?;
    if reports.is_empty() {
        bail!("the tests left no report in {REPORTS}/*.json, so there is no matrix to show");
    }
    println!("\n{}", matrix::render(&reports));
    match reports.iter().flat_map(|report| &report.fault_points).filter(|point| !point.ok).count() {
        0 => Ok(()),
        failed => bail!("not survived: {failed}"),
    }
}

fn reports() -> Result<Vec<Report>> {
    let Ok(folder) = std::fs::read_dir(REPORTS) else {
        return Ok(Vec::new());
    };
    let mut reports = Vec::new();
    for entry in folder {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let read = || anyhow::Ok(serde_json::from_slice(&std::fs::read(&path)?)?);
            reports.push(read().with_context(|| format!("could not read {}", path.display()))?);
        }
    }
    Ok(reports)
}
