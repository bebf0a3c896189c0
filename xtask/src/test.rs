//! `test`: runs nextest, with a process per test, and then the doctests, which nextest does not run.

use std::fs;
use std::num::NonZero;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use roxmltree::Document;

use crate::{e2e, process, servers, tools};
use tier::{Selection, Tier};

pub(crate) mod tier;

/// The variable with the name of the tier. The tests with random stories run the share that belongs to it.
const TIER: &str = "HELIX_TIER";

/// The arguments of cargo for the tests that need a build without the optional features. The gate and the deep tier build
/// with all features. Nextest fails if no test matches.
const WITHOUT_A_FEATURE: [&str; 7] = [
    "nextest",
    "run",
    "--package",
    "helix-agents-llm",
    "--no-tests=fail",
    "-E",
    "test(/(^|::)without_the_feature_/)",
];

/// Runs the tests that the arguments select: those of a tier, or all tests of some packages. Arguments other than the
/// tier are passed to nextest.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    run_selected(&Selection::read(args))
}

/// Runs the tests of a tier, but retries a failed test once: hundreds of tests kill processes and servers on machines
/// with other load, and a starved test says nothing about a change. Flaky tests are printed, so that they get fixed.
pub(crate) fn run_for_ci(tier: Tier) -> Result<()> {
    let selection = Selection { tier, packages: tier.packages(), args: vec!["--retries", "1"] };
    let result = run_selected(&selection);
    for name in flaky(&fs::read_to_string(tier.report()).unwrap_or_default())? {
        println!("flaky: {name} failed, and passed when it was retried");
    }
    result
}

fn run_selected(selection: &Selection<'_>) -> Result<()> {
    let Selection { tier, packages, args } = selection;
    tools::NEXTEST.ensure()?;
    if selection.needs_servers() {
        tools::ensure_programs_of_tests()?;
        servers::up()?;
    }
    forget_reports()?;
    let nextest = ["nextest", "run", "--profile", tier.profile()];
    let mut tests = process::cargo(nextest.iter().chain(packages).chain(args));
    tests.env(TIER, tier.profile());
    if *tier == Tier::Quick {
        // Many tests wait for time limits. The profiles of the other tiers set the number themselves.
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        tests.env("NEXTEST_TEST_THREADS", (3 * processors).to_string());
    }
    let mut runs = vec![tests];
    // The quick tier builds without these features anyway.
    if *tier == Tier::Deep && selection.has_whole_workspace() {
        runs.push(process::cargo(WITHOUT_A_FEATURE));
    }
    runs.push(process::cargo(["test", "--doc"].iter().chain(packages)));
    let errors = runs.iter_mut().filter_map(|run| process::run(run).err());
    let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
    if errors.is_empty() { Ok(()) } else { bail!("{}", errors.join("; ")) }
}

/// Returns the tests of nextest's report that passed only when they were retried.
fn flaky(xml: &str) -> Result<Vec<String>> {
    if xml.is_empty() {
        return Ok(Vec::new());
    }
    let report = Document::parse(xml).context("the report of the tests is not XML")?;
    let cases = report.descendants().filter(|node| node.has_tag_name("testcase"));
    let flaky = cases.filter(|case| case.children().any(|node| node.has_tag_name("flakyFailure")));
    let name = |case: roxmltree::Node<'_, '_>| {
        Some(format!("{}::{}", case.attribute("classname")?, case.attribute("name")?))
    };
    Ok(flaky.filter_map(name).collect())
}

/// Removes the reports of an earlier run, so that they are not mistaken for those of this one.
fn forget_reports() -> Result<()> {
    for tier in Tier::ALL {
        let report = tier.report();
        if Path::new(&report).exists() {
            fs::remove_file(&report).with_context(|| format!("could not remove {report}"))?;
        }
    }
    e2e::forget_reports()
}

#[cfg(test)]
mod tests;
