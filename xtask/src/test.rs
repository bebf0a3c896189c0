//! `test`: runs nextest, with a process per test, and then the doctests, which nextest does not run.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use roxmltree::Document;

use crate::behaviour::REPORT;
use crate::{e2e, process, servers, tools};

/// Runs all tests. The arguments are passed to nextest.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    tools::NEXTEST.ensure()?;
    tools::ensure_programs_of_tests()?;
    servers::up()?;
    forget_report()?;
    e2e::forget_reports()?;
    let nextest = ["nextest", "run", "--workspace", "--all-features"];
    let tests = process::run(&mut process::cargo(nextest.iter().chain(args)));
    let doctests =
        process::run(&mut process::cargo(["test", "--doc", "--workspace", "--all-features"]));
    match (tests, doctests) {
        (Ok(()), Ok(())) => Ok(()),
        (Err(error), Ok(())) | (Ok(()), Err(error)) => Err(error),
        (Err(tests), Err(doctests)) => bail!("{tests}; {doctests}"),
    }
}

/// Runs all tests as [`run`] does, but retries a failed test once: hundreds of tests kill processes and servers on
/// machines with other load, and a starved test says nothing about a change. Flaky tests are printed, so that they get
/// fixed.
pub(crate) fn run_for_ci() -> Result<()> {
    let result = run(&["--retries", "1"]);
    for name in flaky(&fs::read_to_string(REPORT).unwrap_or_default())? {
        println!("flaky: {name} failed, and passed when it was retried");
    }
    result
}

/// Returns the tests of nextest's report that passed only when they were retried.
fn flaky(xml: &str) -> Result<Vec<String>> {
    if xml.is_empty() {
        return Ok(Vec::new());
    }
    let report = Document::parse(xml).with_context(|| format!("{REPORT} is not XML"))?;
    let cases = report.descendants().filter(|node| node.has_tag_name("testcase"));
    let flaky = cases.filter(|case| case.children().any(|node| node.has_tag_name("flakyFailure")));
    let name = |case: roxmltree::Node<'_, '_>| {
        Some(format!("{}::{}", case.attribute("classname")?, case.attribute("name")?))
    };
    Ok(flaky.filter_map(name).collect())
}

/// Removes the report of an earlier run, so that it is not mistaken for this one.
fn forget_report() -> Result<()> {
    if Path::new(REPORT).exists() {
        fs::remove_file(REPORT).with_context(|| format!("could not remove {REPORT}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
