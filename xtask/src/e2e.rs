//! `e2e`: the end-to-end tests, and the matrix of kills they survived.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::{process, tools, workspace};

mod matrix;

#[cfg(test)]
mod tests;

const PACKAGE: &str = "helix-agents-tests-e2e";

/// Where each test leaves what it saw.
const REPORTS: &str = "target/e2e";

/// What one scenario saw on one runtime and store.
#[derive(Deserialize)]
struct Report {
    runtime: String,
    store: String,
    scenario: String,
    fault_points: Vec<FaultPoint>,
}

/// One place where the process was killed, and whether the run went on as if it had not been.
#[derive(Deserialize)]
struct FaultPoint {
    name: String,
    ok: bool,
}

/// Runs the tests, then prints the matrix, whether they passed or not. With `--seed N` only the
/// story of a random tree that the seed tells, with `--seeds N` the first N of them.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let usage = "usage: cargo xtask e2e [--seed N | --seeds N]";
    let stories = match args {
        [] => None,
        [option @ ("--seed" | "--seeds"), number] => {
            number.parse::<u64>().with_context(|| format!("{option} takes a number"))?;
            let name = if *option == "--seed" { "HELIX_SEED" } else { "HELIX_SEEDS" };
            Some((name, *number))
        }
        _ => bail!("cannot read `{}`; {usage}", args.join(" ")),
    };
    if !workspace::has(PACKAGE)? {
        bail!(
            "there are no end-to-end tests yet; they come with the package {PACKAGE} in tests-e2e/"
        );
    }
    tools::NEXTEST.ensure()?;
    forget_reports()?;
    let mut tests = process::cargo(["nextest", "run", "--package", PACKAGE]);
    if let Some((name, number)) = stories {
        tests.env(name, number).arg("trees::");
    }
    let tested = process::run(&mut tests);
    let shown = show();
    tested.and(shown)
}

/// Reports of an earlier run must not pass for this one's.
fn forget_reports() -> Result<()> {
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
    match reports.iter().flat_map(|it| &it.fault_points).filter(|it| !it.ok).count() {
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
        if path.extension().is_some_and(|it| it == "json") {
            let read = || anyhow::Ok(serde_json::from_slice(&std::fs::read(&path)?)?);
            reports.push(read().with_context(|| format!("could not read {}", path.display()))?);
        }
    }
    Ok(reports)
}
