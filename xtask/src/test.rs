//! `test`: nextest, a process per test, then doctests, which nextest does not run.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use roxmltree::Document;

use crate::behaviour::REPORT;
use crate::{e2e, process, servers, tools};

/// Runs all tests; the arguments go to nextest.
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

/// As [`run`], but a test that fails is run once more: hundreds of tests kill processes and servers on machines that
/// others use, too, and one that was starved there says nothing about a change. It is told of, so that it gets mended.
pub(crate) fn run_for_ci() -> Result<()> {
    let result = run(&["--retries", "1"]);
    for name in flaky(&fs::read_to_string(REPORT).unwrap_or_default())? {
        println!("flaky: {name} failed, and passed when it was run again");
    }
    result
}

/// The tests that passed only when they were run again, by nextest's report.
fn flaky(xml: &str) -> Result<Vec<String>> {
    if xml.is_empty() {
        return Ok(Vec::new());
    }
    let report = Document::parse(xml).with_context(|| format!("{REPORT} is no XML"))?;
    let cases = report.descendants().filter(|it| it.has_tag_name("testcase"));
    let flaky = cases.filter(|it| it.children().any(|it| it.has_tag_name("flakyFailure")));
    let name = |case: roxmltree::Node<'_, '_>| {
        Some(format!("{}::{}", case.attribute("classname")?, case.attribute("name")?))
    };
    Ok(flaky.filter_map(name).collect())
}

/// The report of an earlier run must not pass for this one's.
fn forget_report() -> Result<()> {
    if Path::new(REPORT).exists() {
        fs::remove_file(REPORT).with_context(|| format!("could not remove {REPORT}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
